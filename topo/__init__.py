"""Which way data goes in a GPU server, how fast, and what limits it.

The public names, each fetched when it is first asked for, so that ``import topo`` and
``topo --help`` load nothing that they do not use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

# A new name stands in three places, and `tests/test_front_door.py` holds them together: here, in
# the imports that the type checker reads, and in the table that Python reads.
__all__ = [
    "Finding",
    "Place",
    "TopoError",
    "__version__",
]

if TYPE_CHECKING:
    from topo.errors import Finding, Place, TopoError
else:
    _HOMES = {
        "Finding": "topo.errors",
        "Place": "topo.errors",
        "TopoError": "topo.errors",
    }

    def __getattr__(name: str) -> object:
        """Fetch a public name from the module that defines it."""
        if name not in _HOMES:
            raise AttributeError(f"module 'topo' has no attribute {name!r}", name=name, obj=None)
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*globals(), *__all__})
