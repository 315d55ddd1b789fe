"""The kinds of devices, and the groups of kinds that rules speak of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

Kind = Literal[
    "storage",
    "nic",
    "nvme",
    "hba",
    "pcie-switch",
    "root-complex",
    "cpu",
    "memory",
    "gpu",
    "nvswitch",
    "network-switch",
    "dpu",
    "cxl-memory",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

CARDS: Final[tuple[Kind, ...]] = ("nic", "dpu")
DRIVES: Final[tuple[Kind, ...]] = ("nvme", "hba")
STORAGE: Final[tuple[Kind, ...]] = ("storage", *DRIVES)
HOSTS: Final[tuple[Kind, ...]] = ("cpu", "root-complex")
MEMORIES: Final[tuple[Kind, ...]] = ("memory", "cxl-memory")


class HasKind:
    """What can be asked about the kind of a part or device."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def kind(self) -> Kind:
            """What it is; the class that mixes this in has it."""
            raise NotImplementedError

    @property
    def is_nic(self) -> bool:
        """Whether it is a network card; a DPU is one."""
        return self.kind in CARDS

    @property
    def is_drive(self) -> bool:
        """Whether it is a drive of the host, or a controller with drives behind it."""
        return self.kind in DRIVES

    @property
    def is_storage(self) -> bool:
        """Whether data can be stored there: a remote target or a drive."""
        return self.kind in STORAGE

    @property
    def is_host(self) -> bool:
        """Whether PCIe trees begin there: a CPU, or a root complex."""
        return self.kind in HOSTS

    @property
    def is_memory(self) -> bool:
        """Whether it is system memory, on the CPU's bus or by CXL."""
        return self.kind in MEMORIES
