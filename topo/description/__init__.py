"""A description of a machine: read from YAML, validated, frozen.

>>> from topo.description import loads
>>> loads("{topo: 1, devices: {'gpu[0-7]': h100-sxm-80gb}}").devices[7].name
'gpu7'

Names are resolved when first used: `topo schema` needs the tables of keys and no reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = [
    "build",
    "builtin_names",
    "builtin_text",
    "json_schema",
    "load",
    "loads",
    "read_data_path",
    "read_file",
    "to_document",
    "vary",
    "vary_data_path",
]

if TYPE_CHECKING:
    from topo.description.data_paths import read_data_path, vary_data_path
    from topo.description.dump import to_document
    from topo.description.loading import build, builtin_names, builtin_text, load, loads, read_file
    from topo.description.read import vary
    from topo.description.schema import json_schema
else:
    _HOMES = {
        "build": "loading",
        "builtin_names": "loading",
        "builtin_text": "loading",
        "json_schema": "schema",
        "load": "loading",
        "loads": "loading",
        "read_data_path": "data_paths",
        "read_file": "loading",
        "to_document": "dump",
        "vary": "read",
        "vary_data_path": "data_paths",
    }

    def __getattr__(name: str) -> object:
        """Import the module that a public name lives in."""
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
