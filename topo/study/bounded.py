"""A demand that nothing stops, told by its name instead of the solver's number."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from topo.errors import Finding, UnboundedError
from topo.phrases import listed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from topo.flows.system import UseMatrix


@contextmanager
def naming_demands(matrix: UseMatrix) -> Iterator[None]:
    """Name the demands, and what is on their way, when a solver finds one without a limit.

    Parameters
    ----------
    matrix
        What is solved inside the block.

    Raises
    ------
    UnboundedError
        With the names.
    """
    try:
        yield
    except UnboundedError:
        from topo.solve.system import unbounded_demands

        endless = unbounded_demands(matrix.system)
        names = listed((matrix.demands[index].name for index in endless), most=4)
        used = dict.fromkeys(
            name.name
            for name in matrix.resources
            if any(name.id in matrix.demands[index].route.use for index in endless)
        )
        raise UnboundedError(
            Finding(
                "unbounded-demand",
                f"nothing limits {names}: everything on the way is unknown or unlimited",
                help=f"state a rate for one of {listed(used, most=8)}",
            )
        ) from None
