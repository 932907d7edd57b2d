"""A real Chromium for the dashboard's tests: Debian's, driven by playwright.

`make system PURPOSES=browser` installs it. Each test gets a fresh profile, and fails if a page writes an error to the
console, or asks another host for anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.conftest import require

CHROMIUM = shutil.which("chromium")
PATIENCE = 30_000
"""Milliseconds. A page that lost its server asks again after 4, 8 and 16 s; the machine may be busy, too."""
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one module, not of the session: as long as it runs, no other test of the process can start an event loop."""
    require(CHROMIUM, "chromium, which `make system PURPOSES=browser` installs")
    with sync_playwright() as playwright:
        # Root has no sandbox; the only pages are our own.
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    made.set_default_timeout(PATIENCE)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """`expected`, which tests may extend: parts of messages that are no failure."""
    made = context.new_page()
    said, foreign = list[str](), list[str]()
    expected: list[str] = []
    made.expected = expected  # type: ignore[attr-defined]
    made.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    made.on("pageerror", lambda problem: said.append(str(problem)))
    made.on("request", lambda request: foreign.append(request.url) if "127.0.0.1" not in request.url else None)
    yield made
    assert [each for each in said if not any(part in each for part in expected)] == []
    assert [each for each in foreign if not each.startswith("data:")] == []
