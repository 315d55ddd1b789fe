"""`topo import`: a topology file from what a machine or a tool says of itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from topo.cli import verb
from topo.errors import ExchangeError, TopoError
from topo.files import STANDARD_INPUT, spare_inputs, write_file, write_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topo.discovery.cluster import ImportedHosts
    from topo.discovery.importing import Imported
    from topo.discovery.machine import Machine
    from topo.errors import Finding
    from topo.host.this_host import HostSource
    from topo.views.text.page import Block

_AND = "--and"


class _Import(click.Command):
    """A command whose `--and` takes a KIND and a FILE, or a FILE alone."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give each `--and` both its values, an empty KIND where none is written."""
        from topo.discovery.file_kinds import KINDS

        completed: list[str] = []
        left = list(reversed(args))
        while left:
            word = left.pop()
            name, _, glued = word.partition("=")
            if name != _AND:
                completed.append(word)
                continue
            if not (glued or left):
                raise click.UsageError("--and needs a FILE.")
            first = glued or left.pop()
            kind = (
                first in KINDS
                and bool(left)
                and (left[-1] == STANDARD_INPUT or left[-1][:1] != "-")
            )
            completed += [_AND, first, left.pop()] if kind else [_AND, "", first]
        return super().parse_args(ctx, completed)


@verb.command(
    "topo import nccl topo.xml -o server.yaml",
    "nvidia-smi topo -m | topo import -",
    "topo import sysfs / -o this-machine.yaml",
    "topo import nccl topo.xml --and nvidia-smi matrix.txt",
    "topo import --node 'node[0-31]=topo.xml' -o cluster.yaml",
    "topo import --host -o this-host.yaml --bundle this-host.tar.gz",
    cls=_Import,
)
@click.argument(
    "words", metavar="[KIND] FILE...", nargs=-1, shell_complete=verb.completes("sources")
)
@click.option(
    "--storage",
    metavar="NIC",
    multiple=True,
    help="A card that leads to storage, by its name, RDMA name or PCI address "
    "(repeatable, or a,b).",
)
@click.option(
    _AND,
    "others",
    metavar="[KIND] FILE",
    nargs=2,
    multiple=True,
    help="A further source of the same machine (repeatable): it fills the gaps of the first, "
    "and where the two contradict each other, that is said.",
)
@click.option(
    "--node",
    "hosts",
    metavar="NAME=FILE",
    multiple=True,
    help="One of several hosts (repeatable): a NAME given again adds a source of that host, and "
    "node[0-31] says that all of these are like FILE.",
)
@click.option(
    "--host",
    "this_host",
    is_flag=True,
    help="This very host: /sys, and what its tools print (nvidia-smi, lspci, ibstat, ...).",
)
@click.option(
    "--bundle",
    metavar="ARCHIVE",
    default="",
    help="With --host: what was gathered as ARCHIVE.tar.gz, without names, serials and addresses.",
)
@click.option("-o", "--output", metavar="OUT", help="Write there, not to standard output.")
@verb.asks_json
def command(
    words: tuple[str, ...],
    storage: tuple[str, ...],
    others: tuple[tuple[str, str], ...],
    hosts: tuple[str, ...],
    this_host: bool,
    bundle: str,
    output: str | None,
    as_json: bool,
) -> int:
    """Make a topology file of what a machine or a tool says of itself.

    KIND is nccl (NCCL's or RCCL's XML), nccl-log (a log of either), nvidia-smi (the text of
    `nvidia-smi topo -m`), hwloc (XML of lstopo), lstopo (its text), lspci (the text of
    `lspci -tv`, `-vvv` or `-nn`), sysfs (a folder or tar archive with a copy of /sys, or / for
    this machine), rocm-smi (`--showtopo`), amd-smi (`topology`), npu-smi, xpu-smi, mx-smi or
    mthreads-gmi (the matrices of Huawei, Intel, MetaX and Moore Threads), hl-smi (`topo`), redfish
    (JSON of a management controller), infragraph (YAML of hosts and the network between them) or
    ibnetdiscover (an InfiniBand fabric); without it, it is guessed from what stands in FILE. What
    the source does not know is `unknown`; a storage target is a guess unless --storage says which
    cards lead to it.

    Facts of devices are laid beside one of these with --and: ibstat (ports of cards, by ibstat,
    ibstatus, ibdev2netdev or ibv_devinfo), dmidecode (memory modules, slots),
    numactl (NUMA nodes and CPUs, by `numactl -H` or lscpu), nvme and lsblk (drives), gpus (what
    GPUs are, by nvidia-smi's table or `nvidia-smi -L`), nvidia-smi-q (their links too), nvlink
    (`nvidia-smi nvlink -s`), p2p (`nvidia-smi topo -p2p`), ethtool (interfaces).
    Of a text with several outputs in it, an issue or a log, each that is known is taken.

    Several FILEs, one a host, make a cluster, as does --node: OUT uses one machine file for each
    kind of host, which is written beside it. Hosts are alike where they differ in addresses and
    names alone; how they are joined is not told, and left to you, unless FILE is the fabric's
    (ibnetdiscover) and --node names hosts of it.

    --host asks this host: nothing is run as another user, each tool has 30 seconds, and nothing is
    written but OUT and ARCHIVE. `topo import ARCHIVE` reads that one whole, wherever it is.
    """
    if bundle and not this_host:
        raise click.UsageError("--bundle packs what --host gathers: give both.")
    if bundle and output and Path(bundle).absolute() == Path(output).absolute():
        raise click.UsageError("--bundle and -o are two files: name each.")
    if this_host:
        if words or hosts:
            named = "one of several is --node NAME=FILE, and " if words and "=" in words[0] else ""
            message = f"--host is this very host: {named}a further source of it is --and FILE."
            raise click.UsageError(message)
        return _import_this_host(others, verb.lists(storage), output or "", bundle, as_json)
    kind, files = _kind_and_files(words)
    if hosts or len(files) > 1:
        return _import_hosts(kind, files, hosts, others, verb.lists(storage), output, as_json)
    if not files:
        raise click.UsageError("Missing argument '[KIND] FILE...'.")
    sources = [(kind, files[0]), *others]
    if [file for _, file in sources].count(STANDARD_INPUT) > 1:
        raise click.UsageError("only one FILE can be standard input.")
    verb.Session.answers_about(files[0])
    from topo.discovery.apart import is_of_several_hosts
    from topo.discovery.importing import import_together

    machines = []
    with verb.progress("sources") as progress:
        for kind, file in sources:
            machines.append(_discovered(kind, file))
            progress(len(machines), len(sources) + 1)  # and what is made of them
        may_be_flat = machines[0].kind == "infragraph"
        if (
            (output or (as_json and not may_be_flat))
            and len(machines) == 1
            and is_of_several_hosts(machines[0])
        ):
            from topo.discovery.cluster import import_apart
            from topo.discovery.describe import machine_name

            name = machine_name(output or "cluster")
            cluster = import_apart(machines[0], name, storage=verb.lists(storage))
            return _put_hosts(cluster, files, output, as_json)
        imported = import_together(machines, storage=verb.lists(storage))
    if output:
        spare_inputs(output, (file for _, file in sources))
        write_file(output, imported.yaml)
    if as_json:
        document = {
            "schema": "topo.import/1",
            "kind": imported.kind,
            "topology": imported.description.name,
            **_entries(imported),
        }
        return verb.put_document(document, imported.findings)
    return verb.put_text("" if output else imported.yaml, imported.findings)


def _kind_and_files(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the KIND of the command line, empty where none is written, and its FILEs."""
    from topo.discovery.file_kinds import KINDS

    first, *others = words or ("",)
    is_word = not (Path(first).exists() or {".", "/", os.sep} & set(first))
    if others and (first in KINDS or (is_word and len(others) == 1)):
        return first, tuple(others)  # which `discover` refuses where nothing reads such a kind
    return "", words


def _discovered(kind: str, file: str) -> Machine:
    from topo.description.locating import read_file
    from topo.discovery.importing import discover, discover_folder

    if file != STANDARD_INPUT and Path(file).is_dir():
        return discover_folder(kind or None, Path(file), file)
    name = "<stdin>" if file == STANDARD_INPUT else file
    return discover(kind or None, read_file(file), name)


def _entries(imported: Imported) -> dict[str, object]:
    """Return what JSON has of a machine: of which sources it is, and what they made."""
    return {
        "together": list(imported.machine.together),
        "left_out": list(imported.machine.left_out),
        "document": imported.document,
        "yaml": imported.yaml,
    }


# --- this host ------------------------------------------------------------------------------------

_STATES = {
    "read": "read",
    "not-read": "ran",
    "left-out": "ran",
    "silent": "printed nothing",
    "absent": "not installed",
    "denied": "not permitted",
    "failed": "failed",
    "timed-out": "stopped",
    "too-long": "stopped",
}


def _import_this_host(
    others: tuple[tuple[str, str], ...],
    storage: tuple[str, ...],
    output: str,
    bundle: str,
    as_json: bool,
) -> int:
    """Import this host; say what was asked of it, and what it could not tell."""
    from topo.discovery.importing import import_together
    from topo.discovery.sources.file_tree import Folder
    from topo.host.this_host import gather_host

    further = [_discovered(kind, file) for kind, file in others]
    for written in filter(None, (output, bundle)):
        spare_inputs(written, (file for _, file in others))
    with verb.progress("commands") as progress:
        gathered = gather_host(progress=progress)
    if bundle:
        write_file(bundle, gathered.packed(Folder(Path("/"))))
    if not as_json:
        page = _sources_page(gathered.sources, bundle)
        verb.put_beside(page, on_output=bool(output or bundle))
    if isinstance(gathered.host, ExchangeError):
        raise gathered.host
    imported = import_together([gathered.host.machine, *further], storage=storage)
    if output:
        write_file(output, imported.yaml)
    if as_json:
        document = {
            "schema": "topo.import/1",
            "kind": imported.kind,
            "topology": imported.description.name,
            "sources": [
                {
                    "name": source.name,
                    "state": source.state,
                    "words": source.words,
                    "lacking": source.lacking,
                }
                for source in gathered.sources
            ],
            **_entries(imported),
        }
        return verb.put_document(document, imported.findings)
    return verb.put_text("" if output or bundle else imported.yaml, imported.findings)


def _sources_page(sources: Iterable[HostSource], bundle: str) -> Iterator[Block]:
    """Yield what was asked of this host, what became of it, and where it was packed."""
    from topo.views.text.page import Cell, Table, Text, table, wide

    shown = [source for source in sources if source.state != "absent" or source.lacking]
    rows = [
        (
            source.name,
            Cell(_STATES[source.state], "good" if source.state == "read" else "warn"),
            "; ".join(filter(None, (source.words, source.lacking and f"so {source.lacking}"))),
        )
        for source in shown
    ]
    asked: Table = table((wide("asked"), "", wide()), rows)
    yield asked
    left = [source.name.split()[0] for source in sources if source not in shown]
    if left:
        yield Text(
            f"Not installed, and not missed here: {', '.join(dict.fromkeys(left))}.", dim=True
        )
    if bundle:
        yield Text(f"Packed without names, serial numbers and addresses: topo import {bundle}")


# --- several hosts --------------------------------------------------------------------------------


def _import_hosts(
    kind: str,
    files: tuple[str, ...],
    hosts: tuple[str, ...],
    others: tuple[tuple[str, str], ...],
    storage: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> int:
    """Import a cluster; its file and those of its kinds of host are all written, or none."""
    if others:
        raise click.UsageError("--and is of one machine: name the host, --node NAME=FILE twice.")
    if hosts and len(files) > 1:
        raise click.UsageError("--node names every host, or FILEs do: give one of the two.")
    if not output and not as_json:
        raise click.UsageError("several hosts make several files: say where, -o cluster.yaml.")
    from topo.discovery.cluster import host_names, import_apart, import_hosts, named_hosts
    from topo.discovery.describe import machine_name

    named = named_hosts(hosts) if hosts else zip(host_names(files), files, strict=True)
    sources: dict[str, list[str]] = {}
    for name, file in named:
        sources.setdefault(name, []).append(file)
    fabric = files if hosts else ()
    all_files = list(dict.fromkeys([*fabric, *(file for of in sources.values() for file in of)]))
    verb.Session.answers_about(all_files[0])
    machines: dict[str, Machine] = {}
    findings: list[Finding] = []
    with verb.progress("hosts") as progress:
        for done, file in enumerate(all_files):
            progress(done, 2 * len(all_files))
            try:
                machines[file] = _discovered("" if fabric else kind, file)
            except TopoError as error:
                findings += error.findings
        if findings:
            raise ExchangeError(findings)
        machines_by_host = {
            name: [machines[file] for file in files] for name, files in sources.items()
        }
        name = machine_name(output or "cluster")
        if fabric:
            if machines[fabric[0]].kind != "ibnetdiscover":
                raise click.UsageError(
                    "--node names every host, or FILEs do: give one of the two, or FILE with the "
                    "fabric of these hosts (ibnetdiscover)."
                )
            imported = import_apart(
                machines[fabric[0]], name, storage=storage, sources=machines_by_host
            )
            return _put_hosts(imported, all_files, output, as_json)
        imported = import_hosts(
            machines_by_host,
            name,
            storage=storage,
            progress=lambda done, count: progress(count + done, 2 * count),
        )
    return _put_hosts(imported, all_files, output, as_json)


def _put_hosts(
    imported: ImportedHosts, inputs: Iterable[str], output: str | None, as_json: bool
) -> int:
    """Write a cluster's files, and say what is odd or a guess in them."""
    if output:
        folder = Path(output).parent
        texts = {str(folder / kind.file): kind.imported.yaml for kind in imported.kinds}
        texts[output] = imported.yaml
        for path in texts:
            spare_inputs(path, inputs)
        write_files(texts)
    if as_json:
        document = {
            "schema": "topo.import-hosts/1",
            "topology": imported.name,
            "kinds": [
                {
                    "file": kind.file,
                    "hosts": list(kind.hosts),
                    "kind": kind.imported.kind,
                    **_entries(kind.imported),
                }
                for kind in imported.kinds
            ],
            "document": imported.document,
            "yaml": imported.yaml,
        }
        return verb.put_document(document, imported.findings)
    return verb.put_text("", imported.findings)
