"""Foreign files: what kind each is, so that a wrong one is named for what it is.

A new importer is a module of `topo.discovery.sources`, a line of `KINDS`, and what its files are
known by.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Final

from topo.discovery.foreign import unquoted
from topo.records import dataclass

# Each module has `read(data: bytes, name: str) -> Machine`; messages call the file by `name`.
KINDS: Final = {
    "nccl": "topo.discovery.sources.nccl",
    "nccl-log": "topo.discovery.sources.nccl_log",
    "nvidia-smi": "topo.discovery.sources.nvidia_smi",
    "hwloc": "topo.discovery.sources.hwloc",
    "lstopo": "topo.discovery.sources.lstopo_text",
    "lspci": "topo.discovery.sources.lspci",
    "sysfs": "topo.discovery.sources.sysfs",
    "rocm-smi": "topo.discovery.sources.rocm_smi",
    "npu-smi": "topo.discovery.sources.nvidia_smi",
    "xpu-smi": "topo.discovery.sources.nvidia_smi",
    "mx-smi": "topo.discovery.sources.nvidia_smi",
    "mthreads-gmi": "topo.discovery.sources.nvidia_smi",
    "hl-smi": "topo.discovery.sources.hl_smi",
    "amd-smi": "topo.discovery.sources.amd_smi",
    "infragraph": "topo.discovery.sources.infragraph",
    "ibnetdiscover": "topo.discovery.sources.ibnetdiscover",
    "redfish": "topo.discovery.sources.redfish",
    "ibstat": "topo.discovery.sources.rdma_ports",
    "dmidecode": "topo.discovery.sources.dmidecode",
    "numactl": "topo.discovery.sources.numa_nodes",
    "nvme": "topo.discovery.sources.nvme_list",
    "lsblk": "topo.discovery.sources.block_devices",
    "gpus": "topo.discovery.sources.gpu_list",
    "nvidia-smi-q": "topo.discovery.sources.nvidia_query",
    "nvlink": "topo.discovery.sources.nvlink_status",
    "p2p": "topo.discovery.sources.peer_matrix",
    "ethtool": "topo.discovery.sources.ethtool",
}
_HEAD: Final = 65536  # bytes that are looked at to tell a file's kind


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is.

    Parameters
    ----------
    importer
        Which one reads it, ``""`` when none does.
    words
        The same in words.
    help
        What to give instead, where that is known.
    """

    importer: str
    words: str
    help: str = ""

    @property
    def recognised(self) -> bool:
        """Whether anything in the file told what it is."""
        return self is not _UNKNOWN

    @property
    def is_weak(self) -> bool:
        """Whether what it is known by stands in the output of others too."""
        return self is _HEADER

    @property
    def may_have_others(self) -> bool:
        """Whether it is a text in which the output of several tools can stand."""
        return self.words == YAML or self in (_UNKNOWN, *_PRINTED) or self.words.startswith(_MARKUP)


_ROOT: Final = re.compile(rb"<\s*([A-Za-z_][\w:.-]{0,60})")
_PROLOG: Final = re.compile(rb"\s*(<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(\[.*?\]\s*)?>)", re.DOTALL)
_ROOTS: Final = {
    b"system": FileKind("nccl", "an NCCL topology file"),
    b"cpu": FileKind("", "a piece of an NCCL topology file without its <system>"),
    b"graphs": FileKind("", "an NCCL graph dump (NCCL_GRAPH_DUMP_FILE), not a topology"),
    b"topology": FileKind("hwloc", "an hwloc XML file"),
    b"nvidia_smi_log": FileKind("nvidia-smi-q", "XML of nvidia-smi -q -x"),
    b"svg": FileKind("", "an SVG picture"),
    b"html": FileKind("", "a web page"),
    b"mxfile": FileKind("", "a draw.io drawing"),
    b"platform": FileKind("", "a SimGrid platform"),
    b"graphml": FileKind("", "a GraphML file"),
    b"sys-sage": FileKind("", "a sys-sage file"),
}
YAML: Final = "a YAML file"  # of which nothing more is told
_COLOURS: Final = re.compile(rb"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# In this order: the first that is found says what it is.
_TEXTS: Final = (
    (
        rb"(?m)^[ \t]*(?:Switch|Ca)[ \t]+\d+[ \t]+\"[SH]-",
        "ibnetdiscover",
        "output of ibnetdiscover",
    ),
    (
        rb"(?m)^[ \t]*(ACCESS|WEIGHT|HOPS|LINK TYPE|NUMA BW) TABLE[ \t]*:",
        "amd-smi",
        "output of amd-smi topology",
    ),
    (
        rb"(?m)^[ \t]*=+[ \t]*ROCm System Management|GPU\[\d+\]\s*:|\"\(Topology\) ",
        "rocm-smi",
        "output of rocm-smi",
    ),
    (
        (
            rb"(?m)^[ \t]*GPU\d+[ \t]+((X|OK|CNS|GNS|TNS|NS|DR|U)[ \t]+)*(OK|CNS|GNS|TNS|NS|DR)\b"
            rb"|^[ \t]*OK[ \t]*= Status Ok"
        ),
        "p2p",
        "output of nvidia-smi topo -p2p",
    ),
    (
        rb"(?m)^[ \t>|]*((CA:?|Infiniband device) '|hca_id:|link \w+/\d)|\bport +\d.{0,40}=> *\w",
        "ibstat",
        "what RDMA tools tell of ports",
    ),
    (
        rb"(?m)^[ \t>|]*(Handle 0x\w+, DMI type|# dmidecode \d|System Slot Info|Memory Device)",
        "dmidecode",
        "output of dmidecode",
    ),
    (
        rb"(?m)^[ \t>|]*(Node +(Generic +)?SN +Model|Subsystem +Subsystem-NQN|Device +.*\bTxPort )",
        "nvme",
        "output of nvme list",
    ),
    (
        (
            rb"(?m)^[ \t]*K?NAME[ \t]+([A-Z:-]+[ \t]+)*(MAJ:MIN|MODEL|TRAN|ROTA)\b"
            rb"|^[ \t]*K?NAME=\"[\w/-]+\" "
        ),
        "lsblk",
        "output of lsblk",
    ),
    (
        rb"(?m)^[ \t]*(NPU|Phy-ID)\d+[ \t]+((NPU|Phy-ID)\d|(X|SYS|P[HX]B|PIX|HCCS|SIO|UB|NA)\b)",
        "npu-smi",
        "output of npu-smi info -t topo",
    ),
    (
        rb"(?m)^[ \t]*GPU \d+/\d+[ \t]+(GPU \d+/\d|(S|SYS|NODE|MDF|XL\d+)\b|XL\*)",
        "xpu-smi",
        "output of xpu-smi topology -m",
    ),
    (rb"(?m)^[ \t]*GPU\d+[ \t]+([A-Z]+[ \t]+)*MX\b", "mx-smi", "output of mx-smi topo -m"),
    (
        rb"(?m)^[ \t]*GPU\d+[ \t]+([A-Z]+[ \t]+)*MT\d{1,2}\b",
        "mthreads-gmi",
        "output of mthreads-gmi topo -m",
    ),
    (rb"(?m)^[ \t]*modID[ \t]+(CPU|NUMA) Affinity", "hl-smi", "output of hl-smi topo"),
    (
        rb"(?m)^[ \t]*MLU\d+[ \t]+((MLU\d+|X|SELF|MLK|MUL|CPU|SYS|PIX|PXB|PHB|NODE)\b[ \t]*)+",
        "",
        "output of cnmon topo -m (Cambricon), whose codes topo does not know",
        "run `lspci -tv` and `lspci -vvv`",
    ),
    (rb"(?m)^[ \t]*(GPU|NIC|mlx)\w*[ \t]+.*\bX\b", "nvidia-smi", "output of nvidia-smi topo -m"),
    (rb"(?m)^[ \t]*(GPU\d+[ \t]+)+[^\n]*$", "nvidia-smi", "a matrix of nvidia-smi"),
    (
        rb"(?m)^[-+\\| \t]*-\[(?:[0-9a-f]{4,8}:[0-9a-f]{2}|[0-9a-f]{2}\]-)",
        "lspci",
        "output of lspci -tv",
    ),
    (
        rb"(?mi)^[ \t]{0,4}(?:Slot|Device):\s+(?:[0-9a-f]{4,8}:)?[0-9a-f:]{5}\.[0-7][ \t\r]*$",
        "lspci",
        "output of lspci -vmm",
    ),
    (rb"(?m)^(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] \S", "lspci", "output of lspci"),
    (
        rb"(?m)^[ \t>|]*(available: \d+ nodes?|node \d+ cpus:|Model name:[ \t]|Socket\(s\):[ \t])",
        "numactl",
        "output of numactl --hardware or lscpu",
    ),
    (
        rb"(?m)^[ \t]*(?:Machine \(\w|Package L#\d|HostBridge(?: L#\d+)?[ \t\r]*$)",
        "lstopo",
        "text of lstopo",
    ),
    (
        rb"(?mi)^[ \t]*GPU ([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7][ \t\r\\]*$",
        "nvidia-smi-q",
        "output of nvidia-smi -q",
    ),
    (
        (
            rb"(?mi)^[ \t]*(GPU \d{1,3}:[^\n]*\n[ \t]*)?(Link \d{1,2}(, \w.{0,60}: (true|false)"
            rb"|: *(\d{1,4}(\.\d+)? GB/s|<?inactive|Remote Device|[0-9a-f]{4,8}:[0-9a-f]{2}:"
            rb"|(Replay|Recovery|CRC)\b))|.{0,60}\ball links are inactive)"
        ),
        "nvlink",
        "output of nvidia-smi nvlink",
    ),
    (rb"(?m)^[ \t]*\| NVIDIA-SMI ", "gpus", "the table of nvidia-smi"),
    (rb"(?m)^[ \t]*Settings for [\w.@-]+:[ \t\r]*$", "ethtool", "output of ethtool"),
    (rb"(?m)^[ \t]*(GPU models.{0,30}: *)?GPU \d[\d,]{0,99}: +[A-Z]", "gpus", "a list of GPUs"),
    (rb"(?m)^[ \t]*(?=.*\bname\b)(index|name|\w*\.?bus_id), ", "gpus", "a query of nvidia-smi"),
    (
        rb"(?m)^topo:[ \t]*1\b",
        "",
        "a topology file of topo",
        "it needs no import: `topo show FILE`",
    ),
    (
        rb"(?m)^(?:devices|components):[ \t]*\n(?:.*\n){0,60}?.*[ \t,{-]choice:[ \t]*\w",
        "infragraph",
        "an InfraGraph file",
    ),
    (rb"CCL INFO |=== System : max(Bw|Width)", "nccl-log", "a log of NCCL"),
    (rb"GDS release version|DRIVER CONFIGURATION", "", "output of gdscheck"),
    (rb"IoType: \w+ XferType:", "", "output of gdsio, for `topo measure`"),
    (
        (
            rb"directional P2P=\w+ Bandwidth|\b(Host|Device) to (Host|Device) Bandwidth, \d"
            rb"|directional copy (peak|average) bandwidth GB/s|\bRunning \w+_memcpy_\w+\."
            rb"|\balgbw +busbw\b|#bytes +#iterations +BW|\bRun status group \d"
            rb"|\bIOR-\d\S*: MPI |\bOPERATION +RESULT TYPE +FIRST DONE"
        ),
        "",
        "output of a benchmark, for `topo measure`",
    ),
    (rb'"@odata\.(?:id|type)"', "redfish", "Redfish resources"),
    (rb"strict graph|digraph", "", "a Graphviz file"),
    (rb"\A(?:\s*#[^\n]*\n|---\n|\s*\n)*[\w-]+:(?:[ \t]|\r?\n)", "", YAML),
)
_TEXT_KINDS: Final = tuple((re.compile(pattern), FileKind(*words)) for pattern, *words in _TEXTS)
_HEADER: Final = next(kind for _, kind in _TEXT_KINDS if kind.words == "a matrix of nvidia-smi")
_WRITTEN: Final = ("a topology file of topo", "an InfraGraph file", "a Graphviz file", YAML)
_PRINTED: Final = tuple(kind for _, kind in _TEXT_KINDS if kind.words not in _WRITTEN)
_MARKUP: Final = ("an XML file of another kind", "an XML file that does not say")
_MAGIC: Final = (
    (0, b"\x1f\x8b", FileKind("sysfs", "a gzip archive")),
    (0, b"BZh", FileKind("sysfs", "a bzip2 archive")),
    (0, b"\xfd7zXZ", FileKind("sysfs", "an xz archive")),
    (257, b"ustar", FileKind("sysfs", "a tar archive")),
    (0, b"\x89PNG", FileKind("", "a PNG picture")),
    (0, b"%PDF-", FileKind("", "a PDF file")),
    (0, b"PK\x03\x04", FileKind("", "a zip file")),
    (0, b"\x7fELF", FileKind("", "a program")),
)
_JSON: Final = (
    (b'"@odata.', "redfish", "Redfish resources"),
    (b'"nvbandwidth"', "", "results of nvbandwidth, for `topo measure`"),
    (b'"fio version"', "", "results of fio, for `topo measure`"),
    (b'"bus_bw"', "", "results of nccl-tests, for `topo measure`"),
    (b'"BW_average"', "", "results of perftest, for `topo measure`"),
    (b'"bwMiB"', "", "results of ior, for `topo measure`"),
    (b'_io_mean_MB_per_second"', "", "a summary of DLIO, for `topo measure`"),
    (b'"link_type"', "amd-smi", "JSON of amd-smi topology"),
    (b'"(Topology) ', "rocm-smi", "JSON of rocm-smi"),
    (b'"blockdevices"', "lsblk", "JSON of lsblk"),
    (b'"lscpu"', "numactl", "JSON of lscpu"),
    (b'"properties"', "", "a cufile.json"),
    (b'"ModelNumber"', "nvme", "JSON of nvme list"),
    (b'"schema"', "", "a JSON document of topo"),
)


def file_kind(data: bytes) -> FileKind:
    """Say what kind of file this is.

    Parameters
    ----------
    data
        The whole file; only its beginning is looked at.

    Examples
    --------
    >>> file_kind(b'<system version="1">').importer
    'nccl'
    >>> file_kind(b"<graphs version='1'/>").words
    'an NCCL graph dump (NCCL_GRAPH_DUMP_FILE), not a topology'
    """
    for offset, magic, kind in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return kind
    head = data[:_HEAD].removeprefix(codecs.BOM_UTF8)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell writes
        head = head.decode("utf-16", "replace").encode()
    if not head.strip():
        return FileKind("", "an empty file")
    if head.lstrip().startswith(b"<"):
        at = 0
        while prolog := _PROLOG.match(head, at):
            at = prolog.end()
        root = _ROOT.match(head[at:].lstrip())
        if root is None:
            return FileKind("", "an XML file that does not say what it is")
        name = root[1]
        return _ROOTS.get(name, FileKind("", f"an XML file of another kind (<{name.decode()}>)"))
    if _JSON_BEGINS.match(head) and b"CCL INFO " not in head:  # [1,0]<stdout>: of mpirun
        return next((FileKind(*kind) for key, *kind in _JSON if key in head), _JSON_FILE)
    if b"\x00" in head:
        return FileKind("", "a binary file")
    text = unquoted(_COLOURS.sub(b"", head).decode("latin-1")).encode("latin-1")
    return next((kind for pattern, kind in _TEXT_KINDS if pattern.search(text)), _UNKNOWN)


def line_marks(text: bytes) -> Iterator[tuple[int, FileKind]]:
    """Yield where a line shows that it is what a tool prints, and what: the surest marks first."""
    for pattern, kind in _TEXT_KINDS:
        if kind in _PRINTED:
            yield from ((match.start(), kind) for match in pattern.finditer(text))


_JSON_BEGINS: Final = re.compile(rb'\s*(?:\{\s*["}]|\[\s*(?:["\[\]{\d-]|true|false|null))')
_JSON_FILE: Final = FileKind("", "a JSON file")
_UNKNOWN: Final = FileKind("", "a text of no kind that topo knows")
