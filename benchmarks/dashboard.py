"""How soon does a browser show a fleet of 5,000 nodes, and what changed in it?  Limits: 1 s and 200 ms.

The dashboard is served by a process of its own, as a scheduler serves it, and shown by Debian's chromium. First paint
is counted from the navigation, with nothing in the browser's cache and nothing drawn before. Between two updates 100
nodes change; an update is counted from the request of the page to the frame that shows the answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import shutil
from collections.abc import Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Final

from msgspec import structs
from playwright.sync_api import Browser, sync_playwright

from benchmarks import table
from numalign.dashboard import app
from numalign.dashboard.moment import Moment, Node, Report, ReportState, Share, Total, Zone
from numalign.dashboard.source import Period, Source
from numalign.process import asgi
from numalign.process.http import listen, origins
from numalign.process.http.connection import Served

NODES: Final = 5_000
CHANGED: Final = 100
FIRST_PAINT: Final = 1_000.0
UPDATE: Final = 200.0
RUNS: Final = 3
UPDATES: Final = 5
PAINTED: Final = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
UPDATED: Final = """
count => new Promise(done => {
  const found = [];
  new MutationObserver(() => requestAnimationFrame(() => setTimeout(() => {
    const asked = performance.getEntriesByType('resource').filter(each => each.name.includes('since=')).at(-1);
    found.push(performance.now() - asked.startTime);
    if (found.length === count) done(found);
  }))).observe(document.getElementById('fleet'), {attributes: true, attributeFilter: ['data-state']});
})
"""


def rows() -> Iterator[table.Row]:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("dashboard: needs chromium, which `make system PURPOSES=browser` installs")
    processes = multiprocessing.get_context("spawn")
    painted, updated = list[float](), list[float]()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for _ in range(RUNS):
            ours, theirs = processes.Pipe()
            process = processes.Process(target=serve, args=(theirs,), daemon=True)
            process.start()
            try:
                paint, updates = measured(browser, f"http://127.0.0.1:{ours.recv()}/fleet")
            finally:
                process.terminate()
                process.join()
            painted.append(paint)
            updated += updates
        browser.close()
    name = f"dashboard: {NODES:,} nodes"
    yield table.Row(name=f"{name}, first paint", ours=min(painted), peer=FIRST_PAINT, unit="ms")
    yield table.Row(name=f"{name}, update of {CHANGED}", ours=min(updated), peer=UPDATE, unit="ms")


def measured(browser: Browser, address: str) -> tuple[float, list[float]]:
    """Milliseconds to the first paint, and of each update."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.goto(address)
    updates: list[float] = page.evaluate(UPDATED, UPDATES)
    return page.evaluate(PAINTED), updates


def serve(ready: Pipe) -> None:
    asyncio.run(_serve(ready))


async def _serve(ready: Pipe) -> None:
    source: Source = Changing()  # type: ignore[assignment]  # The fleet asks for moments alone.
    served = Served(
        asgi.AsgiServer(app.application(source), secure=False), asgi.LIMITS, origins.of_machine("127.0.0.1")
    )
    async with listen.listening(served, ("127.0.0.1", 0)) as port:
        ready.send(port)
        await asyncio.Event().wait()


class Changing:
    """Every moment has some nodes that differ from the one before."""

    is_live = True
    period: Period | None = None

    def __init__(self) -> None:
        self._asked = 0
        self._nodes = {name: _node(name, number) for number, name in enumerate(map("node-{:04}".format, range(NODES)))}

    async def moment(self, at: float | None = None) -> Moment:
        self._asked += 1
        names = list(self._nodes)[self._asked * CHANGED % NODES :][:CHANGED]
        self._nodes |= {name: _node(name, number + self._asked) for number, name in enumerate(names)}
        shown = Moment(at=float(self._asked), origin="a benchmark", version=f"{self._asked}")
        return structs.replace(shown, nodes=dict(self._nodes))


def _node(name: str, seed: int) -> Node:
    """A server with two zones of 48 CPUs."""
    free = (seed * 7 % 47, seed * 3 % 47)
    return Node(
        name=name,
        status="Ready",
        policy="single-numa-node",
        scope="container",
        zones=tuple(Zone(place, {"cpu": Share(48_000, 46_000, each * 1000)}) for place, each in enumerate(free)),
        totals={"cpu": Total(92_000, sum(free) * 1000)},
        report=Report(state=ReportState.STALE if seed % 97 == 0 else ReportState.GOOD),
    )
