"""From a result file's own numbers and names to the topology's devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.discovery.pci import card_of, read_address
from topo.errors import Finding, UnknownNameError
from topo.records import dataclass
from topo.study.prediction import Sample
from topo.topology.locality import matrix_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.description.description import Device
    from topo.measuring.results import End, Result, Results
    from topo.study.prediction import Predictor
    from topo.topology.topology import Topology


_STORAGE: Final = (("storage",), ("nvme",), ("hba",))


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller says of a file: its GPUs in order, its card, its storage."""

    gpus: tuple[str, ...] = ()
    nic: str = ""
    storage: tuple[str, ...] = ()


class Mapper:
    """Names the devices of one file's results.

    Parameters
    ----------
    topology, results, asked
        The machine, the file, and what the caller says.
    predictor
        Knows which memories are near a device.

    Raises
    ------
    UnknownNameError
        If the caller names a device that is not there, or of another kind.
    """

    def __init__(
        self, topology: Topology, results: Results, asked: Asked, predictor: Predictor
    ) -> None:
        self._topology = topology
        self._results = results
        self._predictor = predictor
        self._gpus = _selected(topology, asked.gpus, ("gpu",), "--gpus")
        self._nic = _selected(topology, [asked.nic] * bool(asked.nic), ("nic", "dpu"), "--nic")
        self._storage = _selected(topology, asked.storage, ("storage", "nvme", "hba"), "--storage")
        self.findings: list[Finding] = []
        self.unmapped: list[str] = list(results.left_out)
        self._known = self._gpus or self._by_address() or self._in_order()

    def sample(self, result: Result) -> Sample | None:
        """Return a result with the topology's names, `None` (and a line of `unmapped`) if none."""
        first, second = self._named(result.source), self._named(result.target)
        other = (*first, *second)
        source = first or (self._near(other) if result.source.kind == "ram" else ())
        target = second or (self._near(other) if result.target.kind == "ram" else ())
        if not source or not target:
            self._leave(f"{result.test}: {self._why(self._missing(result))}")
            return None
        port, several = self._port(result, other)
        return Sample(
            test=result.test,
            source=source,
            target=target,
            rate=result.rate,
            via=result.via,
            port=port,
            both=result.both,
            busy=result.busy,
            unwritten=result.unwritten or several,
            date=self._results.date,
        )

    def _missing(self, result: Result) -> End:
        """Return the end that has no device: RAM only where the other end has one."""
        ends = (result.source, result.target)
        absent = [end for end in ends if end.kind != "ram" and not self._ends(end)]
        return (*absent, *ends)[0] if absent or ends[0].kind == "ram" else ends[1]

    def _named(self, end: End) -> tuple[str, ...]:
        return () if end.kind == "ram" else self._ends(end)

    def _leave(self, line: str) -> None:
        if line not in self.unmapped:
            self.unmapped.append(line)

    # --- ends -----------------------------------------------------------------------------------

    def _ends(self, end: End) -> tuple[str, ...]:
        if end.kind == "gpu":
            return self._gpu(end)
        if end.kind == "card":
            return self._nic or self._card(end)
        return self._storage or self._drive(end)

    def _gpu(self, end: End) -> tuple[str, ...]:
        if end.name:
            return _at_address(self._topology.of_kind("gpu"), end.name)
        if end.number < 0:  # the file does not say: the caller's, or the only one
            return self._known if len(self._known) == 1 else ()
        return self._known[end.number : end.number + 1]

    def _card(self, end: End) -> tuple[str, ...]:
        cards = self._topology.of_kind("nic", "dpu")
        named = [card.name for card in cards if end.name in (*card.rdma, card.name, card.label)]
        if named or end.name:
            return tuple(named[:1])
        return (cards[0].name,) if len(cards) == 1 else ()

    def _drive(self, end: End) -> tuple[str, ...]:
        kinds = (self._topology.of_kind("nvme"), self._topology.of_kind("storage", "hba"))
        named = [drive for drive in kinds[0] if end.name in (drive.name, drive.label)]
        if named and end.name:
            return (named[0].name,)
        every = (*kinds[0], *kinds[1])
        return (every[0].name,) if len(every) == 1 else ()

    def _near(self, other: tuple[str, ...]) -> tuple[str, ...]:
        """Return the memory that a test uses: the one near what it copies to or from."""
        return self._predictor.memories_near(other[0]) if other else ()

    def _port(self, result: Result, ends: tuple[str, ...]) -> tuple[str, str]:
        """Return the port that a network test went by, and why its rate is not the card's."""
        said = next((one.name for one in (result.source, result.target) if one.kind == "card"), "")
        card = next(
            (self._topology[n] for n in ends if self._topology[n].kind in ("nic", "dpu")), None
        )
        if card is None:
            return "", ""
        places = [at for at, name in enumerate(card.rdma) if name == said]
        ports = card.part.ports
        if ports is None or ports.count == 1:
            return f"{card.name}/p1", ""
        if not places:
            return f"{card.name}/p1", f"which port of {card.name} was used is not known"
        return f"{card.name}/p{places[0] + 1}", ""

    def _why(self, end: End) -> str:
        if end.kind == "gpu" and end.number >= 0 and self._known:
            return f"{end} of the file is none of the {len(self._known)} GPUs here"
        option = {"gpu": "--gpus", "card": "--nic", "storage": "--storage"}.get(end.kind, "")
        what = {"gpu": "which GPU", "card": "which card", "storage": "which storage"}
        if not option:
            return "the file has no system RAM near it"
        said = f" `{end.name}`" if end.name else ""
        return f"{what[end.kind]}{said} it was is not known: say it with {option}"

    # --- the order of GPUs ----------------------------------------------------------------------

    def _by_address(self) -> tuple[str, ...]:
        """Return the GPUs by the addresses that the file tells; none if one is not here."""
        gpus = self._topology.of_kind("gpu")
        found = [_at_address(gpus, address) for address in self._results.addresses]
        return tuple(one[0] for one in found) if found and all(found) else ()

    def _in_order(self) -> tuple[str, ...]:
        """Return the GPUs as the driver numbers them: by PCI address, else as in the file."""
        gpus = tuple(one for one in matrix_devices(self._topology) if one.kind == "gpu")
        count = self._results.gpu_count
        if count and count != len(gpus):
            message = f"the results are of {count} GPUs, and {self._topology.name} has {len(gpus)}"
            help = "name those that were measured, in order: --gpus gpu0,gpu1"
            self.findings.append(Finding("gpu-count", message, severity="warning", help=help))
        elif count > 1 or (gpus and not count and self._asks_number()):
            by = "PCI address" if all(one.pci for one in gpus) else "the file's order"
            message = f"GPUs of the results are taken in the order of their {by}"
            if by != "PCI address":
                message = "GPUs of the results are taken in the order in which the file has them"
            self.findings.append(
                Finding("gpu-order", message, severity="note", help="say it with --gpus")
            )
        return tuple(one.name for one in gpus)

    def _asks_number(self) -> bool:
        return any(
            end.kind == "gpu" and end.number >= 0
            for one in self._results.results
            for end in (one.source, one.target)
        )


def _at_address(gpus: Sequence[Device], address: str) -> tuple[str, ...]:
    """Return the GPU at a PCI address; its function does not matter."""
    wanted = card_of(read_address(address))
    return tuple(
        one.name for one in gpus if wanted in {card_of(read_address(pci)) for pci in one.pci}
    )[:1]


def _selected(
    topology: Topology, names: Sequence[str], kinds: tuple[str, ...], option: str
) -> tuple[str, ...]:
    found = [device for name in names for device in topology.select(name)]
    for device in found:
        if device.kind not in kinds:
            message = f"{option}: {device.name} is a {device.kind}, not a {kinds[0]}"
            raise UnknownNameError(Finding("unknown-name", message))
    return tuple(dict.fromkeys(device.name for device in found))
