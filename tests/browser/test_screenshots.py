"""The pictures of docs/use/dashboard.md: each page of a cluster that has something to show.

`make screenshots` writes them into the documentation; otherwise they are only taken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from numalign.cli.results.moments.sources import FixedSource
from tests import machinescenes
from tests.browser import moments
from tests.browser.moments import GPU, MadeUp
from tests.browser.pages import served

FOLDER = "SCREENSHOTS"
SHOTS = {
    "fleet": (f"fleet?resource={GPU}&sort=stranded", "light"),
    "node": ("node/gpu-a", "light"),
    "waiting-pod": ("waiting/default/late-0", "light"),
    "fleet-dark": (f"fleet?resource={GPU}", "dark"),
}
PNG = b"\x89PNG"


@pytest.mark.parametrize("name", SHOTS)
def test_each_page_of_the_documentation_can_be_pictured(browser: Browser, name: str, tmp_path: Path) -> None:
    path, scheme = SHOTS[name]
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="dark" if scheme == "dark" else "light"
    )
    try:
        source = MadeUp(moments.busy()) if path.startswith("fleet") else FixedSource(machinescenes.busy())
        with served(source) as server:
            page = context.new_page()
            page.goto(f"{server}/{path}")
            file = Path(os.environ.get(FOLDER) or tmp_path, f"dashboard-{name}.png")
            page.screenshot(path=file)
    finally:
        context.close()
    assert file.read_bytes().startswith(PNG)


def test_the_documentation_has_every_picture() -> None:
    documented = Path(__file__).parents[2] / "docs/use/images"
    assert {file.name for file in documented.glob("dashboard-*.png")} == {f"dashboard-{name}.png" for name in SHOTS}
