"""The dashboard in a real browser: every page, of clusters of every kind."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from numalign.dashboard.moment import Moment
from tests.browser import moments
from tests.browser.moments import MadeUp
from tests.browser.pages import served

MOMENTS = {
    "empty": moments.empty(),
    "small": moments.small(),
    "large": moments.large(),
    "wide": moments.wide(),
    "hostile": moments.hostile(),
}
PAGES = {"fleet": "Fleet", "health": "Health"}


@pytest.mark.parametrize("shown", MOMENTS.values(), ids=MOMENTS)
@pytest.mark.parametrize("path", PAGES)
def test_every_page_opens_without_an_error(page: Page, path: str, shown: Moment) -> None:
    with served(MadeUp(shown)) as server:
        answer = page.goto(f"{server}/{path}")
        assert answer is not None
        assert answer.status == 200
        assert page.locator("h1").first.inner_text() == PAGES[path]
