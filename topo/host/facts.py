"""Facts as a host's tools state them, and as a topology file would: each with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topo.document.nodes import Scalar, Sequence
from topo.records import dataclass

if TYPE_CHECKING:
    from topo.document.nodes import Node
    from topo.errors import Place


_YES: Final = ("true", "1", "yes", "on", "enabled")
_NO: Final = ("false", "0", "no", "off", "disabled")
# Names that older or newer releases use for the same.
_OLD_NAMES: Final = {
    "properties.use_compat_mode": "properties.allow_compat_mode",
    "properties.rdma_peer_affinity_policy": "properties.rdma_load_balancing_policy",
    "blacklist.drivers": "denylist.drivers",
    "blacklist.devices": "denylist.devices",
    "blacklist.mounts": "denylist.mounts",
    "blacklist.filesystems": "denylist.filesystems",
}


@dataclass(frozen=True, slots=True)
class HostFact:
    """One fact: ``properties.use_poll_mode``, its words, and where they stand."""

    key: str
    words: tuple[str, ...]
    place: Place

    @property
    def text(self) -> str:
        """The words as one text."""
        return " ".join(self.words)

    @property
    def flag(self) -> bool | None:
        """Whether it states yes or no; `None` for anything else."""
        text = self.text.strip().lower()
        return True if text in _YES else False if text in _NO else None


def current_name(key: str) -> str:
    """Return a key of cuFile's configuration as today's release calls it.

    Examples
    --------
    >>> current_name("properties.use_compat_mode"), current_name("properties.use_poll_mode")
    ('properties.allow_compat_mode', 'properties.use_poll_mode')
    """
    return _OLD_NAMES.get(key, key)


@dataclass(frozen=True, slots=True)
class HostSetting:
    """One fact in the words of a topology file: what ``--set target=value`` would be."""

    target: str
    value: Node

    @classmethod
    def of(cls, target: str, value: str | tuple[str, ...], place: Place) -> HostSetting:
        """Return the setting of a word, or of a list of words; an empty list is `none`."""
        if isinstance(value, str):
            return cls(target, Scalar(value, place))
        if not value:
            return cls(target, Scalar("none", place))
        return cls(target, Sequence(tuple(Scalar(word, place) for word in value), place))

    @property
    def place(self) -> Place:
        """Where the host's tool states it."""
        return self.value.place

    @property
    def device(self) -> str:
        """The device, ``""`` for a setting of the host."""
        name = self.target.rpartition(".")[0]
        return "" if name == "settings" else name

    @property
    def key(self) -> str:
        """The key of the setting or device."""
        return self.target.rpartition(".")[2]

    @property
    def words(self) -> str:
        """The value as one text."""
        if isinstance(self.value, Scalar):
            return self.value.text
        assert isinstance(self.value, Sequence), "a word or a list"
        return " ".join(item.text for item in self.value.items if isinstance(item, Scalar))
