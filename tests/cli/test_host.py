"""`--cufile` and `--gdscheck`: the verdict rests on what the host says of itself."""

from __future__ import annotations

import pytest

from tests.host.host_twins import ROUTED, gdscheck


@pytest.fixture
def host(tmp_path, topo):
    (tmp_path / "cufile.json").write_bytes(ROUTED)
    (tmp_path / "gdscheck.txt").write_bytes(gdscheck(iommu="enabled"))
    return tmp_path


def test_compare_says_what_direct_becomes_and_cites_the_line(topo, host):
    done = topo("compare", "dgx-h100", "--workload", "load", "--cufile", "cufile.json")
    assert done.code == 0
    assert "direct becomes routed-sysmem" in done.out
    assert "(cufile.json:11)" in done.out
    answer = topo(
        "compare", "dgx-h100", "--workload", "load", "--cufile", str(host / "cufile.json"), "--json"
    )
    direct, routed = answer.document["workloads"][0]["paths"][1:]
    (reason,) = [one for one in direct["reasons"] if one["code"] == "dynamic-routing"]
    assert (reason["instead"], reason["place"]["line"]) == (routed["data_path"], 11)
    assert str(host) not in answer.out


def test_compare_says_where_the_host_contradicts_the_file(topo, host):
    words = ("compare", "gds-textbook", "--workload", "load", "--gdscheck", "gdscheck.txt")
    done = topo(*words, "--set", "settings.iommu=off")
    assert "on by gdscheck.txt, and off by --set; used is off" in done.err
    assert "(gdscheck.txt:43)" in topo(*words).out


def test_workloads_together_say_what_to_ask_instead(topo, host):
    words = ("compare", "dgx-h100", "--together", "--cufile", "cufile.json")
    done = topo(*words, "--via", "direct")
    assert (done.code, "--via routed-sysmem" in done.err) == (1, True)
    columns = [path["data_path"] for path in topo(*words, "--json").document["paths"]]
    assert columns == ["legacy", "routed-sysmem"]
    assert topo(*words, "--via", "legacy,routed-sysmem").code == 0


def test_paths_take_them_as_well(topo, host):
    done = topo("paths", "dgx-h100", "--cufile", "cufile.json")
    assert "(cufile.json:11)" in " ".join(done.out.split())
    ends = ("--from", "storage", "--to", "gpu0")
    done = topo("paths", "dgx-h100", "--gdscheck", "gdscheck.txt", *ends)
    assert "gdscheck.txt:43" in done.out
    assert topo("show", "dgx-h100", "--set", "settings.gds-support=[nvme, nfs]").out.count(
        "gds-support nvme nfs"
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--cufile", "absent.json"), "no-file"),
        (("--cufile", "gdscheck.txt"), "json-syntax"),
        (("--gdscheck", "cufile.json"), "wrong-kind"),
    ],
)
def test_a_wrong_file_is_said(topo, host, words, said):
    done = topo("compare", "dgx-h100", *words)
    assert (done.code, said in done.err) == (1, True)
