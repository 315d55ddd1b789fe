"""The JSON Schema of a topology file, made from the tables that the readers use.

An editor that knows it completes keys and part names and shows what each means. It is wider than
topo itself: what only topo can judge (names, physics) is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from topo.catalogue import fields
from topo.catalogue.parts import NAME, part_names
from topo.description.description import COLLECTIVES, Direction, Mover, Over
from topo.description.keys import (
    CABLE,
    COLLECTIVE,
    DATA_PATH,
    DEVICE,
    FABRIC,
    MEASURED,
    MOVE,
    ON_OFF,
    SETTINGS,
    TOP,
    USE,
    WORKLOAD,
    Keys,
)

Schema = dict[str, Any]

_NAME: Final = r"[A-Za-z][A-Za-z0-9_-]*"
_RANGED: Final = rf"^{_NAME}(\[[0-9, -]+\])?$"
_EXTENSION: Final[Schema] = {"^x-": {}}


def _text(pattern: str = "", *examples: str) -> Schema:
    schema: Schema = {"type": "string"}
    if pattern:
        schema["pattern"] = pattern
    return {**schema, "examples": list(examples)} if examples else schema


def _words(*words: str) -> Schema:
    return {"enum": list(words)}


def _either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def _list_of(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def _or_list(schema: Schema) -> Schema:
    return _either(schema, _list_of(schema))


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


# --- values ---------------------------------------------------------------------------------------

_FIGURE_KIND: Final = _words("datasheet", "measured", "quoted", "guess")
_PLAIN: Final[Schema] = {"type": ["string", "number", "boolean"]}
_NUMA: Final = _either({"type": "integer", "minimum": 0}, _text("^[0-9]+( ?[-,] ?[0-9]+)*$", "0-3"))
_PCI: Final = _text("^([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]$", "1b:00.0")

# What a `Row` may hold where it has no words of its own, by the name that it gives.
VALUES: Final[Mapping[str, Schema]] = {
    "version": {"const": 1},
    "text": _PLAIN,
    "text-list": _either(_PLAIN, _list_of(_or_list(_PLAIN))),
    "name-list": _or_list(_text()),
    "selection": _or_list(_text("", "storage", "gpu", "gpu[0-3]")),
    "flag": _or_list(fields.FLAG.schema),
    "weight": _either(
        {"type": "number", "exclusiveMinimum": 0}, _text(f"^{fields.NUMBER_PATTERN}$")
    ),
    "count": fields.COUNT.schema,
    "ratios": _or_list(
        _either(
            {"type": "number", "exclusiveMinimum": 0},
            _text(f"^{fields.NUMBER_PATTERN} ?(: ?{fields.NUMBER_PATTERN})?$", "2", "4:3"),
        )
    ),
    "rate": _text(f"^{fields.RATE_PATTERN}$", "50 GB/s", "400 Gb/s"),
    "worker-rate": _text(f"^{fields.RATE_PATTERN}( per worker)?$", "3.91 GB/s per worker"),
    "duration": _text(rf"^{fields.DURATION_PATTERN}$", "2 s"),
    "positive-duration": _text(rf"^{fields.DURATION_PATTERN}$", "50000 h"),
    "need-name": _text("", "unet3d", "llama3-70b"),
    "tokens": _either(fields.COUNT.schema, _text(rf"^{fields.NUMBER_PATTERN} ?[kMG]i?$", "128Ki")),
    "accelerators": _either(fields.COUNT.schema, _text("", "h100", "255x h100", "5x h100 each")),
    "work-size": _text(rf"^{fields.SIZE_PATTERN}( each)?$", "640 GB", "80 GB each"),
    "ratio-range": _either(
        _text(rf"^{fields.NUMBER_PATTERN} ?%?( ?- ?{fields.NUMBER_PATTERN} ?%?)?$", "60-80 %"),
        {"type": "number"},
    ),
    "pci-list": _either(_PCI, _list_of(_or_list(_PCI))),
    "numa-list": _either(_NUMA, _list_of(_or_list(_NUMA))),
    "part-name": _or_list(_ref("part-name")),
    **{
        name: _ref(name)
        for name in ("settings", "parts", "media", "data-paths", "needs", "devices", "fabrics")
    },
    **{name: _ref(name) for name in ("links", "measured", "workloads", "expect", "moves", "sweep")},
    "cable-text": _ref("cable-text"),
    "figure": _ref("ratio-figure"),
    "overrides": _or_list({"type": "object"}),
    "caps": _ref("caps"),
}


# What it may hold of its own words.
WORDS: Final[Mapping[str, Callable[[Schema], Schema]]] = {
    "word": lambda words: words,
    "flag-word": lambda words: _either(words, {"type": "boolean"}),
    "word-list": _or_list,
    "routing": lambda words: _either(_words(*ON_OFF), {"type": "boolean"}, _or_list(words)),
}


def _figure(plain: Schema, *words: str, ranged: bool = False) -> Schema:
    """Return a value that may be unknown and may stand with its source; a number with a range."""
    value = _either(plain, _words("unknown", *words))
    says = fields.FIGURE_WORDS
    sourced = {
        "type": "object",
        "properties": {
            "value": {"description": says["value"], **value},
            "source": {"type": "string", "description": says["source"]},
            "kind": {"description": says["kind"], **_FIGURE_KIND},
            **({"range": {"type": "string", "description": says["range"]}} if ranged else {}),
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    return _either(plain, _words("unknown", *words), sourced)


def _field(field: fields.Field) -> Schema:
    if field.quantity is fields.CAPS:
        return _either(fields.FLAG.schema, _words("unknown"), _ref("caps"))
    plain = _words(*field.words) if field.words else field.quantity.schema
    words = ("unlimited",) if field.unlimited else ()
    return _figure(plain, *words, ranged=bool(field.quantity.unit))


def _need_field(field: fields.Field) -> Schema:
    if field.name == "step":
        return {"type": "object", "additionalProperties": _figure(field.quantity.schema)}
    return _field(field)


# --- places ---------------------------------------------------------------------------------------


def json_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of a topology file.

    Examples
    --------
    >>> json_schema()["properties"]["devices"]["description"]
    'what the machine is made of, by name'
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "topo",
        "description": "a GPU server: its devices, how they are linked, and what it has to move",
        **_object(TOP),
        "$defs": _definitions(),
    }


def _object(keys: Keys) -> Schema:
    properties = {}
    for row in keys.values():
        words = _words(*row.words) if row.words else _text()
        value = WORDS[row.holds](words) if row.holds in WORDS else VALUES[row.holds]
        properties[row.name] = {"description": row.meaning, **value}
    return {
        "type": "object",
        "properties": properties,
        "patternProperties": _EXTENSION,
        "required": [row.name for row in keys.values() if row.required],
        "additionalProperties": False,
    }


def _named(pattern: str, schema: Schema) -> Schema:
    """Return a mapping of names that match a pattern."""
    return {
        "type": "object",
        "patternProperties": {pattern: schema, **_EXTENSION},
        "additionalProperties": False,
    }


def _lines(joint: str, schema: Schema) -> Schema:
    """Return a list of one-key mappings whose key joins two ends."""
    line = {
        "type": "object",
        "patternProperties": {rf"^\S.* {joint} .*\S$": schema},
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return _list_of(line)


def _mapping(properties: Mapping[str, Schema], **more: str) -> Schema:
    return {
        "type": "object",
        **more,
        "properties": properties,
        "patternProperties": _EXTENSION,
        "additionalProperties": False,
    }


_OVER: Final = rf"( over ({'|'.join(get_args(Over))}))?"
_MOVE: Final = rf"^\S+ -> \S+ by ({'|'.join(get_args(Mover))}){_OVER}$"
_PART_WORDS_OF_DEVICE: Final = ("title", "source", "source-kind")


def _definitions() -> Schema:
    figures = {name: _field(field) for name, field in fields.FIELDS.items()}
    part = {
        name: {"description": fields.FIELDS[name].meaning, **figures[name]}
        for name in fields.FIELDS
    }
    part |= {name: {"description": fields.PART_WORDS[name]} for name in fields.PART_WORDS}
    device = _object(DEVICE)
    device["properties"] |= {
        name: {"description": fields.FIELDS[name].meaning, **_or_list(figures[name])}
        for name in fields.FIELDS
    }
    device["properties"] |= {
        name: {"type": "string", "description": fields.PART_WORDS[name]}
        for name in _PART_WORDS_OF_DEVICE
    }
    directions = [{"required": [key]} for key in (*get_args(Direction), "checkpoint", "kv-cache")]
    # a data set that has a size may be read as fast as a model needs it
    reads_for_a_model = {"required": ["needs"], "not": _either(*directions)}
    one_of = [*directions, reads_for_a_model]
    collectives = [{"required": [collective]} for collective in COLLECTIVES]
    cap = _figure(
        _text(f"^{fields.RATE_PATTERN}( per flow)?$", "22 GB/s", "10 GB/s per flow"), ranged=True
    )
    move = _either(VALUES["worker-rate"], _object(MOVE))
    scalar: Schema = {"type": ["string", "number", "boolean"]}
    changes: Schema = {"type": "object", "additionalProperties": scalar}
    return {
        "settings": _object(SETTINGS),
        "part-name": _either(_words(*part_names()), _text()),
        "parts": _named(f"^{NAME.pattern}$", _either(_ref("part-name"), _ref("part"))),
        "part": _mapping(part),
        "media": _named("^[a-z][a-z0-9-]*( [a-z0-9-]+)?$", _ref("medium")),
        "medium": _mapping(
            {name: {"description": field.meaning} for name, field in fields.MEDIUM_FIELDS.items()}
        ),
        "data-paths": _named(f"^{_NAME}$", _object(DATA_PATH)),
        "needs": _named(f"^{NAME.pattern}$", _ref("need")),
        "need": _mapping(
            {
                name: {"description": field.meaning, **_need_field(field)}
                for name, field in fields.NEED_FIELDS.items()
            }
        ),
        "moves": _list_of(_either(_text(_MOVE), _named(_MOVE, move))),
        "devices": _named(
            _RANGED, _either(_or_list(_ref("part-name")), _ref("device"), _ref("machine"))
        ),
        "device": device,
        "fabrics": _named(f"^{_NAME}$", _object(FABRIC)),
        "machine": _object(USE),
        "links": _lines("--", _either(_ref("cable-text"), _object(CABLE))),
        "cable-text": {
            "type": "string",
            "description": "`pcie 5 x16`, `2x infiniband ndr`, `4x upi 16 GT/s`",
            "examples": ["pcie 5 x16", "2x infiniband ndr", "ethernet 400 Gb/s", "memory-bus"],
        },
        "ratio-figure": _figure(fields.RATIO.schema, ranged=True),
        "caps": _mapping(
            {
                "posted": {"description": fields.CAP_WORDS["posted"], **cap},
                "non-posted": {"description": fields.CAP_WORDS["non-posted"], **cap},
                "source": {"type": "string", "description": fields.CAP_WORDS["source"]},
                "kind": {"description": fields.CAP_WORDS["kind"], **_FIGURE_KIND},
            },
            description="peer-to-peer caps: a device writes into a GPU, or reads from one",
        ),
        "measured": _lines("->", _either(VALUES["rate"], _object(MEASURED))),
        "workloads": _named(
            f"^{_NAME}$",
            _either(
                {**_object(WORKLOAD), "oneOf": one_of},
                {**_object(COLLECTIVE), "oneOf": collectives},
            ),
        ),
        "sweep": {
            "type": "object",
            "additionalProperties": _either(
                scalar, _list_of(scalar), {"type": "object", "additionalProperties": changes}
            ),
        },
        "expect": _list_of(_text("", "load via direct <= 7 s", "gpu4 to slot2 is SYS")),
    }
