"""What models ask for, and what comes of it, as keys of a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topo.catalogue.fields import quantity_of
from topo.study.needs import RULE, Checkpointing, Feeding
from topo.views.json import Document, figure_keys, keys_of

if TYPE_CHECKING:
    from topo.catalogue.needs import Need
    from topo.description.description import ModelNeed
    from topo.study.needs import Kind, Met


def need_keys(need: Need) -> Document:
    """Return what a model asks for: each figure with kind and source, and what follows."""
    return {
        **keys_of(need, "name title? source?"),
        "figures": {
            key: figure_keys(figure, quantity_of(key).unit) for key, figure in need.figures.items()
        },
        "steps": {key: figure_keys(step, "s") for key, step in need.steps.items()},
        "rates": {key: figure_keys(need.rate(key)) for key in need.steps},
        "kv_cache_of_a_token": figure_keys(need.token, "bytes") if need.token else None,
    }


def model_need_keys(need: ModelNeed) -> Document:
    """Return what a workload moves for a model."""
    document = keys_of(need, "asks model.name:model")
    if need.asks == "kv-cache":
        return {**document, "tokens": need.tokens}
    if need.asks == "needs":
        document["accelerators_each"] = need.accelerators or 1
    return {**document, **keys_of(need, "accelerator?")}


def met_keys(met: Met) -> Document:
    """Return what comes of it, under the name of what it is."""
    if isinstance(met, Feeding):
        supply = "supply:supply_bytes_per_s supply_at_most bound:supply_bottlenecks"
        feeding = {
            "model": met.model,
            "utilisation": figure_keys(met.utilisation, "ratio"),
            **keys_of(met, "count:accelerators fed unknown:need_unknown room:would_feed", supply),
            "kinds": [_kind(kind) for kind in met.kinds],
        }
        return {"feeding": feeding}
    if isinstance(met, Checkpointing):
        seconds = "mtbf:mtbf_s write:write_s interval:best_interval_s writing:writing_s_a_day"
        costs = {
            **keys_of(met, "model accelerators"),
            "mttf": figure_keys(met.mttf, "s"),
            **keys_of(met, seconds, "repeating:repeating_s_a_day lost:lost_s_a_day rule_holds"),
            "rule": RULE,
        }
        return {"checkpointing": costs}
    moved = keys_of(met, "model size:bytes time")
    if met.tokens and met.token:
        moved |= {
            "tokens": met.tokens,
            "tokens_per_s": met.tokens / met.time,
            "token": figure_keys(met.token, "bytes"),
        }
    return {"moved": moved}


def _kind(kind: Kind) -> Document:
    return {
        **keys_of(kind, "accelerator? count"),
        "need": figure_keys(kind.rate),
        "rates_bytes_per_s": kind.rates,
    }
