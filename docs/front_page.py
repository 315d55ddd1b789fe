"""What `mkdocs.yml` needs to know of this project: the front page is README, with its pictures.

A link out of `docs/` stays one where the site has what it leads to; else its text stays.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#]+)(#[^)]*)?\)")
_SHOWN = ("renders/gds-textbook.svg", "renders/report.png", "renders/gallery.html")


def shown_besides() -> tuple[str, ...]:
    """Return the files from outside `docs/` that pages show or link to."""
    cases = sorted(ROOT.glob("tests/validation/cases/*.yaml"))
    return (*_SHOWN, *(case.relative_to(ROOT).as_posix() for case in cases))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the site shows of the folders around `docs/`."""
    for page, source in (("index.md", "README.md"), ("changes.md", "CHANGELOG.md")):
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=within_site(text, config)))
    for shown in shown_besides():
        files.append(File.generated(config, shown, abs_src_path=str(ROOT / shown)))
    return files


def on_page_markdown(markdown: str, config: MkDocsConfig, **_: object) -> str:
    """Return a page whose links stay within the site."""
    return within_site(markdown, config)


def within_site(text: str, config: MkDocsConfig) -> str:
    """Return a text with links from the project's root led to pages, others made plain text."""
    shown = shown_besides()

    def led(link: re.Match[str]) -> str:
        label, anchor = link[1], link[3] or ""
        target = link[2].removeprefix("docs/").removeprefix("../")
        there = (Path(config.docs_dir) / target).is_file() or target in shown
        return f"[{label}]({target}{anchor})" if there or ":" in target else label

    return _LINK.sub(led, text)
