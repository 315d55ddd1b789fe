"""The `sweep:` of a file: what `topo sweep` varies.

An axis is a key of ``--set`` with its values, or a name of one's own whose values change several
keys at once::

    sweep:
      slot1.part: [connectx-7-dual-port, connectx-8-dual-port]
      via: [legacy, direct]
      memory:
        small: {ram.channels: 8, ram.price: 3200}
        large: {ram.channels: 12, ram.price: 4800}
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topo.description import keys
from topo.description.description import Axis, Choice
from topo.document.nodes import Mapping, Node, Report, Scalar, Sequence

_EXAMPLE: Final = "write it like `ram.channels: [8, 12]`"


def read_axes(node: Node | None, report: Report) -> tuple[Axis, ...]:
    """Read the entries of `sweep:`, without looking names up."""
    mapping = keys.mapping_of(node, "`sweep:`", report, help=_EXAMPLE)
    axes: list[Axis] = []
    for key, value in mapping or ():
        if not keys.is_extension(key.text):
            axes.append(Axis(key.text, tuple(_choices(key, value, report)), key.place))
    return tuple(axes)


def _choices(key: Scalar, value: Node, report: Report) -> Iterator[Choice]:
    what = f"the axis `{key.text}`"
    if isinstance(value, Mapping):
        for label, node in value:
            changes = keys.mapping_of(node, f"`{label.text}` of {what}", report, help=_EXAMPLE)
            texts = {
                target.text: text
                for target, changed in changes or ()
                if (text := keys.text_of(changed, f"`{target.text}` of {what}", report)) is not None
            }
            if changes is not None:
                yield Choice(label.text, texts)
        return
    items = value.items if isinstance(value, Sequence) else (value,)
    if not items:
        report.add(value, "empty-axis", f"{what} has no values", help=_EXAMPLE)
    labels: dict[str, None] = {}
    for item in items:
        text = keys.text_of(item, f"a value of {what}", report, help=_EXAMPLE)
        if text in labels:
            report.add(item, "defined-twice", f"`{text}` stands twice in {what}")
        elif text is not None:
            labels[text] = None
            yield Choice(text, {key.text: text})
