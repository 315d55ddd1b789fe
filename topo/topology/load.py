"""From a file, a name, text or a `dict` to a topology in one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topo import description
from topo.topology.build import build_topology

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from topo.topology.topology import Topology


def load(
    path_or_name: str | os.PathLike[str], *, overrides: Mapping[str, str] | None = None
) -> Topology:
    """Return the topology of a file, of standard input (``-``) or of a built-in machine.

    Parameters
    ----------
    path_or_name
        A path, or a text: with a ``/`` or ending in ``.yaml`` it is a file, anything else the
        name of a machine that topo ships.
    overrides
        What to change on the way: ``{"slot1.part": "connectx-8", "settings.iommu": "on"}``.

    Raises
    ------
    TopoError
        If the file cannot be read or says something wrong.

    Examples
    --------
    >>> import topo
    >>> topo.load("dgx-h100")["slot1"].part.name
    'connectx-7-dual-port'
    """
    return build_topology(description.load(path_or_name, overrides=overrides))


def loads(
    text: str | bytes, *, name: str = "<text>", overrides: Mapping[str, str] | None = None
) -> Topology:
    """Return the topology that YAML text describes.

    Parameters
    ----------
    text
        The text of a topology file.
    name
        What messages call it.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> import topo
    >>> topo.loads("{topo: 1, devices: {'gpu[0-1]': h100-sxm-80gb}}")
    <Topology topology: 2 devices, 0 links, 2 resources>
    """
    return build_topology(description.loads(text, name=name, overrides=overrides))


def build(document: Mapping[str, Any], *, overrides: Mapping[str, str] | None = None) -> Topology:
    """Return the topology that a `dict` of the YAML's shape describes.

    Parameters
    ----------
    document
        Mappings, lists, texts, numbers and booleans, as ``json.load`` gives them.
    overrides
        What to change on the way, as for `load`.

    Examples
    --------
    >>> import topo
    >>> topo.build({"topo": 1, "devices": {"gpu0": "h100-sxm-80gb"}})["gpu0"].kind
    'gpu'
    """
    return build_topology(description.build(document, overrides=overrides))
