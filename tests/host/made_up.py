"""A made-up GPU host as Linux shows it, set up well; tests spoil one thing each."""

from __future__ import annotations

from tests.discovery.trees import Sysfs

_SPEEDS = (2.5, 5.0, 8.0, 16.0, 32.0, 64.0)
_GEN = {at: f"{speed} GT/s PCIe" for at, speed in enumerate(_SPEEDS, 1)}
H100, CONNECTX_7, SWITCH, ROOT, DRIVE = (
    ("10de", "2330"),
    ("15b3", "1021"),
    ("1000", "c030"),
    ("8086", "352a"),
    ("144d", "a824"),
)
PORTS = {"root": 4, "upstream": 5, "downstream": 6}
SWITCHES = ("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:95/0000:95:01.0/0000:96:00.0")


def config(
    *,
    payload=512,
    most=512,
    read=4096,
    acs=None,
    windows=(),
    generation=5,
    lanes=16,
    size=4096,
):
    """A config space: packets, link, for a port ACS, for a GPU which sizes in MiB BAR1 can have."""

    def step(value):
        return value.bit_length() - 8  # 128 is 0

    space = bytearray(size)
    space[0x06], space[0x34] = 0x10, 0x60
    space[0x60] = 0x10
    space[0x64] = step(most)
    space[0x68:0x6A] = (step(payload) << 5 | step(read) << 12).to_bytes(2, "little")
    space[0x6C:0x70] = (generation | lanes << 4).to_bytes(4, "little")
    space[0x72:0x74] = (generation | lanes << 4).to_bytes(2, "little")
    if size > 256:
        space[0x100:0x104] = (0x000D | 1 << 16).to_bytes(4, "little")
        space[0x106] = 0x1D if acs else 0
    if windows:
        space[0x102:0x104] = (1 | 0xBB0 << 4).to_bytes(2, "little")
        space[0xBB0:0xBB4] = (0x0015 | 1 << 16).to_bytes(4, "little")
        space[0xBB4:0xBB8] = (1 << 4 + 4).to_bytes(4, "little")  # BAR 0: 16 MiB
        space[0xBB8:0xBBC] = (2 << 5).to_bytes(4, "little")  # two of them
        space[0xBBC:0xBC0] = (sum(windows) << 4).to_bytes(4, "little")
    return bytes(space)


class MadeUp(Sysfs):
    """Two sockets, each with a switch, two H100s and a ConnectX-7 below it, and one drive."""

    def __init__(self):
        super().__init__()
        self.gpus, self.cards, self.switch_ports = [], [], []
        model = "Intel(R) Xeon(R) Platinum 8480C"
        self.put("proc/cpuinfo", f"processor\t: 0\nmodel name\t: {model}\nflags\t\t: fpu vme lm")
        for node in range(2):
            self.node(node, f"{node * 2}-{node * 2 + 1}", 1_000_000_000)
            for cpu in range(2):
                self.cpu(node * 2 + cpu, node)
                here = f"sys/devices/system/cpu/cpu{node * 2 + cpu}/cpufreq"
                self.put(f"{here}/scaling_governor", "performance")
                self.put(f"{here}/scaling_driver", "intel_pstate")
        for node, up in enumerate(SWITCHES):
            self._under_switch(node, up)
        self.function("pci0000:15/0000:15:05.0", "060400", ROOT, node=0)
        self.drive = self.function(
            "pci0000:15/0000:15:05.0/0000:1f:00.0", "010802", DRIVE, node=0, link=(4, 4)
        )
        self.put(f"{self.drive}/nvme/nvme0/nvme0n1/size", 7501476528)
        for module in ("nvidia", "nvidia_fs", "nvidia_peermem", "ib_core"):
            self.put(f"sys/module/{module}/refcnt", 1)
        self.put("proc/sys/kernel/osrelease", "6.8.0-45-generic")
        self.put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module 570")

    def _under_switch(self, node, up):
        base = int(up[-7:-5], 16)
        self.function(up.rpartition("/")[0], "060400", ROOT, node=node)
        self.function(up, "060400", SWITCH, node=node)
        for at, code, numbers in (
            (1, "030200", H100),
            (2, "030200", H100),
            (3, "020700", CONNECTX_7),
        ):
            port = f"{up}/0000:{base + 1:02x}:0{at}.0"
            self.switch_ports.append(self.function(port, "060400", SWITCH, node=node))
            here = self.function(f"{port}/0000:{base + 1 + at:02x}:00.0", code, numbers, node=node)
            if numbers == H100:
                self.gpus.append(here)
                self.window(here, 128 * 2**30)
            else:
                self.cards.append(here)
                self.rdma(here, f"mlx5_{node}")

    def function(self, chain, code, numbers, *, node, link=(5, 16)):
        speed = (_GEN[link[0]], link[1])
        here = self.pci(chain, code, *numbers, link=speed, numa=node)
        self.put(f"{here}/config", config(generation=link[0], lanes=link[1]))
        address = chain.rpartition("/")[2]
        self.link(f"{here}/iommu_group", f"/sys/kernel/iommu_groups/{address}")
        self.put(f"sys/kernel/iommu_groups/{address}/type", "identity")
        return here

    def window(self, here, size):
        start = 0x38_0000_0000_0000
        bars = ["0x00000000a0000000 0x00000000a0ffffff 0x0000000000040200"]
        bars.append(f"0x{start:016x} 0x{start + size - 1:016x} 0x000000000014220c")
        self.put(f"{here}/resource", "\n".join(bars))

    def rdma(self, here, name):
        port = f"{here}/infiniband/{name}/ports/1"
        self.put(f"{port}/state", "4: ACTIVE")
        self.put(f"{port}/rate", "400 Gb/sec (4X NDR)")
        self.put(f"{port}/link_layer", "InfiniBand")
        self.put(f"{here}/net/ib{name[-1]}/speed", "400000")

    # --- what can be worse ------------------------------------------------------------------------

    def runs_at(self, here, generation, lanes):
        self.put(f"{here}/current_link_speed", _GEN[generation])
        self.put(f"{here}/current_link_width", lanes)

    def translates(self, word="DMA-FQ"):
        for path in [path for path in self.files if path.startswith("sys/kernel/iommu_groups/")]:
            self.put(path, word)

    def without(self, *beginnings):
        """Forget files and links whose paths begin so."""
        for held in (self.files, self.links):
            for path in [path for path in held if path.startswith(beginnings)]:
                del held[path]


def spoilt_host():
    """Return the host of docs/host.md: a narrow link, ACS on, and no way for cards into GPUs."""
    host = MadeUp()
    host.runs_at(host.gpus[0], 5, 8)
    host.runs_at(host.gpus[1], 1, 16)
    host.translates()
    for port in host.switch_ports:
        host.put(f"{port}/config", config(acs=True))
    host.window(host.gpus[2], 256 * 2**20)
    host.put(f"{host.gpus[2]}/config", config(windows=[256, 2**17]))
    host.without("sys/module/nvidia_peermem", "sys/devices/system/cpu/cpu0/cpufreq")
    host.without(*(f"sys/devices/system/cpu/cpu{cpu}/cpufreq" for cpu in range(1, 4)))
    host.put("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module 535")
    return host


def crowded_host():
    """Return a host that is set up well, with all that looks wrong in real ones and is not.

    GPUs take 256 bytes a packet, so all near them do; one saves power. A board's own network card,
    a console and an accelerator inside the CPU; drives behind a switch with ACS; a card whose
    second function is bonded into its first, with a virtual function; another that is handed on.
    """
    host = MadeUp()
    small = config(payload=256, most=256)
    for here in host.gpus:
        host.put(f"{here}/config", small)
    for here in (*host.switch_ports, *host.cards):
        host.put(f"{here}/config", config(payload=256))
    host.runs_at(host.gpus[3], 1, 16)
    node = {"node": 0}
    host.function("pci0000:00/0000:00:1c.0", "060400", ROOT, link=(2, 4), **node)
    for at in range(2):
        board = f"pci0000:00/0000:00:1c.0/0000:01:00.{at}"
        board = host.function(board, "020000", ("8086", "1521"), link=(2, 4), **node)
        host.put(f"{board}/net/eno{at}/speed", "1000")
    host.function("pci0000:00/0000:00:1d.0", "060400", ROOT, link=(2, 1), **node)
    host.function(
        "pci0000:00/0000:00:1d.0/0000:02:00.0", "030000", ("1a03", "2000"), link=(2, 1), **node
    )
    inside = host.function("pci0000:e7/0000:e7:01.0", "088000", ("8086", "0b25"), node=1)
    host.without(*(f"{inside}/{word}_link" for word in ("max", "current")))
    bay = "pci0000:c0/0000:c0:01.0"
    host.function(bay, "060400", ROOT, node=1)
    host.function(f"{bay}/0000:c1:00.0", "060400", SWITCH, node=1)
    for at in range(2):
        port = f"{bay}/0000:c1:00.0/0000:c2:0{at}.0"
        host.put(f"{host.function(port, '060400', SWITCH, node=1)}/config", config(acs=True))
        host.function(f"{port}/0000:{0xC3 + at:x}:00.0", "010802", DRIVE, node=1, link=(4, 4))
    card = host.cards[0].removeprefix("sys/devices/")
    second = host.function(f"{card[:-1]}1", "020700", CONNECTX_7, node=0)
    host.put(f"{second}/net/ib9/speed", "400000")
    virtual = host.function(f"{card[:-1]}2", "020700", ("15b3", "101e"), node=0)
    host.put(f"{virtual}/config", config(payload=128, most=128, read=128, generation=0, lanes=0))
    host.link(f"{virtual}/physfn", f"../{card.rpartition('/')[2]}")
    host.put(f"{second}/config", config(payload=256))
    host.function("pci0000:00/0000:00:05.0", "060400", ROOT, **node)
    away = host.function("pci0000:00/0000:00:05.0/0000:03:00.0", "020700", CONNECTX_7, **node)
    host.link(f"{away}/driver", "/sys/bus/pci/drivers/vfio-pci")
    host.put("sys/bus/pci/drivers/vfio-pci/new_id", "")
    return host
