"""Programs that turn DOT into SVG, PNG or PDF."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Literal

from topo.errors import DrawError, Finding

Engine = Literal["graphviz-pure", "dot"]
Format = Literal["svg", "png", "pdf"]

_SECONDS = 120


def render(text: str, form: Format, *, engine: Engine, options: tuple[str, ...] = ()) -> bytes:
    """Return the picture that `engine` makes of DOT `text`.

    Raises
    ------
    DrawError
        If the engine is not there, cannot make this format, or fails.
    """
    program = _program(engine)
    try:
        done = subprocess.run(  # noqa: S603  (a program found by its own name)
            [program, f"-T{form}", *options],
            input=text.encode(),
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise DrawError(Finding("engine-failed", f"{engine} did not run: {error}")) from error
    if done.returncode or not done.stdout:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        reason = said[-1] if said else f"exit status {done.returncode}"
        raise DrawError(Finding("engine-failed", f"{engine} made no {form.upper()}: {reason}"))
    return done.stdout


def _program(engine: Engine) -> str:
    """Return where an engine is: beside this Python, or on the search path."""
    if engine == "graphviz-pure":
        beside = shutil.which(engine, path=sysconfig.get_path("scripts"))
        found = beside or shutil.which(engine)
        advice = "pip install graphviz-pure, or use a system Graphviz: --engine dot"
    else:
        found = shutil.which(engine)
        advice = "install Graphviz, or leave the engine out for the one that came with topo"
    if found is None:
        raise DrawError(Finding("no-engine", f"no program {engine} on this machine", help=advice))
    return str(Path(found))
