"""`topo affinity` as people type it."""

from __future__ import annotations


def test_a_page_says_who_uses_what_why_and_with_whom(topo):
    done = topo("affinity", "dgx-h100")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    near = ["compute", "nic0", "PXB,", "1", "link,", "63.02", "GB/s", "-", "-"]
    assert ["gpu0", "cpu0,", "NUMA", "0", *near] in lines
    assert "NODE, 3 links, 63.02 GB/s  gpu[1-3]" in done.out
    assert ["slot1", "(mlx5_7,", "mlx5_8)", "storage", "gpu[4-7]"] in lines
    assert "NODE = through several host bridges of one NUMA node" in done.out


def test_json_has_both_directions(topo):
    document = topo("affinity", "dgx-a100", "--rules", "gds", "--json").document
    assert (document["schema"], document["rules"]) == ("topo.affinity/1", "gds")
    first = document["gpus"][0]
    assert (first["gpu"], first["cpu"], first["numa_nodes"]) == ("gpu0", "cpu0", [3])
    assert first["choices"][0] == {
        "for": "compute",
        "device": "nic0",
        "rdma": ["mlx5_0"],
        "also": [],
        "near": "distance 3",
        "links": None,
        "rate_bytes_per_s": None,
        "at_most": False,
        "shared_with": [],
        "as_near": ["nic1"],
    }
    named = {"device": "nic0", "for": "compute", "rdma": ["mlx5_0"]}
    assert {**named, "gpus": ["gpu0"], "as_near_to": ["gpu1"]} in document["devices"]


def test_a_machine_without_cards_or_drives(topo, tmp_path):
    (tmp_path / "bare.yaml").write_text("{topo: 1, devices: {gpu0: l40s}}", encoding="utf-8")
    done = topo("affinity", "bare.yaml")
    assert (done.code, "nothing near" in done.out) == (0, True)
    assert "that a GPU could use" in done.out
    assert "The other way round" not in done.out
    (tmp_path / "none.yaml").write_text("{topo: 1, devices: {x: xeon-8480c}}", encoding="utf-8")
    assert "No GPU here" in topo("affinity", "none.yaml").out


def test_the_word_is_explained_and_hinted(topo):
    assert "nearest" in topo("explain", "affinity").out
    assert "topo affinity box.yaml" in topo("assign", "box.yaml").err


def test_a_gpu_has_all_drives_that_are_as_near(topo, tmp_path):
    text = """\
topo: 1
devices:
  cpu0: epyc-9554
  sw0: pcie-switch-gen5
  gpu0: h100-pcie-80gb
  nvme[0-1]: nvme-gen5-4tb
links: [sw0 -- cpu0: pcie 5 x16, gpu0 -- sw0: pcie 5 x16, nvme -- sw0: pcie 5 x4]
"""
    (tmp_path / "two.yaml").write_text(text, encoding="utf-8")
    lines = [" ".join(line.split()) for line in topo("affinity", "two.yaml").out.splitlines()]
    assert "gpu0 cpu0 local drive nvme0, nvme1 PIX, 2 links, 15.75 GB/s - -" in lines
    assert "nvme0, nvme1 local drive gpu0" in lines
    devices = topo("affinity", "two.yaml", "--json").document["devices"]
    assert [(one["gpus"], one["as_near_to"]) for one in devices] == [
        (["gpu0"], []),
        (["gpu0"], []),
    ]


# --- settings for other tools ---------------------------------------------------------------------


def test_settings_say_what_they_are_worth(topo):
    done = topo("affinity", "dgx-h100", "--as", "ucx")
    assert (done.code, done.err) == (0, "")
    assert "export UCX_NET_DEVICES=mlx5_5:1 ;;  # gpu3" in done.out
    words = " ".join(line.removeprefix("# ") for line in done.out.splitlines())
    assert "400 GB/s with this, 200 GB/s to at most 400 GB/s by default" in words
    worth = topo("affinity", "dgx-h100", "--as", "nixl", "--json").document["servers"][0]["worth"]
    assert "Limited by the cards' chips." in words
    assert worth["settings"]["rate_bytes_per_s"] == 400_000_000_000
    assert worth["settings"]["at_most"] is False
    full = [each["resource"] for each in worth["settings"]["bottlenecks"]]
    assert full == [f"nic{number}/chip" for number in range(8)]
    assert worth["by_itself"]["slowest"]["rate_bytes_per_s"] == 200_000_000_000
    assert worth["same"] is False


def test_where_no_card_has_a_name_nothing_claims_to_set_one(topo):
    words = topo("affinity", "gds-textbook", "--as", "nccl").out
    assert "with the cards named" in words
    assert "with this" not in words


def test_settings_go_to_a_file(topo, tmp_path):
    done = topo("affinity", "dgx-a100", "--as", "mooncake", "-o", "matrix.json")
    assert done.code == 0
    assert "200 GB/s with this" in done.out
    assert "cuda:7" in (tmp_path / "matrix.json").read_text(encoding="utf-8")
    text = "{topo: 1, devices: {x: xeon-8480c}}"
    (tmp_path / "box.yaml").write_text(text, encoding="utf-8")
    done = topo("affinity", "box.yaml", "--as", "slurm", "-o", "box.yaml")
    assert done.code == 1
    assert (tmp_path / "box.yaml").read_text(encoding="utf-8") == text
    done = topo("affinity", "dgx-a100", "--as", "nccl", "-o", "nowhere/x.sh")
    assert done.code == 1


def test_one_process_of_a_cluster(topo):
    done = topo("affinity", "pod-32", "--as", "ucx", "--gpu", "node7.gpu3")
    assert done.out.endswith("export UCX_NET_DEVICES=mlx5_5:1\n")
    assert "node7: One GPU" in done.out


def test_the_tools_of_the_command_line_are_those_that_settings_are_of():
    from topo.cli.affinity import _TOOLS
    from topo.study.worth import TOOLS

    assert _TOOLS == TOOLS


def test_what_is_no_tool_or_no_gpu(topo):
    done = topo("affinity", "dgx-h100", "--as", "ncll")
    assert (done.code, "did you mean `nccl`?" in done.err) == (2, True)
    assert topo("affinity", "dgx-h100", "--gpu", "gpu3").code == 2
    assert topo("affinity", "dgx-h100", "--as", "slurm", "--gpu", "gpu3").code == 2
    done = topo("affinity", "dgx-h100", "--as", "ucx", "--gpu", "gpu9")
    assert (done.code, "gpu[0-7] exist" in done.err) == (1, True)
    done = topo("affinity", "dgx-h100", "--as", "ucx", "--gpu", "nic0")
    assert (done.code, "nic0 is no GPU" in done.err) == (1, True)
    done = topo("affinity", "workstation-4gpu", "--as", "nccl")
    assert (done.code, "no network card is near a GPU" in done.err) == (1, True)
