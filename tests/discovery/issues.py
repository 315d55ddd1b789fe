"""Made-up issues, each as people write them in another place."""

from __future__ import annotations

import html

from tests.discovery.test_combine import nccl, smi
from tests.discovery.test_dmidecode import BOARDS, two_sockets
from tests.discovery.test_numa_nodes import XEON, lscpu, numactl
from tests.discovery.test_rdma_ports import TO_INTERFACES, ca

MATRIX = smi().decode()
LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes
  PIX  = Connection traversing at most a single PCIe bridge

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
"""
PORTS = ca("mlx5_0", 400) + ca("mlx5_1", 200)
CHECK = " GDS release version: 1.7.2.10\n nvidia_fs version:  2.17 libcufile version: 2.12\n"

TRACKER = f"""\
### Describe the bug

All-reduce is at a third of what I expect, see #1234. GPU 0 is slow, and X crashes.

```shell
$ nvidia-smi topo -m
{smi(cards=("NIC0", "NIC1")).decode()}{LEGEND}```

GPUDirect Storage is fine:

```
{CHECK}```

* The ports, from `ibstat`:

  ```console
{"".join(f"  {line}" + chr(10) for line in PORTS.splitlines())}  ```

Any idea? I tried 10de:2330 and `01:00.0`.
"""
MAIL = "\n".join(
    f"> {line}"
    for line in f"""\
Hello,

[root@gpu-07 ~]# nvidia-smi topo -m
{MATRIX}
[root@gpu-07 ~]# ibdev2netdev -v
{TO_INTERFACES}
[root@gpu-07 ~]# numactl -H
{numactl(2)}
""".splitlines()
)
MAIL = f"On Monday somebody wrote:\n{MAIL}\n\nThat looks right to me.\n"
CI_LOG = "\n".join(
    f"2026-11-30T04:41:42.12345{at % 10}7Z {line}"
    for at, line in enumerate(
        f"""\
##[group]Run nvidia-smi topo -m
+ nvidia-smi topo -m
{MATRIX}##[endgroup]
+ lscpu
{lscpu(2, 2, XEON)}+ dmidecode -t memory
{two_sockets(*BOARDS["letters alone"])}Process completed with exit code 0.
""".splitlines()
    )
)
COLLECT_ENV = f"""\
Collecting environment information...
==============================
        System Info
==============================
OS                           : Ubuntu 22.04.4 LTS (x86_64)
GCC version                  : (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0

==============================
       CUDA / GPU Info
==============================
Is CUDA available            : True
GPU models and configuration :
GPU 0: NVIDIA H100 80GB HBM3
GPU 1: NVIDIA H100 80GB HBM3

Nvidia driver version        : 550.54.15
==============================
          CPU Info
==============================
{lscpu(2, 2, XEON)}Vulnerability Itlb multihit:     Not affected

==============================
Versions of relevant libraries
==============================
[pip3] numpy==1.26.4
[pip3] torch==2.7.0

==============================
         vLLM Info
==============================
vLLM Build Flags:
  CUDA Archs: Not Set; ROCm: Disabled
GPU Topology:
{MATRIX}{LEGEND}
==============================
     Environment Variables
==============================
NCCL_VERSION=2.20.5-1
"""
WEB_PAGE = f"""\
<details>
<summary>topo.xml</summary>
<pre>
{html.escape(nccl().decode(), quote=False)}
</pre>
</details>
<p>And the memory:</p>
<pre>
{numactl(2)}
</pre>
"""
BUG_REPORT = f"""\
____________________________________________

Start of NVIDIA bug report log file.

*** /proc/driver/nvidia/version
NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15

____________________________________________

/usr/bin/nvidia-smi topo -m

{MATRIX}{LEGEND}
____________________________________________

/usr/local/cuda/gds/tools/gdscheck -p

{CHECK}
____________________________________________

dmidecode

{two_sockets(*BOARDS["the bank alone"])}
____________________________________________

another host:

{smi(near="NODE").decode()}
"""
ISSUES = {
    "tracker": TRACKER,
    "mail": MAIL,
    "log of CI": CI_LOG,
    "collect_env": COLLECT_ENV,
    "web page": WEB_PAGE,
    "bug report": BUG_REPORT,
}
