"""Frozen values with fields: the standard `dataclass`, made five times faster.

A short verb makes a hundred classes of values before it answers, and the standard decorator
compiles six functions for each: a fifth of such a verb's time. Here the constructor alone is
compiled, when it is first called. `fields`, `replace` and pickle treat such a class like any other.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  (to be imported from here)
else:

    def dataclass(plain: type | None = None, /, **options: bool) -> Any:
        """Return the class, or the decorator: a quick one for frozen classes with slots."""
        if options == {"frozen": True, "slots": True}:
            return _frozen
        if options == {"frozen": True, "slots": True, "order": True}:
            return _ordered
        return dataclasses.dataclass(plain, **options)


def _frozen(plain: type) -> Any:
    cls: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(plain)
    fields = dataclasses.fields(cls)
    assert all(field.init and not field.kw_only for field in fields), "what `_compiled` knows"
    values = _values(field.name for field in fields)
    compared = _values(field.name for field in fields if field.compare)

    def constructor(self: Any, *arguments: Any, **named: Any) -> None:
        cls.__init__ = _compiled(cls)
        cls.__init__(self, *arguments, **named)

    def equal(self: Any, other: Any) -> Any:
        return compared(self) == compared(other) if other.__class__ is cls else NotImplemented

    methods = {
        "__init__": constructor,
        "__repr__": _short,
        "__eq__": equal,
        "__hash__": lambda self: hash(compared(self)),
        "__setattr__": _refuse,
        "__delattr__": _refuse,
        "__reduce__": lambda self: (cls, values(self)),
        "__signature__": _Signature(),
    }
    for name, method in methods.items():
        if name not in plain.__dict__:
            setattr(cls, name, method)
    return cls


def _ordered(plain: type) -> Any:
    cls: Any = _frozen(plain)
    compared = _values(field.name for field in dataclasses.fields(cls) if field.compare)

    def ordered(comparison: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
        def method(self: Any, other: Any) -> Any:
            if other.__class__ is not cls:
                return NotImplemented
            return comparison(compared(self), compared(other))

        return method

    for comparison in (operator.lt, operator.le, operator.gt, operator.ge):
        setattr(cls, f"__{comparison.__name__}__", ordered(comparison))
    return cls


def _values(fields: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what reads these fields of a value."""
    names = tuple(fields)
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _compiled(cls: Any) -> Callable[..., None]:
    """Return ``__init__``, as the standard library compiles it: it assigns past `_refuse`."""
    variables: dict[str, Any] = {"_assign": object.__setattr__}
    parameters, lines = [], []
    for field in dataclasses.fields(cls):
        parameter = value = name = field.name
        if field.default is not dataclasses.MISSING:
            variables[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            variables[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_make_{name}"
            value = f"_make_{name}() if {name} is _make_{name} else {name}"
        parameters.append(parameter)
        lines.append(f"    _assign(self, {name!r}, {value})")
    text = "\n".join([f"def __init__(self, {', '.join(parameters)}):", *lines, "    return None"])
    exec(text, variables)  # noqa: S102  (made of a class's own field names)
    constructor: Callable[..., None] = variables["__init__"]
    constructor.__qualname__ = f"{cls.__qualname__}.__init__"
    return constructor


class _Signature:
    """What `help` and editors show of a constructor, which is compiled for the first value only."""

    def __get__(self, _value: object, cls: Any) -> inspect.Signature:
        import inspect

        _, *parameters = inspect.signature(_compiled(cls)).parameters.values()
        typed = zip(parameters, dataclasses.fields(cls), strict=True)
        return inspect.Signature([name.replace(annotation=field.type) for name, field in typed])


class _Short(reprlib.Repr):
    """What values without words of their own say of themselves: their fields, a few levels deep."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxdict, self.maxstring, self.maxother = 2, 3, 80, 120
        self.maxtuple = self.maxlist = 3

    def repr_instance(self, value: Any, level: int) -> str:  # what `repr1` calls, by this name
        """Return a value's own words, or else its fields; its name alone at the last level."""
        cls: Any = type(value)
        if cls.__repr__ is not _short:
            return super().repr_instance(value, level)
        shown = [field.name for field in dataclasses.fields(cls) if field.repr]
        texts = [f"{name}={self.repr1(getattr(value, name), level - 1)}" for name in shown]
        text = ", ".join(texts) if level > 0 else "..." * bool(shown)
        text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
        return f"{cls.__qualname__}({text})"


_LONGEST = 240  # characters of a value's fields
_SHORT = _Short()


def _short(self: Any) -> str:
    return _SHORT.repr(self)


def _refuse(self: Any, name: str, *_: Any) -> None:
    message = f"{type(self).__name__} is frozen: {name} stays as it is"
    raise dataclasses.FrozenInstanceError(message)
