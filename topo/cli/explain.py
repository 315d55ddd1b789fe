"""`topo explain`: what a code, a data path, a class or a word means."""

from __future__ import annotations

from difflib import get_close_matches

import click

from topo.cli.options import asks_json, example
from topo.cli.output import put_document, put_page
from topo.errors import Finding, UnknownNameError


@click.command(
    epilog=example(
        "topo explain acs-redirect",
        "topo explain legacy",
        "topo explain NODE",
        "topo explain RAM traversal",
    )
)
@click.argument("words", metavar="WORD...", nargs=-1)
@asks_json
def command(words: tuple[str, ...], as_json: bool) -> int:
    """Explain a finding's code, a data path, a locality class or a word.

    Without a WORD it lists all of them.
    """
    from topo.datapaths.registry import built_in, count
    from topo.description.data_paths import built_in_files
    from topo.views.documents import explanation_document, words_document
    from topo.views.explain import (
        data_path_explained,
        explain_page,
        listing_page,
        page_of,
        pages,
    )

    word = " ".join(words).strip()
    if not word:
        listing: dict[str, list[str]] = {page.about: [] for page in pages().values()}
        for page in pages().values():
            listing[page.about].append(page.word)
        listing["a data path"] = list(built_in_files())
        return put_document(words_document(listing)) if as_json else put_page(listing_page(listing))
    if word.lower() in built_in_files():
        path = built_in(word.lower())
        page = data_path_explained(path, count(path))
    else:
        found = page_of(word)
        if found is None:
            raise _unknown(word, (*pages(), *built_in_files()))
        page = found
    return put_document(explanation_document(page)) if as_json else put_page(explain_page(page))


def _unknown(word: str, known: tuple[str, ...]) -> UnknownNameError:
    near = get_close_matches(word.lower().replace(" ", "-"), known, n=3)
    advice = f"did you mean {' or '.join(near)}?" if near else "topo explain lists the words"
    return UnknownNameError(Finding("unknown-name", f"no page explains `{word}`", help=advice))
