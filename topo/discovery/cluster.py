"""Several hosts as one cluster: a machine file for each kind of host, and a file that uses them.

Hosts that say the same but for names and addresses are alike. How they are joined no host tells, so
the cluster's file has no network: what one would look like stands in its comments. A source of a
whole cluster, taken apart, has one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

from topo.catalogue.kinds import CARDS
from topo.description.names import RESERVED, expand, ranged
from topo.description.names import stem_of as numbered
from topo.description.write import Comments, stem_of, to_yaml
from topo.discovery.apart import Network, in_a_host, taken_apart
from topo.discovery.describe import (
    describe,
    device_names,
    fastest_cards,
    file_title,
    machine_name,
    storage_cable,
)
from topo.discovery.importing import ImportDraft, Imported, draft_of, one_machine, read_back
from topo.discovery.likeness import IDENTITIES, differences, entries_of, likeness, same_sizes
from topo.discovery.matching import same_cards
from topo.document.nodes import Document, Report, Scalar
from topo.errors import DescriptionError, ExchangeError, Finding, Place
from topo.phrases import and_more, counted, did_you_mean, listed, shortened
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.discovery.machine import Machine

Plain = dict[str, Any]

_OPTION: Final = "--node"
_FEW, _MOST_DIFFERENCES = 3, 12  # that a message has, and its notes
_HEAD_WIDTH: Final = 96


@dataclass(frozen=True, slots=True)
class HostKind:
    """Hosts that are alike.

    Parameters
    ----------
    file
        What the file of their machine is called; the cluster's file lies beside it.
    hosts
        Their names in the cluster.
    imported
        The machine that all of them are: without the addresses in which they differ.
    """

    file: str
    hosts: tuple[str, ...]
    imported: Imported


@dataclass(frozen=True, slots=True)
class ImportedHosts:
    """Several hosts, imported.

    Parameters
    ----------
    name
        The cluster's.
    kinds
        The kinds of its hosts, the commonest first.
    document, yaml
        The cluster's file, which uses those of the kinds.
    findings
        What the sources do not know, or say wrongly, and how the kinds differ.
    """

    name: str
    kinds: tuple[HostKind, ...]
    document: Plain
    yaml: str
    findings: tuple[Finding, ...]


# --- names ----------------------------------------------------------------------------------------


def host_names(files: Sequence[str]) -> tuple[str, ...]:
    """Return names of hosts from the names of their files, or of the folders that these lie in.

    Raises
    ------
    ExchangeError
        If two would have the same name.

    Examples
    --------
    >>> host_names(["dumps/node0.xml", "dumps/node1.xml"])
    ('node0', 'node1')
    >>> host_names(["a01/topo.xml", "a02/topo.xml"]), host_names(["n1-smi.txt", "n2-smi.txt"])
    (('a01', 'a02'), ('n1', 'n2'))
    """
    paths = [PurePath(file).parts[::-1] for file in files]
    for place in range(max(map(len, paths))):
        parts = [path[place] if place < len(path) else "" for path in paths]
        names = [machine_name(part) if place == 0 else _name(part) for part in parts]
        names = [f"host-{name}" if name in RESERVED else name for name in names]
        if len({name.lower() for name in names}) == len(names):
            return tuple(_without_common_end(names))
    twice = next(file for file, name in zip(files, names, strict=True) if names.count(name) > 1)
    message = f"`{twice}` and another file give two hosts one name"
    raise ExchangeError(Finding("same-host", message, help="name each: `--node NAME=FILE`"))


def named_hosts(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and file of each host of ``node[0-3]=node.xml``.

    Raises
    ------
    DescriptionError
        With every text that is none.
    """
    document = Document(_OPTION, Scalar("", Place(_OPTION, 1, 1)), tuple(texts))
    report = Report(document)
    hosts: list[tuple[str, str]] = []
    for line, text in enumerate(texts, 1):
        names, sign, file = map(str.strip, text.partition("="))
        place = Place(_OPTION, line, 1, len(names) + 1)
        if not sign or not file:
            help = "write a host and its file: `--node node0=node0.xml`"
            report.add(place, "same-host", f"`{text}` is not NAME=FILE", help=help)
            continue
        hosts += [(name, file) for name in expand(Scalar(names, place), report)]
    report.stop(DescriptionError)
    return hosts


def _name(folder: str) -> str:
    return machine_name(f"{folder}/".replace(".", "-").rstrip("/\\") or "root")


def _without_common_end(names: list[str]) -> list[str]:
    """Return names without a word that all of them end with: ``node7-hwloc`` is ``node7``."""
    _, dash, end = names[0].partition("-")
    shorter = [name.removesuffix(dash + end) for name in names]
    all_end = bool(end) and all(name.endswith(dash + end) for name in names)
    return shorter if all_end and all(shorter) else names


# --- hosts of one kind ----------------------------------------------------------------------------


def import_hosts(
    hosts: Mapping[str, Sequence[Machine]],
    name: str,
    *,
    storage: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
) -> ImportedHosts:
    """Import several hosts as one cluster.

    Parameters
    ----------
    hosts
        The sources of each host, as for `topo.discovery.importing.import_together`, by its name.
    name
        The cluster's; the files of the kinds begin with it.
    storage
        The network cards that lead to storage, in each host; guessed when empty.
    progress
        Is told how many of the hosts are done with, and how many there are.

    Raises
    ------
    ExchangeError
        If the sources of a host say what no machine can be, or one is of several hosts.
    """
    hosts = dict(sorted(hosts.items(), key=lambda host: numbered(host[0])))
    counts = Counter(map(str.lower, hosts))
    twice = [host for host in hosts if counts[host.lower()] > 1]
    if twice:
        message = f"{listed(twice, most=3)} differ only in case"
        raise ExchangeError(Finding("same-host", message, help="name each: `--node NAME=FILE`"))
    draft_by_host = _drafts_of_all(hosts, storage, progress)
    made, apart = _kinds(draft_by_host, name)
    cluster = _cluster(name, hosts, made)
    findings = (
        *_grouped(draft_by_host),
        *_differing(made, apart),
        Finding(
            "unknown-network",
            f"what joins the {len(hosts)} hosts is not told: no source of a host knows it",
            severity="note",
            help=f"write `fabrics:` or `links:` in {name}.yaml; its comments show how",
        ),
    )
    yaml = to_yaml(cluster, _cluster_comments(list(hosts), made, apart)) + _network_comments(made)
    return ImportedHosts(name, made, cluster, yaml, findings)


def import_apart(
    machine: Machine,
    name: str,
    *,
    storage: Sequence[str] = (),
    sources: Mapping[str, Sequence[Machine]] | None = None,
) -> ImportedHosts:
    """Import a source of several hosts as a file for each kind of them, and one that joins them.

    Parameters
    ----------
    machine
        What `topo.discovery.importing.discover` read.
    name
        The cluster's; the files of the kinds begin with it.
    storage
        The network cards that lead to storage, in each host.
    sources
        Those of hosts by name that tell what is in them, where `machine` knows their cards alone.

    Raises
    ------
    ExchangeError
        If the source says what no machine can be, or has not a host that `sources` name.
    """
    hosts, network = taken_apart(machine)
    drafts: dict[int, ImportDraft] = {id(host): draft_of(host, storage) for host in hosts.values()}
    draft_by_host = {host: drafts[id(alone)] for host, alone in hosts.items()}
    not_placed: tuple[Finding, ...] = ()
    if sources:
        if strange := [host for host in sources if host not in hosts]:
            message = f"{listed(strange, most=3)}: no such host in `{machine.file}`"
            help = did_you_mean(strange[0], hosts) or f"it has {_hosts(list(hosts))}"
            raise ExchangeError(Finding("unknown-name", message, help=help))
        drafts_of_sources: dict[tuple[int, ...], ImportDraft] = {}
        for host, of_host in sources.items():
            key = tuple(map(id, of_host))
            if key not in drafts_of_sources:
                drafts_of_sources[key] = draft_of(in_a_host(one_machine(of_host)), storage)
            draft_by_host[host] = drafts_of_sources[key]
        network, not_placed = _on_own_cards(network, hosts, draft_by_host, sources)
        if len(sources) == len(hosts):  # what the fabric says it does not know, these do
            network = replace(network, outer=replace(network.outer, notes=()))
    made, apart = _kinds(draft_by_host, name)
    cluster, comments = _cluster(name, hosts, made), _cluster_comments(list(hosts), made, apart)
    outer, beside = describe(network.outer, "")
    ends, cables, evidence = _network_links(network, draft_by_host)
    links = [{f"{a} -- {b}": cable} for (a, b), cable in zip(ends, cables, strict=True)]
    cluster = {
        **{key: outer[key] for key in ("parts", "media") if key in outer},
        **cluster,
        "devices": {**cluster["devices"], **outer["devices"]},
    }
    if all_links := [*links, *outer["links"]]:
        cluster["links"] = all_links
    comments = replace(
        beside,
        head=(beside.head[0], *wrap(f"It has {_counted(hosts)}.", _HEAD_WIDTH), *beside.head[1:]),
        devices={**beside.devices, **comments.devices},
        links=(*evidence, *beside.links),
    )
    has_storage = bool(network.outer.of_kind("storage"))
    of_hosts = _grouped(draft_by_host)
    findings = (
        *(
            finding
            for finding in machine.findings
            if finding.code != "hosts-by-cards" or len(hosts) > len(sources or ())
        ),
        *not_placed,
        *(finding for finding in of_hosts if not (has_storage and finding.code == "no-storage")),
        *_differing(made, apart),
    )
    yaml = to_yaml(cluster, comments)
    if not network.cables:
        yaml += _network_comments(made)
    return ImportedHosts(name, made, cluster, yaml, findings)


def _on_own_cards(
    network: Network,
    hosts: Mapping[str, Machine],
    draft_by_host: Mapping[str, ImportDraft],
    sources: Collection[str],
) -> tuple[Network, tuple[Finding, ...]]:
    """Return the network on the cards that hosts' own sources have, and what has no such card."""
    place: dict[tuple[str, str], str] = {}
    for host in sources:
        pairs = same_cards(hosts[host], draft_by_host[host].machine)
        place |= {(host, card): own for card, own in pairs.items()}

    def end(place_of: tuple[str, str]) -> tuple[str, str] | None:
        host, _ = place_of
        if host not in sources:
            return place_of
        return (host, place[place_of]) if place_of in place else None

    cables, lost = [], []
    for a, b, cable in network.cables:
        first, second = end(a), end(b)
        if first is not None and second is not None:
            cables.append((first, second, cable))
        else:
            lost.append(next(host for host, _ in (a, b) if host in sources))
    findings = []
    if lost:
        message = f"{counted(len(lost), 'link')} of the fabric lead to cards of "
        message += f"{_hosts(list(dict.fromkeys(lost)))} that the own source does not have"
        help = "they were left out: does the source name RDMA devices, as `lspci` does not?"
        findings.append(Finding("card-not-placed", message, severity="warning", help=help))
    return replace(network, cables=tuple(cables)), tuple(findings)


def _network_links(
    network: Network, draft_by_host: Mapping[str, ImportDraft]
) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """Return the ends, cables and evidence of the links that lead to hosts, from there."""
    inside = {id(draft): device_names(draft.machine.devices) for draft in draft_by_host.values()}
    outside = device_names(network.outer.devices)
    ends = []
    for a, b, _ in network.cables:
        names = [
            f"{host}.{inside[id(draft_by_host[host])][device]}" if host else outside[device]
            for host, device in (a, b)
        ]
        ends.append((names[0], names[1]) if a[0] else (names[1], names[0]))
    cables = [cable for *_, cable in network.cables]
    return ends, [cable.cable for cable in cables], [cable.evidence for cable in cables]


def _kinds(
    draft_by_host: Mapping[str, ImportDraft], name: str
) -> tuple[tuple[HostKind, ...], dict[str, list[str]]]:
    """Return the kinds of hosts, the commonest first, and what tells each other kind from that.

    The latter is by the first host of a kind.
    """
    kinds: dict[str, list[tuple[ImportDraft, list[str]]]] = {}
    for host, draft in draft_by_host.items():
        of_likeness = kinds.setdefault(likeness(draft.document), [])
        kind = next(
            (names for first, names in of_likeness if same_sizes(first.document, draft.document)),
            None,
        )
        if kind is None:
            of_likeness.append((draft, kind := []))
        kind.append(host)
    all_kinds = chain.from_iterable(kinds.values())
    by_count = sorted(all_kinds, key=lambda kind: -len(kind[1]))
    made = tuple(_kind_of(names, draft_by_host, name, by_count) for _, names in by_count)
    apart = {names[0]: _differences(draft, by_count[0][0]) for draft, names in by_count[1:]}
    return made, apart


def _differing(kinds: Sequence[HostKind], apart: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Yield how each other kind differs from the commonest."""
    return (_difference(kind, kinds[0], apart[kind.hosts[0]]) for kind in kinds[1:])


def _drafts_of_all(
    hosts: Mapping[str, Sequence[Machine]],
    storage: Sequence[str],
    progress: Callable[[int, int], None] | None,
) -> dict[str, ImportDraft]:
    """Return what is told of each host; what is wrong is said of all of them at once."""
    names_by_sources: dict[tuple[int, ...], list[str]] = {}
    for host, sources in hosts.items():
        names_by_sources.setdefault(tuple(map(id, sources)), []).append(host)
    draft_by_host: dict[str, ImportDraft] = {}
    findings: list[Finding] = []
    for done, names in enumerate(names_by_sources.values()):
        if progress is not None:
            progress(done, len(names_by_sources))
        try:
            draft_by_host |= dict.fromkeys(names, _draft_of_sources(hosts[names[0]], storage))
        except ExchangeError as error:
            findings += (
                replace(finding, message=f"{_hosts(names)}: {finding.message}")
                for finding in error.findings
            )
    if findings:
        raise ExchangeError(findings)
    return {host: draft_by_host[host] for host in hosts}


def _draft_of_sources(sources: Sequence[Machine], storage: Sequence[str]) -> ImportDraft:
    machine = one_machine(sources)
    if any(device.host for device in machine.devices):
        message = f"`{machine.file}` is of several hosts itself"
        help = f"import it alone: `topo import {machine.file}`"
        raise ExchangeError(Finding("wrong-kind", message, help=help))
    return draft_of(machine, storage)


def _kind_of(
    hosts: list[str],
    draft_by_host: Mapping[str, ImportDraft],
    cluster: str,
    kinds: Sequence[tuple[ImportDraft, list[str]]],
) -> HostKind:
    """Return a kind of hosts with the one machine that they all are."""
    draft = draft_by_host[hosts[0]]
    drafts = list({id(draft_by_host[host]): draft_by_host[host] for host in hosts}.values())
    devices: Plain = {}
    left_out: dict[str, list[str]] = {}
    for name, value in draft.document["devices"].items():
        devices[name] = value
        if not isinstance(value, dict):
            continue
        everywhere = [entries_of(member.document["devices"][name]) for member in drafts]
        differs = [
            key
            for key in (*IDENTITIES, "size")
            if any(entries.get(key) != value.get(key) for entries in everywhere)
        ]
        for key in differs:
            left_out.setdefault(key, []).append(name)
        entries = {key: entry for key, entry in value.items() if key not in differs}
        if "size" in differs:
            entries["size"] = value["size"]
        devices[name] = entries["part"] if [*entries] == ["part"] else entries
    kind = _kind_name(hosts, kinds)
    file = f"{cluster}-{kind}.yaml"
    head = list(draft.comments.head)
    if len(hosts) > 1:
        head.insert(1, f"It stands for {_counted(hosts)}.")
    if texts := [
        f"{key} of {shortened(names)}" for key, names in left_out.items() if key != "size"
    ]:
        head += wrap(f"Left out, since it differs from host to host: {listed(texts)}.", _HEAD_WIDTH)
    if "size" in left_out:
        head.append(f"Memory has the sizes of {hosts[0]}; the others' differ by less than 1 %.")
    document = {**draft.document, "name": PurePath(file).stem, "devices": devices}
    comments = replace(draft.comments, head=tuple(head))
    return HostKind(file, tuple(hosts), read_back(replace(draft, comments=comments), document))


def _kind_name(hosts: Sequence[str], kinds: Sequence[tuple[ImportDraft, list[str]]]) -> str:
    """Return a kind's name: that of its first host, for the commonest without the number."""
    commonest = kinds[0][1]
    if hosts is not commonest:
        return hosts[0]
    stem = stem_of(hosts[0]).rstrip("-_")
    taken = {names[0].lower() for _, names in kinds[1:]}
    return stem if stem and stem.lower() not in taken else hosts[0]


def _differences(draft: ImportDraft, usual: ImportDraft) -> list[str]:
    """Return what tells a host from the commonest kind, in words; at least one thing."""
    apart = list(differences(draft.document, usual.document))
    return apart or ["the same devices are numbered or joined in another order"]


def _difference(kind: HostKind, usual: HostKind, apart: Sequence[str]) -> Finding:
    """Return that the hosts of a kind are not like those of the commonest."""
    differ = "differs" if len(kind.hosts) == 1 else "differ"
    message = f"{_hosts(kind.hosts)} {differ} from {_hosts(usual.hosts)}: {and_more(apart, _FEW)}"
    help = "it has a file of its own" if len(kind.hosts) == 1 else "they have a file of their own"
    more = len(apart) - _MOST_DIFFERENCES
    notes = (*apart[:_MOST_DIFFERENCES], *([f"and {more} more"] if more > 0 else []))
    return Finding(
        "hosts-differ",
        message,
        severity="warning",
        help=f"{help}, {kind.file}",
        notes=notes if len(apart) > _FEW else (),
    )


def _counted(hosts: Collection[str]) -> str:
    return f"{counted(len(hosts), 'host')}: {_hosts(tuple(hosts))}"


def _hosts(names: Sequence[str]) -> str:
    return ", ".join(ranged(names))


def _grouped(draft_by_host: Mapping[str, ImportDraft]) -> Iterator[Finding]:
    """Yield what is said of hosts, once where the same is said of several, of each by its file."""
    groups: dict[Finding, tuple[Finding, list[str]]] = {}
    for host, draft in draft_by_host.items():
        machine = draft.machine
        together = (source.rpartition(" (")[0] for source in machine.together)
        files = (machine.file, file_title(machine.file), *together)
        for finding in draft.findings:
            message = finding.message
            for file in files:
                message = message.replace(file, "")
            key = replace(finding, message=message, notes=(), help="")
            groups.setdefault(key, (finding, []))[1].append(host)
    for finding, hosts in groups.values():
        names = list(dict.fromkeys(hosts))
        yield replace(finding, message=f"{_hosts(names)}: {finding.message}")


# --- the cluster's file ---------------------------------------------------------------------------


def _cluster(name: str, hosts: Iterable[str], kinds: Sequence[HostKind]) -> Plain:
    file_of = {host: kind.file for kind in kinds for host in kind.hosts}
    uses = {host: {"use": file_of[host]} for host in hosts}
    count = len(uses)
    usual = kinds[0].imported.machine.title()
    title = f"{counted(count, 'host')}: {usual} each"
    if len(kinds) > 1:
        title = f"{counted(count, 'host')} of {len(kinds)} kinds, most with {usual}"
    return {"topo": 1, "name": name, "title": title, "devices": uses}


def _cluster_comments(
    hosts: Sequence[str], kinds: Sequence[HostKind], apart: Mapping[str, Sequence[str]]
) -> Comments:
    """Return what stands above the cluster, and beside its hosts."""
    head = f"Imported from {_counted(hosts)}."
    beside: dict[str, str] = {}
    for kind in kinds:
        words = apart.get(kind.hosts[0])
        text = and_more(words, 2) if words else kind.imported.machine.title()
        beside |= dict.fromkeys(kind.hosts, text)
    return Comments(head=tuple(wrap(head, _HEAD_WIDTH)), devices=beside)


def _network_comments(kinds: Sequence[HostKind]) -> str:
    """Return, as comments, what a network between the hosts would look like."""
    machine = kinds[0].imported.machine
    cards = machine.of_kind(*CARDS)
    lines = ["What joins the hosts is not told: write it under `links:` or `fabrics:`."]
    if cards:
        names = device_names(machine.devices)
        stems = list(dict.fromkeys(stem_of(names[card.id]) for card in cards))
        cable = re.sub(r"^\d+x ", "", storage_cable(fastest_cards(cards)[0], machine))
        hosts = list(dict.fromkeys(stem_of(host) for kind in kinds for host in kind.hosts))
        rails = f"kind: rail-optimized, of: {_list(hosts)}, cards: {_list(stems)}"
        lines = [
            f"{lines[0][:-1]},",
            "for example as rails, with the part of the switch (`topo parts`) for SWITCH:",
            "fabrics:",
            f"  net: {{{rails}, switch: SWITCH, cable: {cable}}}",
        ]
    return "".join(f"# {line}\n" for line in ("", *lines)).replace("# \n", "\n")


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"[{', '.join(words)}]"
