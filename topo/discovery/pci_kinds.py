"""What a PCI function is: by its class and vendor, else by the words that lspci has for it.

Source: the PCI ID Repository, https://pci-ids.ucw.cz, for classes, vendors and names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.discovery.identities import identify

if TYPE_CHECKING:
    from topo.catalogue.kinds import Kind
    from topo.discovery.pci import Function


NVIDIA, AMD, INTEL, MELLANOX = "10de", "1002", "8086", "15b3"
_CLASSES: Final[tuple[tuple[str, Kind], ...]] = (
    ("0302", "gpu"),
    ("12", "gpu"),
    ("0200", "nic"),
    ("0207", "nic"),
    ("0208", "nic"),
    ("0c06", "nic"),
    ("0108", "nvme"),
    ("0100", "hba"),
    ("0104", "hba"),
    ("0107", "hba"),
    ("0502", "cxl-memory"),
)
_NOT_GPUS: Final = ("10ee", "1172")  # FPGAs are processing accelerators too
# The picture of a management port: ES1000, Rage XL and FirePro of a board, and the like.
_CONSOLES: Final = frozenset({"515e", "5969", "4752", "4759", "5159"})
_COPROCESSORS: Final = (("1bcf", ""), (INTEL, "225"))  # NEC's vector engines, Xeon Phi
_CLASS_NAMES: Final = {
    "3d controller": "0302",
    "vga compatible controller": "0300",
    "display controller": "0380",
    "ethernet controller": "0200",
    "infiniband controller": "0207",
    "infiniband": "0c06",
    "network controller": "0280",
    "fabric controller": "0208",
    "non-volatile memory controller": "0108",
    "raid bus controller": "0104",
    "serial attached scsi controller": "0107",
    "scsi storage controller": "0100",
    "sata controller": "0106",
    "ide interface": "0101",
    "processing accelerators": "1200",
    "co-processor": "0b40",
    "host bridge": "0600",
    "pci bridge": "0604",
    "bridge": "0680",
    "cxl": "0502",
    "memory controller": "0580",
    "audio device": "0403",
    "usb controller": "0c03",
}
_VENDOR_NAMES: Final = (
    ("nvidia", NVIDIA),
    ("mellanox", MELLANOX),
    ("advanced micro devices, inc. [amd/ati]", AMD),
    ("advanced micro devices", "1022"),
    ("intel", INTEL),
    ("broadcom", "14e4"),
    ("amazon", "1d0f"),
    ("samsung", "144d"),
    ("micron", "1344"),
    ("aspeed", "1a03"),
    ("matrox", "102b"),
    ("nec corporation", "1bcf"),
)
# Words in a name without a class (`lspci -tv`), in order: the first that is there decides.
_WORDS: Final[tuple[tuple[str, Kind | None], ...]] = (
    (r"audio|usb|ucsi|serial bus|smbus|aspeed|matrox|cirrus|virtio gpu", None),
    (r"nvswitch", "nvswitch"),
    (r"raid controller|megaraid|\bsas\b|tri-mode", "hba"),
    (r"nvme|non-volatile|ssd controller", "nvme"),
    (r"connectx|infiniband|ethernet|bluefield|\bnic\b|elastic fabric|omni-path|mlx5gen", "nic"),
    (r"^nvidia|instinct|aldebaran|\bmi\d{3}\b|gaudi", "gpu"),
)
_BRACKETS: Final = re.compile(r"\[([^\[\]]{1,60})\]")


def is_bridge(function: Function) -> bool:
    """Whether a function is a PCI-to-PCI bridge: a port, of a switch or a root."""
    return bool(function.port) or function.code[:4] in ("0604", "0609")


def kind_of(function: Function) -> Kind | None:
    """Return the kind of device a function is part of, `None` when topo does not model it."""
    code, vendor = function.code.lower(), function.vendor.lower()
    if "nvswitch" in function.text.lower() or (code.startswith("0680") and vendor == NVIDIA):
        return "nvswitch"
    if not code.strip("0"):
        return _by_numbers(function) or _by_words(function.text)
    if code.startswith(("0300", "0380")):
        return "gpu" if _is_gpu(function) else None
    if code.startswith("0b40"):
        own = any(vendor == one and function.device.startswith(at) for one, at in _COPROCESSORS)
        return "gpu" if own else None
    if code.startswith("0280"):
        return "nic" if vendor == MELLANOX or function.rdma else None
    if code.startswith("12") and vendor in _NOT_GPUS:
        return None
    return next((kind for start, kind in _CLASSES if code.startswith(start)), None)


def _is_gpu(function: Function) -> bool:
    """Whether something with a screen's class is a GPU to compute on."""
    vendor = function.vendor.lower()
    if vendor == INTEL:  # one that is built in sits on the root bus
        return not function.address.endswith(":00:02.0")
    return vendor == NVIDIA or (vendor == AMD and function.device not in _CONSOLES)


def _by_numbers(function: Function) -> Kind | None:
    from topo.catalogue.load import catalogue

    part = identify(function.vendor or "0", function.device or "0")
    return catalogue().parts[part].kind if part else None


def _by_words(text: str) -> Kind | None:
    plain = text.lower()
    return next((kind for words, kind in _WORDS if re.search(words, plain)), None)


def class_named(words: str) -> str:
    """Return the class that lspci writes in words, ``""`` when it is none of interest.

    Examples
    --------
    >>> class_named("3D controller"), class_named("Non-Essential Instrumentation")
    ('0302', '')
    """
    return _CLASS_NAMES.get(words.strip().lower(), "")


def vendor_named(text: str) -> str:
    """Return a vendor's number by its name at the start of a text.

    Examples
    --------
    >>> vendor_named("NVIDIA Corporation GA102GL [A10]"), vendor_named("Acme")
    ('10de', '')
    """
    plain = text.lower()
    return next((number for name, number in _VENDOR_NAMES if plain.startswith(name)), "")


def part_named(text: str, *, ports: int = 1) -> str:
    """Return the part that a name means by what stands in its brackets, ``""`` when none.

    Examples
    --------
    >>> part_named("Mellanox Technologies MT2910 Family [ConnectX-7]", ports=2)
    'connectx-7-dual-port'
    """
    from topo.catalogue.index import part_names
    from topo.catalogue.pci_ids import pci_ids

    names = pci_ids().names
    plain = [found.strip().lower() for found in _BRACKETS.findall(text)]
    part = next((names[name] for name in plain if name in names), "")
    dual = f"{part}-dual-port"
    return dual if part and ports > 1 and dual in part_names() else part
