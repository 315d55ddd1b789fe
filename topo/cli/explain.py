"""`topo explain`: what a code, a data path, a class or a word means."""

from __future__ import annotations

from dataclasses import replace

import click

from topo.cli import verb
from topo.errors import Finding, UnknownNameError
from topo.phrases import did_you_mean


@verb.command(
    "topo explain acs-redirect",
    "topo explain legacy",
    "topo explain NODE",
    "topo explain channels",
    "topo explain RAM traversal",
    "topo explain kv-cache",
)
@click.argument("words", metavar="WORD...", nargs=-1, shell_complete=verb.completes("words"))
@verb.asks_json
def command(words: tuple[str, ...], as_json: bool) -> int:
    """Explain a finding's code, a data path, a locality class, a key of files or a word.

    A WORD may be a model: then it says what that asks for. Without one it lists all of them.
    """
    from topo.catalogue.needs import needs
    from topo.datapaths.registry import built_in, count, halves
    from topo.description.data_paths import built_in_files
    from topo.description.description import ASKS
    from topo.description.reference import key_uses
    from topo.views.documents import explanation_document, words_document
    from topo.views.explain import (
        data_path_explained,
        explain_page,
        key_explained,
        listing_page,
        page_of,
        pages,
        with_key,
    )
    from topo.views.needs import figures_of_models, need_explained

    word = " ".join(words).strip()
    if not word:
        listing: dict[str, list[str]] = {page.about: [] for page in pages().values()}
        for page in pages().values():
            listing[page.about].append(page.word)
        listing["a data path"] = list(built_in_files())
        listing["what a model needs"] = list(needs())
        known = {word for words_of in listing.values() for word in words_of}
        keys = dict.fromkeys(use.key for use in key_uses())
        listing["a key of a topology file"] = [key for key in keys if key not in known]
        if as_json:
            return verb.put_document(words_document(listing))
        return verb.put_page(listing_page(listing))
    key = key_explained(word)
    if word.lower() in built_in_files():
        path = built_in(word.lower())
        far_half, _ = halves(path)
        far = count(far_half) if far_half else None
        page = with_key(data_path_explained(path, count(path), far))
    elif (explained := page_of(word)) is not None and not (key and explained.word != key.word):
        of_models = "".join(
            f"\n\n{figures_of_models(asks)}" for asks in ASKS if asks == explained.word
        )
        page = with_key(replace(explained, text=explained.text + of_models))
    elif word.lower() in needs():
        page = with_key(need_explained(needs()[word.lower()]))
    elif key is not None:
        page = key
    else:
        keys = {use.key: None for use in key_uses()}
        names = (*pages(), *built_in_files(), *needs(), *keys)
        advice = did_you_mean(word, names) or "topo explain lists the words"
        raise UnknownNameError(Finding("unknown-name", f"no page explains `{word}`", help=advice))
    if as_json:
        return verb.put_document(explanation_document(page))
    return verb.put_page(explain_page(page))
