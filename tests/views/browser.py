"""A real browser for the tests of the page: Debian's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import topo

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WHY_NOT = "no browser: `make setup-browser` installs Chromium, and the page is tested in it"
AXE = Path(topo.__file__).parents[1] / ".venv/axe/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="no axe-core: `make setup-browser` gets it where npm is"
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=WHY_NOT)


@contextmanager
def chromium() -> Iterator:
    """Start the browser, headless and without what it would fetch by itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of event loops, which are Playwright's
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
            )
            yield browser
            browser.close()


class Watched:
    """A page that remembers what went wrong and what it asked the network for."""

    def __init__(self, browser, html: str, folder, *, script: bool = True, **context) -> None:
        folder.mkdir()
        self.script = script  # of its own, which says when it is done
        self.path = folder / "report.html"
        self.path.write_text(html, encoding="utf-8")
        self.context = browser.new_context(**{"reduced_motion": "reduce", **context})
        self.page = self.context.new_page()
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._console)
        self.page.on("dialog", self._dialog)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.open()

    def _console(self, message) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def _dialog(self, dialog) -> None:
        self.errors.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def open(self, fragment: str = "") -> None:
        self.page.goto("about:blank")
        self.requests.clear()
        self.page.goto(f"file://{self.path}{fragment}")
        if self.script:
            self.wait("document.documentElement.dataset.ready !== undefined")

    def wait(self, condition: str) -> None:
        """Wait until JavaScript holds; the page's own policy refuses Playwright's way to do so."""
        for _ in range(200):
            if self.ask(f"() => {condition}"):
                return
            self.page.wait_for_timeout(25)
        raise AssertionError(f"never: {condition}")

    def ask(self, script: str, argument=None):
        return self.page.evaluate(script, argument)

    def close(self) -> None:
        self.context.close()


# What axe-core finds.
AUDIT = """() => axe.run(document, {resultTypes: ['violations']}).then((result) =>
  result.violations.map((one) => `${one.id}: ${one.nodes[0].html}`))"""

# Texts of the page whose contrast with what is behind them is less than WCAG's AA asks.
FAINT = """() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgba = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const part = (value) =>
    (value <= 10.02 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3]));
  const ground = (node) => {
    if (!node) return [255, 255, 255];
    return over(rgba(getComputedStyle(node).backgroundColor), ground(node.parentElement));
  };
  const faint = new Set();
  for (const node of document.querySelectorAll('main *, header *, footer *')) {
    if (node.closest('svg, [hidden], :disabled, details:not([open])')) continue;
    const texts = [...node.childNodes].filter((child) => child.nodeType === 3);
    if (!texts.some((child) => child.textContent.trim()) || !node.getClientRects().length) continue;
    const style = getComputedStyle(node), behind = ground(node);
    const ink = over(rgba(style.color), behind);
    const [more, less] = [light(ink), light(behind)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const contrast = (more + 0.05) / (less + 0.05);
    const name = `${node.tagName} ${node.className} ${node.textContent.trim().slice(0, 30)}`;
    if (contrast < (large ? 3 : 4.5)) faint.add(`${name}: ${contrast.toFixed(2)}`);
  }
  return [...faint];
}"""
