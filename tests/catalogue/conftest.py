"""Reading one part, cable or medium from a line of YAML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from topo.catalogue.cables import read_cable, read_media
from topo.catalogue.parts import catalogue, read_parts
from topo.document.nodes import Report
from topo.document.parse import parse

if TYPE_CHECKING:
    from topo.errors import Finding


@dataclass(frozen=True)
class Read:
    """What was read, and what was said about it."""

    value: Any
    findings: tuple[Finding, ...]

    @property
    def said(self) -> list[str]:
        return [f"{found.code}: {found.message} ({found.help})" for found in self.findings]

    @property
    def clean(self) -> Any:
        assert self.said == []
        return self.value


@pytest.fixture(scope="session")
def shipped():
    return catalogue()


@pytest.fixture
def parts(shipped):
    """Read a text as a file's `parts:`."""

    def read(text: str) -> Read:
        document = parse(text, name="box.yaml")
        report = Report(document)
        read = read_parts(document.root, parts=shipped.parts, media=shipped.media, report=report)
        return Read(read, report.findings)

    return read


@pytest.fixture
def part(parts):
    """Read one part, `acme`, from the value under its name."""

    def read(text: str) -> Read:
        found = parts(f"acme: {text}")
        return Read(found.value.get("acme"), found.findings)

    return read


@pytest.fixture
def cable(shipped):
    """Read the value under a link."""

    def read(text: str) -> Read:
        document = parse(f"link: {text}", name="box.yaml")
        report = Report(document)
        root: Any = document.root
        node = root.get("link")
        return Read(read_cable(node, media=shipped.media, report=report), report.findings)

    return read


@pytest.fixture
def media(shipped):
    """Read a text as a file's `media:`."""

    def read(text: str) -> Read:
        document = parse(text, name="box.yaml")
        report = Report(document)
        return Read(read_media(document.root, media=shipped.media, report=report), report.findings)

    return read
