"""What continuous integration and shells read: several files, formats, completion, hooks."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote
from xml.etree import ElementTree

import pytest
import yaml
from click.shell_completion import CompletionItem

from topo.cli.offers import offers
from topo.errors import Finding, Place
from topo.views.ci import CheckedFile, github, junit, sarif

CHECKOUT = Path(__file__).parents[2]
WRONG = "topo: 1\ndevices: {gpu0: l40z, gpu1: l40y}\n"
FAILING = ["expect:", "  - load via direct <= 1 ms", "  - load via direct >= 1 GB/s"]


@pytest.fixture
def files(box, tmp_path):
    """Write a file that holds, one whose expectation fails, and one with two mistakes."""
    text = (tmp_path / box).read_text()
    (tmp_path / "failing.yaml").write_text("\n".join([text.rstrip(), *FAILING, ""]))
    (tmp_path / "wrong one.yaml").write_text(WRONG)
    return [box, "failing.yaml", "wrong one.yaml"]


def test_a_file_with_mistakes_does_not_keep_the_next_from_being_checked(topo, files):
    done = topo("check", files[2], files[1], "absent.yaml", files[0])
    assert done.code == 1
    assert done.out == f"{files[0]}: nothing expected\n"
    for words in ("wrong one.yaml:2:17", "failing.yaml:", "no file `absent.yaml`", "4 errors"):
        assert words in done.err
    assert topo("check", files[0], "dgx-h100").code == 0


def test_several_files_as_json_are_a_list(topo, files):
    done = topo("check", *files, "--json")
    assert (done.code, done.document["schema"]) == (1, "topo.checks/1")
    held, failing, wrong = done.document["files"]
    assert [one["file"] for one in (held, failing, wrong)] == files
    assert [one["schema"] for one in (held, failing)] == ["topo.check/1"] * 2
    assert [one["holds"] for one in failing["expectations"]] == [False, True]
    assert (wrong["schema"], len(wrong["findings"])) == ("topo.findings/1", 2)
    assert topo("check", files[0], "dgx-h100", "--json").code == 0


def test_standard_input_is_one_of_them_and_once(topo, files):
    done = topo("check", "-", "dgx-h100", "--format", "github", stdin=WRONG.encode())
    assert done.out.startswith("::error file=<stdin>,line=2,col=17,")
    assert topo("check", "-", "-", stdin=b"").code == 2


@pytest.mark.parametrize("words", [("--json",), ("--host",)])
def test_a_format_goes_with_no_other(topo, box, words):
    assert topo("check", box, "--format", "sarif", *words).code == 2


def test_options_hold_for_each_file(topo):
    done = topo("check", "dgx-h100", "gds-textbook", "--set", "slot1.part=connectx-6")
    assert done.code == 1
    assert {"dgx-h100", "gds-textbook"} <= set(re.findall(r"topologies/([\w-]+)\.yaml:", done.err))


# --- formats --------------------------------------------------------------------------------------

NASTY = CheckedFile(
    "a, b:100%.yaml",
    (
        Finding(
            "tab", '50 % of\na <b> & \x07"c"]]>', Place("a, b:100%.yaml", 2, 3, 9), help="x\r\ny"
        ),
        Finding("no-date", "a note", severity="note"),
        Finding("odd", "a warning", Place("used.yaml", 1, 1), severity="warning"),
    ),
)


def test_github_reads_each_finding_beside_its_line(topo, files):
    done = topo("check", *files, "--format", "github")
    assert (done.code, done.err) == (1, "")
    for line in done.out.splitlines():
        assert re.fullmatch(
            r"::error file=[^,:]+,line=\d+,col=\d+,endColumn=\d+,title=[\w-]+::.+", line
        )
    assert topo("check", files[0], "--format", "github").out == ""


def test_what_github_would_take_for_its_own_is_escaped():
    first, second, third = github([NASTY]).splitlines()
    assert first.startswith(
        "::error file=a%2C b%3A100%25.yaml,line=2,col=3,endColumn=9,title=tab::"
    )
    assert first.endswith('50 %25 of%0Aa <b> & \x07"c"]]>%0Ahelp: x%0D%0Ay')
    assert second == "::notice file=a%2C b%3A100%25.yaml,title=no-date::a note"
    assert third == "::warning file=used.yaml,line=1,col=1,title=odd::a warning"


def test_sarif_has_what_its_schema_requires(topo, files):
    done = topo("check", *files, "--format", "sarif")
    assert done.code == 1
    log = done.document
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "topo"
    assert len({rule["id"] for rule in rules}) == len(rules)
    assert all(rule["help"]["text"] for rule in rules)
    assert len(run["results"]) == 3
    for result in run["results"]:
        assert result["ruleId"] == rules[result["ruleIndex"]]["id"]
        assert result["message"]["text"]
        assert result["level"] in ("none", "note", "warning", "error")
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert place["region"]["endColumn"] > place["region"]["startColumn"] >= 1
    uris = {
        one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]
    }
    assert uris == {"failing.yaml", "wrong%20one.yaml"}


def test_a_brace_of_a_message_is_no_placeholder_of_sarif():
    (result,) = sarif([CheckedFile("a.yaml", (Finding("odd", "`{0}` stands here"),))])["runs"][0][
        "results"
    ]
    assert result["message"]["text"] == "`{{0}}` stands here"


def test_sarif_has_no_region_where_no_place_is_known():
    first, second, third = sarif([NASTY])["runs"][0]["results"]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a,%20b%3A100%25.yaml"
    assert "region" not in second["locations"][0]["physicalLocation"]
    assert [one["level"] for one in (first, second, third)] == ["error", "note", "warning"]
    absolute = CheckedFile("/tmp/a b.yaml", (Finding("odd", "x"),))
    (result,) = sarif([absolute])["runs"][0]["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "file:///tmp/a%20b.yaml"


def test_junit_has_a_suite_for_each_file(topo, files):
    done = topo("check", *files, "--format", "junit")
    assert done.code == 1
    assert "failing.yaml:" in done.err
    root = ElementTree.fromstring(done.out)
    assert [suite.get("name") for suite in root] == files
    counts = [tuple(suite.get(key) for key in ("tests", "failures", "errors")) for suite in root]
    assert counts == [("1", "0", "0"), ("3", "1", "0"), ("2", "0", "2")]
    assert tuple(root.get(key) for key in ("tests", "failures", "errors")) == ("6", "1", "2")
    names = [case.get("name") for case in root[1]]
    assert names == ["is read", *(line.removeprefix("  - ") for line in FAILING[1:])]
    failure = root[1][1].find("failure")
    assert failure is not None
    assert failure.get("type") == "expectation-failed"
    assert root[1][2].find("failure") is None


def test_junit_stays_xml_whatever_is_said():
    root = ElementTree.fromstring(junit([NASTY]))
    (case,) = root[0]
    error = case.find("error")
    assert error is not None
    assert '<b> & \ufffd"c"]]>' in (error.text or "")
    assert "note[no-date]: a note\nwarning[odd]: a warning" in (case.findtext("system-out") or "")


def test_the_same_files_give_the_same_bytes(topo, files):
    for format_ in ("github", "sarif", "junit"):
        assert (
            topo("check", *files, "--format", format_).out
            == topo("check", *files, "--format", format_).out
        )


# --- completion -----------------------------------------------------------------------------------


def completed(words, shell="bash", cwd=None):
    """Return what a shell is offered for the last of the words."""
    environment = {
        **os.environ,
        "_TOPO_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1) if shell != "fish" else words[-1],
        "PYTHONPATH": str(CHECKOUT),
    }
    done = subprocess.run(
        [sys.executable, "-m", "topo"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        cwd=cwd,
    )
    return done.stdout.split()


def test_verbs_options_and_machines(tmp_path):
    assert "plain,compare" in completed(["topo", "comp"])
    assert completed(["topo", "check", "--form"]) == ["plain,--format"]
    (tmp_path / "dgx-own.yaml").write_text("")
    offered = completed(["topo", "compare", "dgx-"], cwd=tmp_path)
    assert {"plain,dgx-h100", "plain,dgx-own.yaml"} <= set(offered)
    assert completed(["topo", "import", "some"]) == ["file,some"]


@pytest.mark.parametrize("words", [["--from", "slo"], ["--without", "slo"]])
def test_devices_of_the_file_that_is_typed(words):
    assert completed(["topo", "compare", "dgx-h100", *words]) == ["plain,slot1", "plain,slot2"]


def test_workloads_and_data_paths():
    assert completed(["topo", "compare", "dgx-h100", "--workload", "l"]) == ["plain,load"]
    assert "plain,legacy,direct" in completed(
        ["topo", "compare", "dgx-h100", "--via", "legacy,dir"]
    )


def test_a_file_with_mistakes_offers_nothing(tmp_path):
    (tmp_path / "bad.yaml").write_text(WRONG)
    assert completed(["topo", "compare", "bad.yaml", "--from", "x"], cwd=tmp_path) == ["file,x"]
    assert offers("devices", "-", "") == offers("devices", "absent.yaml", "") == []
    assert all(isinstance(one, CompletionItem) for one in offers("machines", "", "dgx"))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(topo, shell):
    done = topo("completion", shell)
    assert done.code == 0
    assert f"_TOPO_COMPLETE={shell}_complete" in done.out
    assert topo("completion", shell, "--json").document["script"] == done.out
    assert topo("completion", "tcsh").code == 2


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_takes_its_script(topo, tmp_path):
    (tmp_path / "completion.bash").write_text(topo("completion", "bash").out)
    checkout, python = quote(str(CHECKOUT)), quote(sys.executable)
    program = tmp_path / "topo"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={checkout} exec {python} -m topo "$@"\n')
    program.chmod(0o755)
    ask = (
        "source completion.bash; COMP_WORDS=(./topo compare dgx-h100 --from slo); COMP_CWORD=4; "
        '_topo_completion ./topo; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["slot1", "slot2"]


# --- hooks ----------------------------------------------------------------------------------------


def test_the_hooks_of_pre_commit_name_commands_that_are_there(topo):
    hooks = yaml.safe_load((CHECKOUT / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["topo-check", "topo-fmt"]
    for hook in hooks:
        assert {"id", "name", "entry", "language"} <= set(hook)
        program, *words = hook["entry"].split()
        assert program == "topo"
        assert topo(*words, "--help").code == 0
        taken = re.compile(hook["files"])
        assert all(taken.search(name) for name in ("topology.yaml", "a/topologies/b.yaml"))
        assert not taken.search("compose.yaml")
    assert Path(CHECKOUT, "docs", "ci.md").read_text().count("topo-check")
