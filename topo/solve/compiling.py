"""Compile a function if numba, the extra `scale`, is installed; leave it as it is if not."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Function = TypeVar("Function", bound=Callable[..., Any])


def has_compiler() -> bool:
    """Tell whether numba is installed, without importing it."""
    return find_spec("numba") is not None


def compiled(function: Function) -> Function:
    """Compile a function when it is first called, and keep the code on disk for the next time."""
    if not has_compiler():
        return function
    from numba import njit

    return cast("Function", njit(cache=True, nogil=True)(function))
