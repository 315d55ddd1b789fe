"""What a PCI function is: by its class and vendor, else by the words that lspci has for it.

Source: the PCI ID Repository, https://pci-ids.ucw.cz, for classes, vendors and names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from topo.catalogue.identities import (
    AMD,
    INTEL,
    MELLANOX,
    NVIDIA,
    identify,
    kind_of_class,
    role_of,
)

if TYPE_CHECKING:
    from topo.catalogue.kinds import Kind
    from topo.discovery.pci import Function


# Words in a name without a class (`lspci -tv`), in order: the first that is there decides.
_WORDS: Final[tuple[tuple[str, Kind | None], ...]] = (
    (r"audio|usb|ucsi|serial bus|smbus|aspeed|matrox|cirrus|virtio gpu", None),
    (r"nvswitch", "nvswitch"),
    (r"raid controller|megaraid|\bsas\b|tri-mode", "hba"),
    (r"nvme|non-volatile|ssd controller", "nvme"),
    (r"connectx|infiniband|ethernet|bluefield|\bnic\b|elastic fabric|omni-path|mlx5gen", "nic"),
    (r"^nvidia|instinct|aldebaran|\bmi\d{3}\b|gaudi", "gpu"),
)


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
        return "gpu" if role_of(vendor, function.device) == "co-processor" else None
    if code.startswith("0280"):
        return "nic" if vendor == MELLANOX or function.rdma else None
    if code.startswith("12") and role_of(vendor, function.device) == "fpga":
        return None
    return kind_of_class(code)


def _is_gpu(function: Function) -> bool:
    """Whether something with a screen's class is a GPU to compute on."""
    vendor = function.vendor.lower()
    if vendor == INTEL:  # one that is built in sits on the root bus
        return not function.address.endswith(":00:02.0")
    return vendor == NVIDIA or (vendor == AMD and role_of(vendor, function.device) != "console")


def _by_numbers(function: Function) -> Kind | None:
    from topo.catalogue.load import catalogue

    part = identify(function.vendor or "0", function.device or "0")
    return catalogue().parts[part].kind if part else None


def _by_words(text: str) -> Kind | None:
    plain = text.lower()
    return next((kind for words, kind in _WORDS if re.search(words, plain)), None)
