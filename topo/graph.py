"""Walks over any graph that is given as a function from a node to its neighbours.

Order is part of the answer: nodes come out in the order in which they are met, never in that of a
set. Routes, which need weights and rules, are searched for in `topo.routes`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node", bound="Hashable")


def breadth_first(
    starts: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]
) -> dict[Node, int]:
    """Return every node that can be reached with its distance in steps, nearest first.

    Examples
    --------
    >>> breadth_first(["a"], {"a": "bc", "b": "d", "c": "d", "d": ""}.__getitem__)
    {'a': 0, 'b': 1, 'c': 1, 'd': 2}
    """
    distances = dict.fromkeys(starts, 0)
    front = deque(distances)
    while front:
        node = front.popleft()
        for neighbour in neighbours(node):
            if neighbour not in distances:
                distances[neighbour] = distances[node] + 1
                front.append(neighbour)
    return distances


def components(
    nodes: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]
) -> list[list[Node]]:
    """Return what hangs together, each part in the order of `nodes`; edges go both ways.

    Examples
    --------
    >>> components("abcd", {"a": "c", "b": "", "c": "a", "d": ""}.__getitem__)
    [['a', 'c'], ['b'], ['d']]
    """
    ordered = list(dict.fromkeys(nodes))
    part_of: dict[Node, int] = {}
    parts: list[list[Node]] = []
    for node in ordered:
        if node not in part_of:
            part_of |= dict.fromkeys(breadth_first([node], neighbours), len(parts))
            parts.append([])
        parts[part_of[node]].append(node)
    return parts


def refine(
    colours: Mapping[Node, Hashable], neighbours: Callable[[Node, Mapping[Node, int]], Hashable]
) -> dict[Node, int]:
    """Return a class for each node, so that the nodes of a class see the same classes around them.

    Colour refinement (Weisfeiler and Leman): classes are split until nothing tells their members
    apart. They are numbered in the order of their first members.

    Parameters
    ----------
    colours
        What each node is by itself.
    neighbours
        What a node sees of the others, given their classes: equal views must be equal values.

    Examples
    --------
    >>> edges = {"a": "b", "b": "ac", "c": "b"}
    >>> refine(dict.fromkeys("abc", 0), lambda n, of: tuple(sorted(of[m] for m in edges[n])))
    {'a': 0, 'b': 1, 'c': 0}
    """
    classes = dict(zip(colours, numbered(list(colours.values())), strict=True))
    while True:
        finer = numbered([(colour, neighbours(node, classes)) for node, colour in classes.items()])
        if max(finer, default=0) == max(classes.values(), default=0):
            return classes
        classes = dict(zip(classes, finer, strict=True))


def numbered(colours: Sequence[Hashable]) -> list[int]:
    """Return colours as numbers, in the order in which they first appear.

    Examples
    --------
    >>> numbered(["red", "blue", "red"])
    [0, 1, 0]
    """
    order: dict[Hashable, int] = {}
    return [order.setdefault(colour, len(order)) for colour in colours]


def groups(classes: Mapping[Node, int]) -> list[list[Node]]:
    """Return the members of each class, in the order of their first members.

    Examples
    --------
    >>> groups({"a": 0, "b": 1, "c": 0})
    [['a', 'c'], ['b']]
    """
    members: dict[int, list[Node]] = {}
    for node, number in classes.items():
        members.setdefault(number, []).append(node)
    return list(members.values())
