"""What hardware says it is: PCI numbers and words, PCIe speeds, compute capabilities, CPU names.

Data with its sources: ``data/pci-ids.yaml`` and ``data/processors.yaml``. Numbers of PCI may be
given with or without ``0x``, in capitals or small letters.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, cast

from topo.catalogue.kinds import Kind
from topo.catalogue.parts import DATA, catalogue, part_names
from topo.document.nodes import plain
from topo.document.parse import parse
from topo.records import dataclass

NVIDIA, AMD, AMD_CPU, INTEL, MELLANOX = "10de", "1002", "1022", "8086", "15b3"
_SAME_RATE: Final = 5e7  # bytes/s: nvidia-smi's rates of NVLinks differ by more
_BRACKETS: Final = re.compile(r"\[([^\[\]]{1,60})\]")


@dataclass(frozen=True, slots=True)
class Processor:
    """A CPU by its CPUID.

    Attributes
    ----------
    vendor
        In a word for names: ``intel``.
    title
        Vendor and generation, as far as known: ``Intel``, ``Sapphire Rapids``.
    like
        The part of the catalogue that such a CPU is like.
    cable
        What joins its sockets, ``""`` when that is not known.
    """

    vendor: str
    title: tuple[str, str]
    like: str
    cable: str


@cache
def _data(file: str) -> dict[str, Any]:
    text = (DATA / f"{file}.yaml").read_text(encoding="utf-8")
    return cast("dict[str, Any]", plain(parse(text, name=f"catalogue/{file}.yaml").root))


def pci_table(section: str) -> Mapping[str, Any]:
    """Return a table of ``data/pci-ids.yaml`` as it stands there.

    Examples
    --------
    >>> pci_table("numbers")["10de:2330"], pci_table("names")["connectx-7"]
    ('h100-sxm-80gb', 'connectx-7')
    """
    return cast("Mapping[str, Any]", _data("pci-ids")[section])


# --- PCI numbers and names --------------------------------------------------------------------


def identify(vendor: str, device: str, *, ports: int = 1) -> str:
    """Return the catalogue's part of a PCI function, ``""`` when it has none.

    Parameters
    ----------
    vendor, device
        Their numbers.
    ports
        How many network ports or functions there are, which tells one-port cards from others.

    Examples
    --------
    >>> identify("0x10de", "0x2330"), identify("15b3", "1021", ports=2), identify("1234", "0001")
    ('h100-sxm-80gb', 'connectx-7-dual-port', '')
    """
    return _by_ports(pci_table("numbers").get(_key(vendor, device), ""), ports)


def part_named(text: str, *, ports: int = 1) -> str:
    """Return the part that a name means by what stands in its brackets, ``""`` when none.

    Examples
    --------
    >>> part_named("Mellanox Technologies MT2910 Family [ConnectX-7]", ports=2)
    'connectx-7-dual-port'
    """
    names = pci_table("names")
    words = [bracketed.strip().lower() for bracketed in _BRACKETS.findall(text)]
    return _by_ports(next((names[word] for word in words if word in names), ""), ports)


def gpu_named(name: str) -> str:
    """Return the part of a GPU by what its driver calls it, ``""`` where that is not listed.

    A name that a table has cut off, with dots at its end, is that of the only part that it can be.

    Examples
    --------
    >>> gpu_named("NVIDIA H100 80GB HBM3"), gpu_named("Tesla V100-SXM2-16GB"), gpu_named("Acme")
    ('h100-sxm-80gb', 'v100-sxm-16gb', '')
    >>> gpu_named("NVIDIA H100 80GB H..."), gpu_named("Tesla V100-SXM2-...")
    ('h100-sxm-80gb', '')
    """
    plain = " ".join(name.lower().replace("-", " ").split()).removeprefix("nvidia ")
    names = {
        word: part
        for word, part in (dict(pci_table("names")) | dict(pci_table("driver-names"))).items()
        if catalogue().parts[part].kind == "gpu"
    }
    beginning = plain.rstrip(".\u2026 ")
    words = (plain, f"tesla {plain}", plain.removeprefix("tesla "))
    if beginning != plain:
        cut = tuple(word.rstrip(".\u2026 ") for word in words)
        parts = {part for word, part in names.items() if beginning and word.startswith(cut)}
        return parts.pop() if len(parts) == 1 else ""
    return next((names[word] for word in words if word in names), "")


def drive_named(model: str, size: float | None) -> str:
    """Return the part of the class that a drive's model is of, ``""`` where it is not listed.

    Of several sizes it is the nearest one.

    Examples
    --------
    >>> drive_named("SAMSUNG MZWLJ7T6HALA-00007", 7.68e12), drive_named("Acme 9000", 1e12)
    ('nvme-gen4-7.68tb', '')
    """
    classes = [str(_longest("drives", word)) for word in model.lower().split()]
    beginning = next((f"{of_class}-" for of_class in classes if of_class), "")
    parts = catalogue().parts.values()
    sizes = {
        part.name: figure.value
        for part in parts
        if beginning and part.name.startswith(beginning)
        if (figure := part.figure("size")) is not None and figure.value
    }
    return min(sizes, key=lambda part: abs(sizes[part] - (size or 0)), default="")


def _by_ports(part: str, ports: int) -> str:
    dual = f"{part}-dual-port"
    return dual if part and ports > 1 and dual in part_names() else part


def numbers_of(part: str) -> tuple[str, str] | None:
    """Return vendor and device number of a part, `None` when they are not known."""
    single = part.removesuffix("-bridge").removesuffix("-200g")
    for name in (single, single.removesuffix("-dual-port")):
        for key, listed_part in pci_table("numbers").items():
            if listed_part == name:
                vendor, _, device = key.partition(":")
                return vendor, device
    return None


def switch_of(vendor: str, device: str) -> str:
    """Return the part of a PCIe switch by its numbers, ``""`` when they are not listed."""
    return str(_longest("switches", _key(vendor, device)))


def generic_gpu(vendor: str) -> str:
    """Return the part of a GPU of which only the vendor is known.

    AMD's accelerators share what matters; of NVIDIA's, GeForce has no peer-to-peer.
    """
    return "amd-instinct" if _digits(vendor) == AMD else "gpu-unknown"


def vendor_name(vendor: str) -> str:
    """Return a vendor's name, or its number where it is not a frequent one."""
    number = _digits(vendor)
    row = pci_table("vendors").get(number, {})
    return str(row.get("name", f"vendor {number}")) if vendor else ""


def vendor_named(text: str) -> str:
    """Return a vendor's number by its name at the start of a text.

    Examples
    --------
    >>> vendor_named("NVIDIA Corporation GA102GL [A10]"), vendor_named("Acme")
    ('10de', '')
    """
    for number, row in pci_table("vendors").items():
        if "begins" in row and text.lower().startswith(row["begins"]):
            return number
    return ""


def class_named(words: str) -> str:
    """Return the class that lspci writes in words, ``""`` when it is none of interest.

    Examples
    --------
    >>> class_named("3D controller"), class_named("Non-Essential Instrumentation")
    ('0302', '')
    """
    words = words.strip().lower()
    codes = (code for code, row in pci_table("classes").items() if row.get("lspci") == words)
    return next(codes, "")


def kind_of_class(code: str) -> Kind | None:
    """Return the kind of device that a PCI class means by itself, `None` when it means none.

    Examples
    --------
    >>> kind_of_class("030200"), kind_of_class("030000")
    ('gpu', None)
    """
    row = _longest("classes", code.lower()) or {}
    return cast("Kind | None", row.get("kind"))


def role_of(vendor: str, device: str) -> str:
    """Return what a function is whose class does not tell: ``console``, ``fpga``, ``co-processor``.

    Examples
    --------
    >>> role_of("1002", "515e"), role_of("10de", "2330")
    ('console', '')
    """
    return str(_longest("roles", _key(vendor, device)))


def _digits(number: str) -> str:
    return number.lower().removeprefix("0x").zfill(4)


def _key(vendor: str, device: str) -> str:
    return f"{_digits(vendor)}:{_digits(device)}"


def _longest(section: str, key: str) -> Any:
    """Return the row whose own key is the longest beginning of `key`, ``""`` without one."""
    table = pci_table(section)
    beginnings = [beginning for beginning in table if key.startswith(beginning)]
    return table[max(beginnings, key=len)] if beginnings else ""


# --- PCIe generations ---------------------------------------------------------------------------


@cache
def _lanes() -> dict[int, tuple[float, float]]:
    """Return by generation a lane's transfers/s and its bytes/s."""
    lanes = {}
    for name in catalogue().media:
        family, _, generation = name.partition(" ")
        if family == "pcie":
            medium = catalogue().media[name]
            assert medium.transfer_rate is not None
            assert medium.transfer_rate.value is not None
            assert medium.rate is not None
            assert medium.rate.value is not None
            lanes[int(generation)] = medium.transfer_rate.value, medium.rate.value
    return lanes


def generations() -> tuple[int, ...]:
    """Return the PCIe generations that there are, the oldest first."""
    return tuple(_lanes())


def transfer_rate(generation: int) -> float:
    """Return the transfers/s of a lane.

    Examples
    --------
    >>> transfer_rate(5) / 1e9
    32.0
    """
    return _lanes()[generation][0]


def lane_rate(generation: int) -> float:
    """Return the bytes/s of a lane in one direction, coding taken off.

    Examples
    --------
    >>> [round(lane_rate(generation) / 1e9, 3) for generation in (3, 4, 5, 6)]
    [0.985, 1.969, 3.938, 7.375]
    """
    return _lanes()[generation][1]


def generation_of_transfer_rate(transfers_per_s: float) -> int | None:
    """Return the generation whose lanes move so many transfers/s, `None` when none does.

    Examples
    --------
    >>> generation_of_transfer_rate(16e9), generation_of_transfer_rate(3e9)
    (4, None)
    """
    return {rate: generation for generation, (rate, _) in _lanes().items()}.get(transfers_per_s)


# --- processors -------------------------------------------------------------------------------


def nvlink_of(compute: int | None) -> str:
    """Return the medium of a GPU's NVLinks by its compute capability: 90 has ``nvlink 4``."""
    media: dict[str, str] = _data("processors")["nvlink"]
    if compute is None:
        return "nvlink unknown"
    newest, medium = list(media.items())[-1]
    return media.get(str(compute), medium if compute > int(newest) else "nvlink unknown")


def nvlink_of_rate(rate: float) -> str:
    """Return the medium of NVLinks of a rate that `nvidia-smi nvlink` prints, ``""`` for others.

    Examples
    --------
    >>> nvlink_of_rate(26.562e9), nvlink_of_rate(3e9)
    ('nvlink 4', '')
    """
    rates: dict[str, str] = _data("processors")["nvlink-rates"]
    return next(
        (medium for text, medium in rates.items() if abs(rate - float(text) * 1e9) < _SAME_RATE), ""
    )


def compute_of(medium: str) -> str:
    """Return the compute capability that first had such NVLinks, ``""`` when there is none."""
    media: dict[str, str] = _data("processors")["nvlink"]
    return next((compute for compute, name in media.items() if name == medium), "")


def processor(vendor: str, family: int | None, model: int | None) -> Processor | None:
    """Return what a CPU is by CPUID, `None` for an unknown vendor.

    Parameters
    ----------
    vendor
        CPUID's: ``GenuineIntel``.
    family, model
        `None` where unknown; then the vendor decides.
    """
    table = _data("processors")
    maker = table["vendors"].get(vendor)
    if maker is None:
        return None
    row = maker
    if family is not None and model is not None:
        fitting = (
            row
            for row in table["families"]
            if row["vendor"] == vendor
            and ("family" not in row or family == int(row["family"], 0))
            and model >= int(row.get("model", "0"), 0)
        )
        row = next(fitting, maker)
    models = [int(text, 0) for text in row.get("models", ())]
    is_named = not models or model in models
    return Processor(
        vendor=maker["short"],
        title=(maker["name"], row.get("title", "") if is_named else ""),
        like=row.get("like", "cpu-unknown") if is_named else "cpu-unknown",
        cable=row.get("cable", ""),
    )


def vendor_of_processor(word: str) -> str:
    """Return CPUID's vendor for its short word: ``GenuineIntel`` for ``intel``, ``""`` for none."""
    vendors = _data("processors")["vendors"]
    return next((vendor for vendor, row in vendors.items() if row["short"] == word), "")


def processor_named(name: str) -> tuple[str, str]:
    """Return the part that a CPU of this name is like, and what joins its sockets.

    Examples
    --------
    >>> processor_named("Intel Xeon Platinum 8174"), processor_named("A64FX")
    (('xeon-scalable', 'upi unknown'), ('cpu-unknown', ''))
    """
    row = _matching("names", name)
    return row.get("like", "cpu-unknown"), row.get("cable", "")


def architecture_named(name: str) -> str:
    """Return ``x86`` or ``arm`` by a CPU's name, ``""`` when it does not tell."""
    return _matching("architectures", name).get("architecture", "")


def _matching(section: str, name: str) -> dict[str, str]:
    rows: list[dict[str, str]] = _data("processors")[section]
    return next((row for row in rows if re.search(row["pattern"], name)), {})
