"""The verbs in the order that help lists them, and the words people try instead."""

from __future__ import annotations

from difflib import get_close_matches

VERBS: dict[str, str] = {
    "compare": "Compare data paths: hops, copies, trips through RAM, rate, what limits each.",
    "check": "Read a file, look for mistakes, and judge the sentences of its `expect:`.",
    "show": "Show devices, links and resources, each figure with its source.",
    "paths": "List the data paths and their verdicts, or the routes between two devices.",
    "matrix": "Print the locality of every pair, as `nvidia-smi topo -m` does.",
    "affinity": "Say which network card and which drive each GPU should use, and why.",
    "bottleneck": "Say what binds, whom it stops, what would bind next, what more is worth.",
    "simulate": "Run the file's workloads together until each has its bytes.",
    "upgrade": "Rank changes: other cards, more cards, memory, sockets, data paths.",
    "draw": "Draw the machine and the way the data goes.",
    "import": "Make a topology file of what a machine or a tool says of itself.",
    "measure": "Put measured rates into a file, beside what topo expected.",
    "export": "Write the machine for other programs.",
    "parts": "List the catalogue, or show a part with the source of each figure.",
    "schema": "Print the JSON Schema of topology files, for editors.",
    "explain": "Explain a finding's code, a data path, a locality class or a word.",
    "fmt": "Format topology files, keeping their comments.",
    "new": "Write a commented topology file to start from.",
}

# What other tools call it, and what to type here.
_HABITS: dict[str, str] = {
    "assign": "topo affinity FILE",
    "bottlenecks": "topo bottleneck FILE",
    "catalog": "topo parts",
    "catalogue": "topo parts",
    "convert": "topo export nccl FILE",
    "create": "topo new",
    "diagram": "topo draw FILE -o FILE.svg",
    "doc": "topo explain WORD",
    "dump": "topo export json FILE",
    "format": "topo fmt FILE",
    "graph": "topo draw FILE -o FILE.svg",
    "help": "topo --help",
    "info": "topo show FILE",
    "init": "topo new",
    "inspect": "topo show FILE",
    "lint": "topo check FILE",
    "list": "topo parts --machines",
    "load": "topo import FILE",
    "ls": "topo parts --machines",
    "machines": "topo parts --machines",
    "measured": "topo measure FILE RESULT",
    "man": "topo --help",
    "path": "topo paths FILE",
    "plot": "topo draw FILE -o FILE.svg",
    "print": "topo show FILE",
    "render": "topo draw FILE -o FILE.svg",
    "route": "topo paths FILE --from storage --to gpu0",
    "routes": "topo paths FILE --from storage --to gpu0",
    "run": "topo compare FILE",
    "test": "topo check FILE",
    "topo": "topo compare FILE",
    "validate": "topo check FILE",
    "verify": "topo check FILE",
    "version": "topo --version",
    "view": "topo show FILE",
    "visualize": "topo draw FILE -o FILE.svg",
}


def hint(word: str, rest: list[str]) -> str:
    """Return what to type instead of ``topo WORD REST``, ``""`` when nothing comes to mind.

    Examples
    --------
    >>> hint("validate", ["box.yaml"])
    'topo check box.yaml'
    >>> hint("comprae", [])
    'topo compare'
    """
    if word == "help" and rest and rest[0] in VERBS:
        return f"topo {rest[0]} --help"
    if word.lower() in _HABITS:
        return _with_file(_HABITS[word.lower()], rest)
    if _names_machine(word):
        return " ".join(["topo compare", word, *rest])
    near = get_close_matches(word.lower(), VERBS, n=1)
    return " ".join(["topo", near[0], *rest]) if near else ""


def _with_file(advice: str, rest: list[str]) -> str:
    """Put the first argument that is no option where the advice says FILE."""
    file = next((word for word in rest if not word.startswith("-")), "")
    if not file or " FILE" not in advice:
        return advice
    return advice.replace(" FILE.svg", " picture.svg").replace(" FILE", f" {file}")


def _names_machine(word: str) -> bool:
    if word == "-" or "/" in word or word.endswith((".yaml", ".yml")):
        return True
    from topo.description.loading import builtin_names

    return word in builtin_names()
