"""The dashboard in a real browser: every page, of clusters of every kind."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from numalign.dashboard.moment import Moment
from numalign.dashboard.sessions import Sessions
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


def test_the_sign_in_says_which_token_it_wants_and_leads_to_the_page(page: Page) -> None:
    async def verify(token: str) -> int:
        return 200 if token == "right" else 401

    page.expected.append("401")  # type: ignore[attr-defined]
    with served(MadeUp(moments.small()), Sessions(verify, "numalign", secure=False)) as server:
        page.goto(f"{server}/health")
        expect(page.get_by_label("Token")).to_be_focused()
        expect(page.get_by_text("a bearer token of a user who may get its pages")).to_be_visible()
        page.keyboard.type("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("The token is not known, or it has expired.")
        page.get_by_label("Token").fill("right")
        page.get_by_role("button", name="Sign in").click()
        expect(page.locator("h1")).to_have_text("Health")
        page.get_by_role("button", name="Sign out").click()
        expect(page.locator("h1")).to_have_text("Sign in")
