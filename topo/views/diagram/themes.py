"""What things look like: two themes, each a table.

Route colours are Okabe and Ito's, chosen so that people who are colour-blind can tell them apart;
each route also has a stroke of its own, for those who print in grey.

Reference: Okabe and Ito, "Color Universal Design", https://jfly.uni-koeln.de/color/
"""

from __future__ import annotations

from typing import Literal

from topo.errors import DrawError, Finding
from topo.records import dataclass

Stroke = Literal["hollow", "solid", "dashed", "dotted"]


@dataclass(frozen=True, slots=True)
class RouteLook:
    """How a route is drawn: its colour, its stroke, and the colour of text on it."""

    colour: str
    stroke: Stroke
    text: str


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a picture; `boxes` are ``(fill, border)`` by device kind."""

    paper: str
    panel: str
    server: str
    socket: str
    frame: str
    ink: str
    soft: str
    faint: str
    faint_fill: str
    wire: str
    chip: str
    alarm: str
    on_alarm: str
    boxes: dict[str, tuple[str, str]]
    routes: tuple[RouteLook, ...]

    def box(self, kind: str) -> tuple[str, str]:
        """Return fill and border of a kind; a kind without its own looks like a switch."""
        return self.boxes.get(kind, self.boxes["pcie-switch"])


def _boxes(
    storage: tuple[str, str],
    card: tuple[str, str],
    host: tuple[str, str],
    memory: tuple[str, str],
    gpu: tuple[str, str],
    switch: tuple[str, str],
) -> dict[str, tuple[str, str]]:
    return {
        **dict.fromkeys(("storage", "nvme", "hba"), storage),
        **dict.fromkeys(("nic", "dpu", "network-switch"), card),
        **dict.fromkeys(("cpu", "root-complex"), host),
        **dict.fromkeys(("memory", "cxl-memory"), memory),
        **dict.fromkeys(("gpu", "nvswitch", "mesh"), gpu),
        "pcie-switch": switch,
    }


THEMES: dict[str, Theme] = {
    "light": Theme(
        paper="#FFFFFF",
        panel="#FFFFFF",
        server="#F7F7F4",
        socket="#F1F3F6",
        frame="#A9B1BC",
        ink="#15191E",
        soft="#4A535E",
        faint="#8A929C",
        faint_fill="#F7F8F9",
        wire="#5B6570",
        chip="#FFFFFF",
        alarm="#A3001E",
        on_alarm="#FFFFFF",
        boxes=_boxes(
            ("#E9E2F3", "#6B4E9B"),
            ("#DCEBF7", "#2E6E9E"),
            ("#E3E6EA", "#4A535E"),
            ("#FBF0CF", "#9A7400"),
            ("#DDF0E4", "#2B7A4B"),
            ("#ECECEC", "#6A6A6A"),
        ),
        routes=(
            RouteLook("#D55E00", "hollow", "#FFFFFF"),
            RouteLook("#0072B2", "solid", "#FFFFFF"),
            RouteLook("#007A5A", "dashed", "#FFFFFF"),
            RouteLook("#A8487F", "dotted", "#FFFFFF"),
        ),
    ),
    "dark": Theme(
        paper="#14181D",
        panel="#181D23",
        server="#1B2128",
        socket="#20272F",
        frame="#55606C",
        ink="#F2F4F6",
        soft="#BAC3CC",
        faint="#75808B",
        faint_fill="#1D232A",
        wire="#97A2AD",
        chip="#14181D",
        alarm="#FF5A6E",
        on_alarm="#14181D",
        boxes=_boxes(
            ("#3A3050", "#B79CE6"),
            ("#1F3B50", "#7FBCE8"),
            ("#333B44", "#AEB8C2"),
            ("#463B18", "#E3BF4C"),
            ("#1F4230", "#79CF9B"),
            ("#33363A", "#A9AFB5"),
        ),
        routes=(
            RouteLook("#E69F00", "hollow", "#14181D"),
            RouteLook("#56B4E9", "solid", "#14181D"),
            RouteLook("#35C795", "dashed", "#14181D"),
            RouteLook("#E59AC4", "dotted", "#14181D"),
        ),
    ),
}

LOOKS = min(len(theme.routes) for theme in THEMES.values())  # after so many, they repeat


def theme_named(name: str) -> Theme:
    """Return a theme by its name.

    Raises
    ------
    DrawError
        If there is no such theme.
    """
    if name not in THEMES:
        help_text = f"one of {', '.join(THEMES)}"
        raise DrawError(Finding("unknown-theme", f"no theme {name}", help=help_text))
    return THEMES[name]
