"""A description of a machine: read from YAML, validated, frozen.

>>> from topo.spec import loads
>>> loads("{topo: 1, devices: {'gpu[0-7]': h100-sxm-80gb}}").devices[7].name
'gpu7'
"""

from topo.spec.data_paths import read_data_path, vary_data_path
from topo.spec.dump import to_document
from topo.spec.load import build, builtin_names, builtin_text, load, loads, read_file
from topo.spec.read import vary
from topo.spec.schema import json_schema

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
