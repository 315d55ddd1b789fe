"""YAML text into a tree that knows line and column: `topo.document.parse.parse`."""
