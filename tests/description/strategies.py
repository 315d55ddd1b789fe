"""Hypothesis strategies: documents that mean something, and documents that mean nothing."""

from __future__ import annotations

from hypothesis import strategies as st

from topo.description.keys import DATA_PATH, DEVICE, SETTINGS, TOP, USE, WORKLOAD

_WORDS = (
    "",
    "1",
    "0",
    "yes",
    "unknown",
    "unlimited",
    "gpu",
    "gpu0",
    "gpu[0-1]",
    "storage",
    "storage -- gpu",
    "gpu -- gpu all to all",
    "ram -> gpu",
    "l40s",
    "nvme-of-target",
    "pcie 5 x16",
    "2x infiniband ndr",
    "640 GB",
    "90 GB/s",
    "7 s",
    "80 %",
    "60-80 %",
    "direct",
    "legacy",
    "storage -> gpu by nic",
    "load via direct <= 7 s",
    "gpu0 to gpu1 is SYS",
    "1b:00.0",
    "0-3",
    "off",
    "x-y",
    "like",
    "kind",
    "medium",
    "rate",
    "value",
    "source",
    "dgx-h100",
    "./node.yaml",
    "pcie 5",
    *TOP,
    *DEVICE,
    *USE,
    *SETTINGS,
    *WORKLOAD,
    *DATA_PATH,
)
_SCALARS = st.one_of(
    st.sampled_from(_WORDS),
    st.text(max_size=6),
    st.integers(-2, 5),
    st.booleans(),
    st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)


def values():
    """Generate anything that JSON holds, mostly of words that mean something to topo."""
    return st.recursive(
        _SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(_WORDS) | st.text(max_size=5), inner, max_size=4),
        ),
        max_leaves=12,
    )


def documents():
    """Generate mappings with a topology's own keys and whatever below."""
    sections = st.dictionaries(st.sampled_from(tuple(TOP)), values(), max_size=5)
    return sections.map(lambda found: {**found, "topo": 1})


# --- documents that mean something ----------------------------------------------------------------

_RATES = st.integers(1, 2000).map(lambda rate: f"{rate / 10:g} GB/s")
_RATIOS = st.integers(1, 100).map(lambda ratio: f"{ratio} %")
_FIGURES = st.one_of(
    _RATES,
    st.sampled_from(["unknown", "unlimited"]),
    st.builds(
        lambda value, source, kind: {"value": value, "source": source, "kind": kind},
        _RATES,
        st.sampled_from(["a sheet", "our bench, 2 runs", "x:7"]),
        st.sampled_from(["datasheet", "measured", "quoted", "guess"]),
    ),
)


def _some(**entries):
    """Generate a mapping with any of the entries; ``_`` in a key is ``-``."""
    named = {key.replace("_", "-"): value for key, value in entries.items()}
    return st.fixed_dictionaries({}, optional=named)


_CAPS = st.one_of(
    st.sampled_from(["no", "yes", "unknown"]),
    st.builds(
        lambda posted, flow: {"posted": posted + " per flow" * flow, "non-posted": "5 GB/s"},
        _RATES,
        st.booleans(),
    ),
)
_STORAGE = _some(read=_FIGURES, write=_FIGURES, efficiency=_RATIOS, title=st.just("mine"))
_GPU = _some(
    pcie=st.sampled_from(["4 x16", "5 x8", "5"]),
    memory=st.sampled_from(["80 GB", "94 GB", "unknown"]),
    p2p=_CAPS,
    label=st.sampled_from(["left", "1"]),
    role=st.just("compute"),
    fabric=st.sampled_from(["12x nvlink 3", "7x xgmi 64 GB/s"]),
)
_NIC = _some(
    chip=_RATES,
    ports=st.sampled_from(["2", "unknown", "2x 200 Gb/s", "4x infiniband ndr"]),
    bridge=st.sampled_from(["yes", "no"]),
    p2p=_CAPS,
    slot=st.just("PCIE1"),
    source=st.just("our sheet"),
)
_MEMORY = _some(
    channels=st.integers(1, 12),
    dimms_per_channel=st.sampled_from([1, 2]),
    transfer_rate=st.just("4.4 GT/s"),
    efficiency=_RATIOS,
)
_CABLES = st.one_of(
    st.sampled_from(["pcie 5 x16", "pcie 4 x8", "2x pcie 5 x16", "pcie unknown x16"]),
    st.builds(
        lambda efficiency, caps: {
            "medium": "pcie 5 x16",
            "efficiency": efficiency,
            **({"p2p": caps} if isinstance(caps, dict) else {}),
        },
        _RATIOS,
        _CAPS,
    ),
)
_WORKLOADS = st.builds(
    lambda size, rest: {"read": size, "from": "storage", "to": "gpu", **rest},
    st.sampled_from(["640 GB", "80 GB each", "1.28 TB", "0.1 GB"]),
    _some(
        via=st.lists(st.sampled_from(["direct", "legacy", "own"]), min_size=1, max_size=3),
        efficiency=st.sampled_from(["60-80 %", "70 %"]),
        weight=st.sampled_from(["2", "0.3"]),
        limit=_RATES,
        start=st.sampled_from(["1.5 s", "20 ms"]),
    ),
)
_MOVES = ("storage -> user-buffer by nic", "user-buffer -> gpu by gpu")
_OWN = st.builds(
    lambda rate, rest: {"moves": [{_MOVES[0]: rate}, _MOVES[1]], **rest},
    st.sampled_from(["3.91 GB/s", "3.91 GB/s per worker"]),
    _some(
        stages=st.sampled_from(["serial", "pipelined"]),
        workers=st.integers(1, 9),
        needs=st.just(["rdma", "c2c"]),
        falls_back_to=st.just("legacy"),
        source=st.just("notes"),
        title=st.just("mine"),
    ),
)
_MEDIA = st.sampled_from(
    [
        {},
        {"pcie 5": {"efficiency": "70 %", "source": "ours"}},
        {"pcie 4": {"rate": "1.9 GB/s", "per-lane": "yes"}},
        {"slingshot": {"reach": "network", "rate": "200 Gb/s"}},
        {"cable": {"like": "upi", "bytes-per-transfer": 4}},
    ]
)


@st.composite
def machines(draw):
    """Generate a small machine that loads, with parts, media and data paths of its own."""
    return {
        "topo": 1,
        "name": draw(st.sampled_from(["box", "lab 7"])),
        "parts": {
            "acme": {"like": "nvme-of-target", **draw(_STORAGE)},
            "acme-2": {"like": "acme", **draw(_STORAGE)},
            "raw": {"kind": "storage", "read": "9 GB/s", "write": "unknown", **draw(_STORAGE)},
            "l40s": {"like": "l40s", **draw(_some(memory=st.just("96 GB")))},
        },
        "media": draw(_MEDIA),
        "data-paths": {"own": draw(_OWN), "legacy": draw(_some(workers=st.integers(1, 4)))},
        "settings": draw(_some(iommu=st.sampled_from(["on", "off"]), filesystem=st.just("nfs"))),
        "devices": {
            "storage": {"part": draw(st.sampled_from(["acme", "acme-2", "raw"])), **draw(_STORAGE)},
            "cpu0": {"part": "epyc-7742", **draw(_some(numa=st.just("0-3"), p2p=_CAPS))},
            "ram0": {"part": "ddr5-4800", "channels": 8, **draw(_MEMORY)},
            "nic[0-1]": {"part": "connectx-7", "pci": ["1a:00.0", "1b:00.0"], **draw(_NIC)},
            "gpu[0-3]": {"part": draw(st.sampled_from(["l40s", "mi300x"])), **draw(_GPU)},
        },
        "links": [
            {"storage -- nic": "infiniband ndr"},
            {"nic0/p1 -- storage": "ethernet 400 Gb/s"},
            {"nic -- cpu0": draw(_CABLES)},
            {"gpu -- cpu0": draw(_CABLES)},
            {"ram0 -- cpu0": "memory-bus"},
            {"gpu -- gpu all to all": "xgmi 64 GB/s"},
        ],
        "measured": [{"ram0 -> gpu": draw(_RATES)}],
        "workloads": {"load": draw(_WORKLOADS)},
        "expect": ["load via direct <= 7 s at measured", "gpu0 to nic0 is SYS"],
    }
