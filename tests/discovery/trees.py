"""Small machines in the words of hwloc, lspci, sysfs and rocm-smi, written for these tests."""

from __future__ import annotations

import io
import tarfile

# --- hwloc ----------------------------------------------------------------------------------------

OSDEVS_2 = {"storage": 0, "gpu": 1, "network": 2, "openfabrics": 3, "coprocessor": 5}
OSDEVS_3 = {"storage": 1, "memory": 2, "gpu": 12, "network": 16, "openfabrics": 48}


class Hwloc:
    """Writes a file of one version; objects number themselves."""

    def __init__(self, version="3.0"):
        self.version = version
        self.count = 0

    def thing(self, type_, *inside, infos=None, **attributes):
        self.count += 1
        texts = "".join(f' {name}="{value}"' for name, value in attributes.items())
        number = "" if self.version == "1" else f' gp_index="{attributes.get("gp", self.count)}"'
        said = "".join(f'<info name="{k}" value="{v}"/>' for k, v in (infos or {}).items())
        return f'<object type="{type_}"{number}{texts}>{said}{"".join(inside)}</object>'

    def package(self, number, *inside, nodes=None, model="Intel(R) Xeon(R) Platinum 8480C"):
        nodes = [number] if nodes is None else nodes
        mask = f"0x{sum(1 << node for node in nodes):08x}"
        memory = [
            self.thing(
                "NUMANode", os_index=node, nodeset=f"0x{1 << node:08x}", local_memory=64 * 10**9
            )
            for node in nodes
        ]
        kind = "Socket" if self.version == "1" else "Package"
        return self.thing(
            kind, *memory, *inside, os_index=number, nodeset=mask, infos={"CPUModel": model}
        )

    def host(self, *inside, buses="0000:[00-ff]"):
        return self.thing("Bridge", *inside, bridge_type="0-1", depth=0, bridge_pci=buses)

    def bridge(self, address, *inside, rate=15.753846, ids="10b5:9797"):
        return self.pci("Bridge", address, "0604", ids, *inside, rate=rate, bridge_type="1-1")

    def pci(self, type_, address, code, ids, *inside, rate=15.753846, **more):
        kind = f"{code} [{ids}] [0000:0000] 00" + (" 00" if self.version >= "3" else "")
        where = {"pci_busid": address, "pci_type": kind, "pci_link_speed": f"{rate:.6f}"}
        return self.thing(type_, *inside, **where, **more)

    def device(self, address, code, ids, *inside, **more):
        return self.pci("PCIDev", address, code, ids, *inside, **more)

    def os(self, name, sort, **more):
        numbers = OSDEVS_3 if self.version >= "3" else OSDEVS_2
        return self.thing("OSDev", name=name, osdev_type=numbers.get(sort, 0), **more)

    def file(self, *inside, tail=""):
        version = "" if self.version == "1" else f' version="{self.version}"'
        machine = self.thing("Machine", *inside, os_index=0, nodeset="0x00000003")
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        return f"{head}<topology{version}>{machine}{tail}</topology>".encode()


def matrix(name, objects, rows, kind="distances2hetero"):
    """A matrix in chunks of ten numbers, as hwloc writes it."""

    def chunks(tag, texts):
        return "".join(
            f'<{tag} length="9">{" ".join(texts[at : at + 10])} </{tag}>'
            for at in range(0, len(texts), 10)
        )

    cells = [str(cell) for row in rows for cell in row]
    return (
        f'<{kind} nbobjs="{len(objects)}" kind="25" name="{name}">'
        f"{chunks('indexes', objects)}{chunks('u64values', cells)}</{kind}>"
    )


def two_level(version="3.0"):
    """Two sockets; below each, a switch with two switches below, each with two GPUs and a card."""
    file = Hwloc(version)
    sockets = []
    for at in range(2):
        base = 0x20 + at * 0x40
        inner = []
        for half in range(2):
            bus = base + 2 + half * 8
            leaves = [
                file.bridge(
                    f"0000:{bus + 1:02x}:{4 * gpu:02x}.0",
                    file.device(
                        f"0000:{bus + 2 + gpu:02x}:00.0",
                        "0302",
                        "10de:20b2",
                        file.os(f"cuda{at * 4 + half * 2 + gpu}", "gpu"),
                        gp=1000 + at * 4 + half * 2 + gpu,
                        rate=31.507692,
                    ),
                    rate=31.507692,
                )
                for gpu in range(2)
            ]
            card = file.bridge(
                f"0000:{bus + 1:02x}:10.0",
                file.device(
                    f"0000:{bus + 4:02x}:00.0",
                    "0207",
                    "15b3:101b",
                    file.os(f"mlx5_{at * 2 + half}", "openfabrics", infos={"Port1State": "4"}),
                    rate=31.507692,
                ),
                rate=31.507692,
            )
            inner.append(
                file.bridge(
                    f"0000:{base + 1:02x}:{half:02x}.0",
                    file.bridge(f"0000:{bus:02x}:00.0", *leaves, card, rate=31.507692),
                    rate=31.507692,
                )
            )
        root = file.bridge(
            f"0000:{base - 1:02x}:00.0",
            file.bridge(f"0000:{base:02x}:00.0", *inner, rate=31.507692),
            rate=31.507692,
        )
        sockets.append(file.package(at, file.host(root)))
    gpus = [f"PCIDev:{1000 + at}" for at in range(8)]
    rows = [[1000000 if one == other else 25000 for other in gpus] for one in gpus]
    return file.file(*sockets, tail=matrix("NVLinkBandwidth", gpus, rows))


def cxl(version):
    """A CXL memory behind a port, a drive and a card, in the words of one version."""
    file = Hwloc(version)
    memory = "memory" if version >= "3" else "storage"
    inside = file.host(
        file.bridge(
            "0000:00:01.0",
            file.device(
                "0000:01:00.0", "0502", "8086:0d93", file.os("mem0", memory, subtype="CXLMem")
            ),
        ),
        file.bridge(
            "0000:00:02.0",
            file.device(
                "0000:02:00.0",
                "0108",
                "144d:a80a",
                file.os("nvme0n1", "storage", infos={"Size": "1000000000"}),
                rate=7.876923,
            ),
            rate=7.876923,
        ),
        file.bridge(
            "0000:00:03.0",
            file.device(
                "0000:03:00.0",
                "0200",
                "15b3:1021",
                file.os("eth0", "network"),
                file.os("mlx5_0", "openfabrics"),
                rate=63.015385,
            ),
            rate=63.015385,
        ),
        file.device("0000:00:1f.2", "0106", "8086:2922", file.os("sda", "storage"), rate=0.0),
    )
    return file.file(file.package(0, inside))


# --- lspci ----------------------------------------------------------------------------------------

TREE = """\
-+-[0000:00]-+-00.0  Intel Corporation Host bridge
 |           +-01.0-[01-05]----00.0-[02-05]--+-00.0-[03]--+-00.0  NVIDIA GA100 [A100 SXM4 80GB]
 |           |                               |            \\-00.1  NVIDIA Audio device
 |           |                               +-04.0-[04]--+-00.0  Mellanox MT2910 [ConnectX-7]
 |           |                               |            \\-00.1  Mellanox MT2910 [ConnectX-7]
 |           |                               \\-08.0-[05]--
 |           \\-1f.0  Intel Corporation LPC Controller
 \\-[0000:80]---02.0-[81]----00.0  Samsung Electronics Co Ltd NVMe SSD Controller PM9A3
"""


def block(address, head, *facts):
    return "\n".join([f"{address} {head}", *(f"\t{fact}" for fact in facts), ""])


def port(address, kind, secondary, cap="Speed 16GT/s, Width x16", acs=None):
    redirect = (
        [] if acs is None else [f"ACSCtl:\tSrcValid+ TransBlk- ReqRedir{acs} CmpltRedir{acs}"]
    )
    return block(
        address,
        "PCI bridge: Broadcom / LSI PEX880xx PCIe Switch (rev b0) (prog-if 00 [Normal decode])",
        f"Bus: primary=00, secondary={secondary}, subordinate={secondary}, sec-latency=0",
        f"Capabilities: [68] Express (v2) {kind}, MSI 00",
        f"\tLnkCap:\tPort #0, {cap}, ASPM not supported",
        f"\tLnkSta:\t{cap}",
        *redirect,
    )


def endpoint(address, head, cap, sta, numa=0, slot="7"):
    return block(
        address,
        head,
        f"Physical Slot: {slot}",
        f"NUMA node: {numa}",
        "Capabilities: [78] Express (v2) Endpoint, MSI 00",
        f"\tLnkCap:\tPort #0, {cap}, ASPM L1",
        f"\tLnkSta:\t{sta}",
        "\tLnkCap2: Supported Link Speeds: 2.5-64GT/s",
        "\tLnkSta2: Current De-emphasis Level: -6dB",
    )


GPU_HEAD = "3D controller [0302]: NVIDIA Corporation GA100 [A100 SXM4 80GB] [10de:20b2] (rev a1)"
NIC_HEAD = "Infiniband controller [0207]: Mellanox Technologies MT28908 [ConnectX-6] [15b3:101b]"


def verbose(acs="-"):
    """A switch with a GPU at rest and a card that trained down, as `lspci -nnvvv` prints them."""
    return "\n".join(
        [
            block("00:00.0", "Host bridge [0600]: Advanced Micro Devices, Inc. [AMD] [1022:1480]"),
            port("00:01.1", "Root Port (Slot+)", "01"),
            port("01:00.0", "Upstream Port", "02"),
            port("02:00.0", "Downstream Port (Slot+)", "03", acs=acs),
            port("02:04.0", "Downstream Port (Slot+)", "04", acs=acs),
            endpoint(
                "03:00.0",
                GPU_HEAD,
                "Speed 16GT/s, Width x16",
                "Speed 2.5GT/s (downgraded), Width x16 (ok)",
                numa=1,
            ),
            endpoint(
                "04:00.0",
                NIC_HEAD,
                "Speed 16GT/s, Width x16",
                "Speed 16GT/s (ok), Width x8 (downgraded)",
                numa=1,
            ),
        ]
    )


# --- sysfs ----------------------------------------------------------------------------------------


class Sysfs:
    """Collects files and links, and packs them."""

    def __init__(self):
        self.files = {}
        self.links = {}

    def put(self, path, text):
        self.files[path.strip("/")] = text if isinstance(text, bytes) else f"{text}\n".encode()

    def link(self, path, target):
        self.links[path.strip("/")] = target

    def node(self, number, cpus, kilobytes=65536000):
        here = f"sys/devices/system/node/node{number}"
        self.put(f"{here}/cpulist", cpus)
        self.put(f"{here}/meminfo", f"Node {number} MemTotal:       {kilobytes} kB")

    def cpu(self, number, package):
        self.put(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", package)

    def pci(self, chain, code, vendor, device, *, link=("16.0 GT/s PCIe", 16), now=None, numa=0):
        """Put a function; `chain` is its real path below /sys/devices."""
        here = f"sys/devices/{chain}"
        address = chain.rpartition("/")[2]
        steps = {"class": f"0x{code}", "vendor": f"0x{vendor}", "device": f"0x{device}"}
        for word, (speed, width) in (("max", link), ("current", now or link)):
            steps[f"{word}_link_speed"] = speed
            steps[f"{word}_link_width"] = width
        for name, text in {**steps, "numa_node": numa}.items():
            self.put(f"{here}/{name}", text)
        self.link(f"sys/bus/pci/devices/{address}", f"../../../devices/{chain}")
        return here

    def tar(self, mode="w:gz", top="box/"):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode=mode) as archive:
            for path, data in self.files.items():
                info = tarfile.TarInfo(f"{top}{path}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
            for path, target in self.links.items():
                info = tarfile.TarInfo(f"{top}{path}")
                info.type, info.linkname = tarfile.SYMTYPE, target
                archive.addfile(info)
        return raw.getvalue()

    def write(self, folder):
        for path, data in self.files.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        for path, target in self.links.items():
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target)
        return folder


def sysfs_box():
    """Two sockets; a switch with a GPU and a card, a drive of its own, a target over RDMA."""
    tree = Sysfs()
    tree.put("proc/cpuinfo", "processor\t: 0\nmodel name\t: AMD EPYC 7763 64-Core Processor")
    for node in range(2):
        tree.node(node, f"{node * 2}-{node * 2 + 1}")
        for cpu in range(2):
            tree.cpu(node * 2 + cpu, node)
    root, up = "pci0000:40/0000:40:01.1", "0000:41:00.0"
    tree.pci(root, "060400", "1022", "1483", numa=1)
    tree.pci(f"{root}/{up}", "060400", "1000", "c010", numa=1)
    for port_ in ("0000:42:00.0", "0000:42:04.0"):
        tree.pci(f"{root}/{up}/{port_}", "060400", "1000", "c010", numa=1)
    gpu = f"{root}/{up}/0000:42:00.0/0000:43:00.0"
    tree.pci(gpu, "030200", "10de", "20b2", now=("2.5 GT/s PCIe", 16), numa=1)
    card = tree.pci(f"{root}/{up}/0000:42:04.0/0000:44:00.0", "020700", "15b3", "101b", numa=1)
    for name, text in (("state", "4: ACTIVE"), ("rate", "200 Gb/sec (4X HDR)")):
        tree.put(f"{card}/infiniband/mlx5_0/ports/1/{name}", text)
    tree.put(f"{card}/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand")
    gid = "0000:0000:0000:0000:0000:ffff:0a00:0001"
    tree.put(f"{card}/infiniband/mlx5_0/ports/1/gids/0", gid)
    tree.put(f"{card}/net/ib0/speed", "200000")
    tree.link("sys/class/infiniband/mlx5_0", f"../../{card.removeprefix('sys/')}/infiniband/mlx5_0")
    drive = "pci0000:00/0000:00:03.1/0000:01:00.0"
    tree.pci("pci0000:00/0000:00:03.1", "060400", "1022", "1483")
    here = tree.pci(drive, "010802", "144d", "a80a", link=("16.0 GT/s PCIe", 4))
    tree.put(f"{here}/nvme/nvme0/model", "SAMSUNG MZQL23T8")
    tree.put(f"{here}/nvme/nvme0/nvme0n1/size", 7501476528)
    tree.put("sys/bus/pci/slots/12/address", "0000:01:00")
    return tree


def with_target(tree, address="traddr=10.0.0.9,trsvcid=4420,src_addr=10.0.0.1"):
    here = "sys/devices/virtual/nvme-fabrics/ctl/nvme1"
    tree.put(f"{here}/transport", "rdma")
    tree.put(f"{here}/address", address)
    tree.put(f"{here}/subsysnqn", "nqn.2020-01.org.example:fast")
    tree.link("sys/class/nvme/nvme1", "../../devices/virtual/nvme-fabrics/ctl/nvme1")
    return tree


# --- rocm-smi -------------------------------------------------------------------------------------

ROCM = """\
========================= ROCm System Management Interface =========================
=========================== Weight between two GPUs ================================
       GPU0         GPU1         GPU2
GPU0   0            15           72
GPU1   15           0            72
GPU2   72           72           0

============================ Hops between two GPUs =================================
       GPU0         GPU1         GPU2
GPU0   0            1            3
GPU1   1            0            3
GPU2   3            3            0

========================= Link Type between two GPUs ===============================
       GPU0         GPU1         GPU2
GPU0   0            XGMI         PCIE
GPU1   XGMI         0            PCIE
GPU2   PCIE         PCIE         0

=================================== Numa Nodes =====================================
GPU[0]\t\t: (Topology) Numa Node: 0
GPU[0]\t\t: (Topology) Numa Affinity: 0
GPU[1]\t\t: (Topology) Numa Node: 0
GPU[2]\t\t: (Topology) Numa Node: 1
============================== End of ROCm SMI Log =================================
"""
