"""What is odd about a PCI tree, collected while it grows and said once a kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.discovery.pci_kinds import kind_of
from topo.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topo.discovery.pci import Function
    from topo.discovery.pci_link import PciLink
    from topo.errors import Severity


_FEW: Final = 3
_VIRTUAL_FROM: Final = 4  # GPUs without any port above them


class Oddities:
    """Collects functions by what is odd about them."""

    def __init__(self) -> None:
        self._links: dict[str, list[tuple[Function, str]]] = {}
        self._classless: list[Function] = []
        self._virtual: list[Function] = []
        self._repeated: list[Function] = []

    def classless(self, one: Function) -> None:
        """Take a function that has no class."""
        self._classless.append(one)

    def virtual(self, one: Function) -> None:
        """Take a virtual function that is left out."""
        self._virtual.append(one)

    def repeated(self, one: Function) -> None:
        """Take a function whose address another has too."""
        self._repeated.append(one)

    def is_repeated(self, one: Function) -> bool:
        """Whether another function has its address."""
        return one in self._repeated

    def link(self, one: Function, link: PciLink) -> None:
        """Take what is odd about a function's link."""
        for name in ("idle", "narrow", "uneven", "odd"):
            words = getattr(link, name)
            if words:
                self._links.setdefault(name, []).append((one, words))

    def findings(self) -> tuple[Finding, ...]:
        """Return one finding for each kind of oddity."""
        found = [
            *self._of("idle", "idle-link", "the better was taken: a link at rest slows down"),
            *self._of(
                "narrow",
                "trained-down",
                "the smaller was taken: look at the riser, the seating and the slot",
            ),
            *self._of("uneven", "port-below-device", "the smaller was taken", severity="note"),
            *self._of("odd", "odd-link-speed", "it is `unknown` in the YAML", severity="note"),
        ]
        if self._repeated:
            message = f"PCI addresses stand several times: {some(_names(self._repeated))}"
            help = "both devices were taken, the second without its address"
            found.append(Finding("address-again", message, severity="warning", help=help))
        if self._virtual:
            count = len(self._virtual)
            message = f"{count} virtual functions were left out: {some(_names(self._virtual))}"
            found.append(Finding("virtual-functions", message, severity="note"))
        if self._classless:
            count = len(self._classless)
            message = f"{count} PCI devices have no class and were left out: "
            message += some(_names(self._classless))
            help = "add them to the YAML by hand"
            found.append(Finding("unclassified-device", message, severity="warning", help=help))
        return tuple(found)

    def _of(self, name: str, code: str, help: str, severity: Severity = "warning") -> list[Finding]:
        odd = self._links.get(name, [])
        if not odd:
            return []
        names = [one.address or one.id for one, _ in odd]
        message = f"{some(names)}: {odd[0][1]}"
        return [Finding(code, message, severity=severity, help=help)]


def hidden_ports(functions: Sequence[Function], bare: str = "\0") -> tuple[Finding, ...]:
    """Return the finding that a virtual machine hides its ports and switches, where it does.

    A PCIe device hangs on a port: on the root bus itself are only devices that somebody put there.

    Parameters
    ----------
    functions
        All of a source that shows bridges.
    bare
        How the parents begin that stand for no known place.
    """
    known = {one.id for one in functions}
    gpus = [
        one
        for one in functions
        if one.parent not in known and not one.parent.startswith(bare) and kind_of(one) == "gpu"
    ]
    if len(gpus) < _VIRTUAL_FROM:
        return ()
    message = f"{some(_names(gpus))} hang on a root bus, without a port: "
    message += "a virtual machine that hides its switches?"
    help = "near and far cards look alike here; compare with the host's own topology"
    return (Finding("hidden-switches", message, severity="warning", help=help),)


def _names(functions: list[Function]) -> list[str]:
    return [one.address or one.id for one in functions]


def some(names: list[str]) -> str:
    """Return a few names, and how many more there are."""
    more = f" and {len(names) - _FEW} more" if len(names) > _FEW else ""
    return ", ".join(names[:_FEW]) + more
