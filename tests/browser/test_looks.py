"""How the pages look and read: contrast and labels by axe-core, no page wider than its window, and screenshots."""

from __future__ import annotations

from importlib import resources

import pytest
from playwright.sync_api import Browser

from numalign.dashboard.sessions import Sessions
from tests.browser import moments
from tests.browser.moments import MadeUp
from tests.browser.pages import PAGES, served

AXE = (resources.files("axe_playwright_python") / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTHS = (1280, 390)


async def anyone(token: str) -> int:
    return 200


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_and_fits_its_window(browser: Browser, width: int, scheme: str) -> None:
    context = browser.new_context(
        viewport={"width": width, "height": 800}, color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True
    )
    try:
        with served(MadeUp(moments.small()), Sessions(anyone, "numalign", secure=False)) as server:
            page = context.new_page()
            page.goto(f"{server}/sign-in?token=any")
            for path in ("sign-in", *PAGES):
                page.goto(f"{server}/{path}")
                page.add_script_tag(content=AXE)
                found = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
                assert "color-contrast" in {each["id"] for each in found["passes"]}, path
                said = [
                    (each["id"], each["help"], [node["html"][:200] for node in each["nodes"]][:3])
                    for each in found["violations"]
                ]
                assert said == [], path
                # Tables may scroll in their cards; the page itself does not.
                across = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
                assert across[0] <= across[1], path
    finally:
        context.close()
