"""`topo schema`: the JSON Schema of topology files."""

from __future__ import annotations

from topo.cli import verb


@verb.command("topo schema")
@verb.asks_json
def command(as_json: bool) -> int:  # noqa: ARG001  (it is JSON either way)
    """Print the JSON Schema of topology files, for editors.

    Save it as topo.schema.json and begin a file with
    `# yaml-language-server: $schema=topo.schema.json`.
    """
    from topo.description.schema import json_schema
    from topo.views.json import encoded

    return verb.put_text(encoded(json_schema()))
