"""`topo affinity`: which card and which drive each GPU should use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from topo.cli import verb
from topo.phrases import did_you_mean

if TYPE_CHECKING:
    from topo.exports.configuration import Configuration
    from topo.study.affinity import Affinities

_TOOLS = (
    *("nccl", "ucx", "nixl", "mooncake"),
    *("slurm", "slurm-topology", "slurm-topology-yaml", "dra", "numactl"),
)


class _Tool(click.ParamType[str]):
    """A tool's name; a wrong one is told what it is near to."""

    name = "TOOL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in _TOOLS:
            near = did_you_mean(value, _TOOLS)
            self.fail(f"`{value}` is no tool that topo has settings for; {near}", param, ctx)
        return value


@verb.command(
    "topo affinity dgx-h100",
    "topo affinity dgx-a100 --rules gds",
    "topo affinity dgx-h100 --as nccl -o nccl.sh",
    "topo affinity dgx-h100 --as ucx --gpu gpu3",
)
@verb.asks_machine
@verb.choice(
    "--rules",
    verb.RULES,
    "Whose idea of near: nvidia-smi's classes, NCCL's paths, the GDS driver's ranking.",
)
@click.option(
    "--as",
    "tool",
    metavar="TOOL",
    type=_Tool(),
    shell_complete=lambda _ctx, _option, begun: [tool for tool in _TOOLS if tool.startswith(begun)],
    help=f"Write what makes a tool choose so: {', '.join(_TOOLS)}.",
)
@click.option(
    "--gpu",
    metavar="GPU",
    default="",
    help="With --as: for this GPU's process alone.",
    shell_complete=verb.completes("devices"),
)
@click.option(
    "-o", "--output", metavar="OUT", help="With --as: write there, not to standard output."
)
@verb.asks_json
def command(
    machine: verb.Machine, rules: Any, tool: Any, gpu: str, output: str | None, as_json: bool
) -> int:
    """Say which network card and which drive each GPU should use, and why.

    Cards that lead to storage and cards for compute (`role: compute`) are two questions. Of
    those as near, one with RDMA goes first, then the faster; where several are as good, the GPUs
    are dealt out so that each serves as many, and what is left goes to a GPU as near to it.

    With --as it is a file or script that makes another tool choose so, and what that is worth in
    GB/s against what the tool does by itself.
    """
    from topo.study.affinity import affinities

    if not tool and (gpu or output):
        raise click.UsageError("--gpu and -o go with --as")
    if gpu and tool.startswith("slurm"):
        raise click.UsageError("--gpu is for one process, and Slurm's files are about whole nodes")
    topology = machine.load()
    findings = (*topology.findings, *topology.stand_ins)
    affinity = affinities(topology, rules=rules)
    if tool:
        return _put_settings(machine, affinity, tool, gpu, output, as_json=as_json)
    if as_json:
        from topo.views.documents import affinity_document

        return verb.put_document(affinity_document(affinity), findings)
    from topo.views.text.locality import affinity_page

    return verb.put_page(affinity_page(affinity), findings)


def _put_settings(
    machine: verb.Machine,
    affinity: Affinities,
    tool: Any,
    gpu: str,
    output: str | None,
    *,
    as_json: bool,
) -> int:
    from topo.exports.configuration import worth_words
    from topo.exports.settings import configurations, write_settings
    from topo.files import spare_inputs, write_file

    told: tuple[Configuration, ...] = configurations(affinity, tool, gpu)
    exported = write_settings(told)
    findings = (*affinity.topology.findings, *exported.findings)
    if output:
        spare_inputs(output, machine.files)
        write_file(output, exported.text)
    if as_json:
        document = {
            "schema": "topo.settings/1",
            "tool": tool,
            "topology": affinity.topology.name,
            "servers": told,
            "text": exported.text,
        }
        return verb.put_document(document, findings)
    if output:
        words = (worth_words(configuration) for configuration in told)
        return verb.put_text("".join(f"{text}\n" for text in words if text), findings)
    return verb.put_text(exported.text, findings)
