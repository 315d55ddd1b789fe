"""PCI vendor and device numbers of parts in the catalogue, and what NVLink a compute level has.

Source: the PCI ID Repository, https://pci-ids.ucw.cz
"""

from __future__ import annotations

from typing import Final

NVIDIA, AMD, MELLANOX, AMAZON, BROADCOM, INTEL = (
    "10de", "1002", "15b3", "1d0f", "14e4", "8086",
)  # fmt: skip

_VENDORS: Final = {
    NVIDIA: "NVIDIA",
    AMD: "AMD",
    "1022": "AMD",
    MELLANOX: "Mellanox",
    AMAZON: "Amazon",
    BROADCOM: "Broadcom",
    "1000": "Broadcom",
    "10b5": "PLX",
    "11f8": "Microchip",
    INTEL: "Intel",
    "144d": "Samsung",
    "1344": "Micron",
}
# Compute capability, tens first: 90 is 9.0.
_NVLINKS: Final = {60: "1", 70: "2", 72: "2", 80: "3", 86: "ga102", 90: "4"}
_BLACKWELL: Final = 100


def _plain(number: str) -> str:
    return number.lower().removeprefix("0x").zfill(4)


def identify(vendor: str, device: str, *, ports: int = 1) -> str:
    """Return the catalogue's part of a PCI function, ``""`` when it has none.

    Parameters
    ----------
    vendor, device
        Hexadecimal, with or without ``0x``.
    ports
        How many network ports or functions were seen, which tells one-port cards from others.

    Examples
    --------
    >>> identify("0x10de", "0x2330"), identify("15b3", "1021", ports=2), identify("1234", "0001")
    ('h100-sxm-80gb', 'connectx-7-dual-port', '')
    """
    from topo.catalogue.index import part_names
    from topo.catalogue.pci_ids import pci_ids

    part = pci_ids().numbers.get((_plain(vendor), _plain(device)), "")
    dual = f"{part}-dual-port"
    return dual if part and ports > 1 and dual in part_names() else part


def generic_gpu(vendor: str) -> str:
    """Return the part of a GPU of which only the vendor is known.

    AMD's accelerators share what matters; of NVIDIA's, GeForce has no peer-to-peer.
    """
    return "amd-instinct" if _plain(vendor) == AMD else "gpu-unknown"


def numbers_of(part: str) -> tuple[str, str] | None:
    """Return vendor and device number of a part, `None` when they are not known."""
    from topo.catalogue.pci_ids import pci_ids

    single = part.removesuffix("-bridge").removesuffix("-200g")
    for name in (single, single.removesuffix("-dual-port")):
        for numbers, known in pci_ids().numbers.items():
            if known == name:
                return numbers
    return None


def vendor_name(vendor: str) -> str:
    """Return a vendor's name, or its number where it is not a frequent one."""
    return _VENDORS.get(_plain(vendor), f"vendor {_plain(vendor)}") if vendor else ""


def nvlink_of(compute: int | None) -> str:
    """Return the medium of a GPU's NVLinks by its compute level: 90 has ``nvlink 4``."""
    if compute is None:
        return "nvlink unknown"
    if compute >= _BLACKWELL:
        return "nvlink 5"
    return f"nvlink {_NVLINKS.get(compute, 'unknown')}"
