"""`--needs` and `--checkpoint`: the same of every verb that asks about a workload."""

from __future__ import annotations

import pytest

from topo.cli.offers import offers

VERBS = ["compare", "bottleneck", "upgrade", "doubt", "failures", "diff", "sweep", "report", "draw"]
MORE = {
    "diff": ("--set", "gpu0.hbm=2 TB/s"),
    "sweep": ("--vary", "gpu0.hbm=1 TB/s,2 TB/s"),
    "draw": ("-o", "machine.dot"),
}


@pytest.fixture
def fed_box(topo, box, tmp_path):
    """The box with a GPU of which it is known what it reads."""
    text = (tmp_path / box).read_text(encoding="utf-8")
    (tmp_path / "fed.yaml").write_text(text.replace("gpu0: accel", "gpu0: h100-sxm-80gb"), "utf-8")
    return "fed.yaml"


@pytest.mark.parametrize("option", ["--needs", "--checkpoint"])
@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_asked_about_a_model(topo, fed_box, verb, option):
    model = "unet3d" if option == "--needs" else "llama3-8b"
    done = topo(verb, fed_box, option, model, *MORE.get(verb, ()), "--json")
    assert done.code == 0, done.err or done.out
    if verb != "draw":
        assert model in done.out


@pytest.mark.parametrize("verb", VERBS)
def test_two_questions_are_no_question(topo, fed_box, verb):
    for words in (
        ("--needs", "unet3d", "--checkpoint", "llama3-8b"),
        ("--needs", "unet3d", "--workload", "load"),
        ("--workload", "load", "--from", "storage"),
    ):
        done = topo(verb, fed_box, *words, *MORE.get(verb, ()))
        assert done.code == 2
        assert "are two questions: ask one" in done.err


def test_a_model_that_says_nothing_of_it(topo, fed_box):
    done = topo("compare", fed_box, "--checkpoint", "unet3d")
    assert done.code == 1
    assert "nobody says how large a checkpoint of unet3d is" in done.err
    done = topo("compare", fed_box, "--needs", "")
    assert done.code == 1


def test_what_shows_the_first_for_itself_asks_about_the_same(topo, fed_box):
    page = topo("upgrade", fed_box, "--checkpoint", "llama3-8b", "--from", "gpu0").out
    assert "lost a day" in page
    page = topo("sweep", fed_box, "--checkpoint", "llama3-8b", *MORE["sweep"]).out
    assert f"topo compare {fed_box} --checkpoint llama3-8b --via" in " ".join(page.split())


def test_diff_says_what_it_does_to_the_lost_time(topo, fed_box):
    page = topo("diff", fed_box, "--checkpoint", "llama3-8b", "--set", "nic0.chip=10 GB/s").out
    assert "best interval" in page
    assert "lost a day" in page


def test_tab_offers_models_that_have_it():
    def names(what):
        return {item.value for item in offers(what, "", "")}

    assert {"unet3d", "superpod-vision"} <= names("needs")
    assert names("checkpoint") == {"llama3-8b", "llama3-70b", "llama3-405b", "mlperf-1t"}


@pytest.mark.parametrize(
    ("word", "figures"),
    [
        ("checkpoint", ["llama3-70b: 912 GB", "sqrt(2 x write time"]),
        ("kv-cache", ["llama3-70b: 327.68 kB (2 x 80 x 8 x 128 x 2 B)", "layers x kv-latent"]),
        ("needs", ["unet3d: H100 3.18 GB/s (146.6 MB x 7 / 323 ms)", "superpod-vision: 4 GB/s"]),
        ("unet3d", ["with 2.86 GB/s it is fed", "unet3d_b200.yaml: half of an H100's"]),
    ],
)
def test_a_word_is_explained_by_the_figures_of_each_model(topo, word, figures):
    done = topo("explain", word)
    assert done.code == 0
    for figure in figures:
        assert figure in done.out


def test_parts_lists_what_every_model_needs(topo):
    page = topo("parts", "needs").out
    assert "912 GB [" in page
    assert "B200 6.33 GB/s (guess) [2]" in page
    assert "half of an H100's" in page
    names = {need["name"] for need in topo("parts", "needs", "--json").document["needs"]}
    assert {"unet3d", "llama3-70b", "accelerator"} <= names


def test_what_comes_of_a_model_is_said_once_of_paths_that_are_alike(topo):
    page = topo("compare", "gds-textbook", "--checkpoint", "llama3-70b").out
    assert page.count("a checkpoint of llama3-70b in 9.12 s") == 1
    assert "\n- legacy and direct write a checkpoint of llama3-70b in 9.12 s" in page
