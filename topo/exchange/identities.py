"""PCI vendor and device numbers of parts in the catalogue, and what NVLink a compute level has.

Source: the PCI ID Repository, https://pci-ids.ucw.cz
"""

from __future__ import annotations

from typing import Final

__all__ = ["generic_gpu", "identify", "numbers_of", "nvlink_of", "vendor_name"]

NVIDIA, AMD, MELLANOX, AMAZON, BROADCOM, INTEL = (
    "10de", "1002", "15b3", "1d0f", "14e4", "8086",
)  # fmt: skip

# Where several numbers mean one part, the first is the one that is written.
_PARTS: Final[dict[tuple[str, str], str]] = {
    (NVIDIA, "15f8"): "p100-pcie-16gb",
    (NVIDIA, "15f9"): "p100-sxm-16gb",
    (NVIDIA, "1db6"): "v100-pcie-32gb",
    (NVIDIA, "1db1"): "v100-sxm-16gb",
    (NVIDIA, "1db5"): "v100-sxm-32gb",
    (NVIDIA, "1db8"): "v100-sxm-32gb",
    (NVIDIA, "1eb8"): "t4",
    (NVIDIA, "20b0"): "a100-sxm-40gb",
    (NVIDIA, "20b2"): "a100-sxm-80gb",
    (NVIDIA, "20b3"): "a100-sxm-80gb",
    (NVIDIA, "20f1"): "a100-pcie-40gb",
    (NVIDIA, "20b5"): "a100-pcie-80gb",
    (NVIDIA, "20b7"): "a30",
    (NVIDIA, "2236"): "a10",
    (NVIDIA, "2237"): "a10g",
    (NVIDIA, "2235"): "a40",
    (NVIDIA, "2230"): "rtx-a6000",
    (NVIDIA, "27b8"): "l4",
    (NVIDIA, "26ba"): "l20",
    (NVIDIA, "26b5"): "l40",
    (NVIDIA, "26b9"): "l40s",
    (NVIDIA, "26b1"): "rtx-6000-ada",
    (NVIDIA, "2330"): "h100-sxm-80gb",
    (NVIDIA, "2331"): "h100-pcie-80gb",
    (NVIDIA, "2321"): "h100-nvl-94gb",
    (NVIDIA, "2324"): "h800-sxm-80gb",
    (NVIDIA, "2329"): "h20-96gb",
    (NVIDIA, "2335"): "h200-sxm-141gb",
    (NVIDIA, "233b"): "h200-nvl-141gb",
    (NVIDIA, "2342"): "gh200-96gb",
    (NVIDIA, "2348"): "gh200-144gb",
    (NVIDIA, "2901"): "b200-sxm-180gb",
    (NVIDIA, "2504"): "rtx-3060",
    (NVIDIA, "2204"): "rtx-3090",
    (NVIDIA, "2684"): "rtx-4090",
    (NVIDIA, "2b85"): "rtx-5090",
    (AMD, "740f"): "mi210",
    (AMD, "740c"): "mi250x",
    (AMD, "7408"): "mi250x",
    (AMD, "74a1"): "mi300x",
    (AMD, "74b5"): "mi300x",
    (AMD, "74a5"): "mi325x",
    (MELLANOX, "1017"): "connectx-5",
    (MELLANOX, "1019"): "connectx-5-ex",
    (MELLANOX, "101b"): "connectx-6",
    (MELLANOX, "101d"): "connectx-6-dx-dual-port",
    (MELLANOX, "1021"): "connectx-7",
    (MELLANOX, "1023"): "connectx-8",
    (MELLANOX, "a2d6"): "bluefield-2-dual-port",
    (MELLANOX, "a2dc"): "bluefield-3",
    (AMAZON, "efa0"): "efa-100g",
    (AMAZON, "efa1"): "efa-100g",
    (BROADCOM, "1750"): "bcm57508-dual-port",
    (INTEL, "1592"): "e810-100g-dual-port",
}  # fmt: skip
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
    from topo.catalogue.load import catalogue

    part = _PARTS.get((_plain(vendor), _plain(device)), "")
    dual = f"{part}-dual-port"
    return dual if part and ports > 1 and dual in catalogue().parts else part


def generic_gpu(vendor: str) -> str:
    """Return the part of a GPU of which only the vendor is known.

    AMD's accelerators share what matters; of NVIDIA's, GeForce has no peer-to-peer.
    """
    return "amd-instinct" if _plain(vendor) == AMD else "gpu-unknown"


def numbers_of(part: str) -> tuple[str, str] | None:
    """Return vendor and device number of a part, `None` when they are not known."""
    single = part.removesuffix("-bridge").removesuffix("-200g")
    for name in (single, single.removesuffix("-dual-port")):
        for numbers, known in _PARTS.items():
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
