"""A command line in this process: what it prints, and what it returns."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from tests.machines import ONE_SOCKET
from topo.cli.program import main


@dataclass(frozen=True)
class Done:
    """What one call left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        def refuse(name):
            raise AssertionError(f"{name} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def topo(capsys, monkeypatch, tmp_path):
    """Run ``topo WORDS`` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*words: str, stdin: bytes = b"") -> Done:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = main(words)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


@pytest.fixture
def box(topo, tmp_path):
    """One storage, one card, one socket, one GPU, every figure round: ``box.yaml``."""
    (tmp_path / "box.yaml").write_text(ONE_SOCKET, encoding="utf-8")
    return "box.yaml"
