"""Pages that are open follow the cluster, and leave alone what the reader is in the middle of."""

from __future__ import annotations

from msgspec import structs
from playwright.sync_api import Page, expect

from numalign.dashboard.details import (
    Answer,
    NodeAnswer,
    NodeDetail,
    NodeGroup,
    PodAnswer,
    Setting,
    WaitingMatrix,
    WaitingShape,
)
from numalign.dashboard.moment import Decision
from tests.browser import moments
from tests.browser.moments import AT, MadeUp
from tests.browser.pages import served


def matrix(pod: str, **more: object) -> WaitingMatrix:
    made = WaitingMatrix(
        shapes=(WaitingShape(pods=(pod,), requests={"cpu": 4000}, headline="0 of 1 node can take the pod"),),
        groups=(NodeGroup(nodes=("gpu-0",)),),
        answers=((NodeAnswer(node="gpu-0", answer=Answer.RULE),),),
    )
    return structs.replace(made, **more)


def test_waiting_pods_come_and_go_on_an_open_page(page: Page) -> None:
    source = MadeUp(moments.small())
    source.matrix = matrix("ml/first")
    with served(source) as server:
        page.goto(f"{server}/waiting")
        expect(page.locator(".heat").get_by_role("link", name="ml/first")).to_be_visible()
        source.matrix = matrix("ml/second", gated=("ml/held",))
        expect(page.locator(".heat").get_by_role("link", name="ml/second")).to_be_visible()
        expect(page.get_by_role("heading", name="Gated")).to_be_visible()
        source.matrix = WaitingMatrix()
        expect(page.get_by_text("No pod waits")).to_be_visible()


def test_a_new_decision_appears_on_an_open_page(page: Page) -> None:
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/decisions")
        new = Decision(key="9", pod="ml/newest", at=AT, attempt=1, node="gpu-1", nodes=4, fitting=1)
        source.shown = structs.replace(source.shown, decisions=(new, *source.shown.decisions))
        expect(page.get_by_role("rowheader", name="ml/newest")).to_be_visible()


def test_a_node_follows_its_reports_and_keeps_what_was_opened(page: Page) -> None:
    source = MadeUp(moments.small())
    zones = tuple(range(20))
    distances = {zone: {other: 10 + abs(zone - other) for other in zones} for zone in zones}
    node = NodeDetail(name="gpu-0", status="Ready", zones=zones, distances=distances)
    source.nodes = {"gpu-0": node}
    with served(source) as server:
        page.goto(f"{server}/node/gpu-0")
        page.get_by_text("Between 20 NUMA zones").click()
        page.evaluate("document.activeElement.blur()")
        source.nodes = {"gpu-0": structs.replace(node, settings=(Setting("Kubelet version", "v1.38"),))}
        expect(page.get_by_role("cell", name="v1.38")).to_be_visible()
        expect(page.get_by_role("columnheader", name="19")).to_be_visible()


def test_text_that_is_selected_is_not_replaced_under_the_reader(page: Page) -> None:
    source = MadeUp(moments.small())
    node = NodeDetail(name="gpu-0", status="Ready", zones=(0, 1))
    source.nodes = {"gpu-0": node}
    with served(source) as server:
        page.goto(f"{server}/node/gpu-0")
        page.evaluate("getSelection().selectAllChildren(document.querySelector('#node h1'))")
        source.nodes = {"gpu-0": structs.replace(node, status="NotReady")}
        with page.expect_response("**/node/gpu-0"):
            pass
        with page.expect_response("**/node/gpu-0"):
            pass
        expect(page.locator(".facts")).not_to_contain_text("NotReady")
        page.evaluate("getSelection().empty()")
        expect(page.locator(".facts")).to_contain_text("NotReady")


def test_a_node_that_is_deleted_is_said_to_be_gone_and_stays_on_the_page(page: Page) -> None:
    page.expected.append("404")  # type: ignore[attr-defined]
    source = MadeUp(moments.small())
    source.nodes = {"gpu-0": NodeDetail(name="gpu-0", status="Ready", zones=(0, 1))}
    with served(source) as server:
        page.goto(f"{server}/node/gpu-0")
        source.nodes = {}
        expect(page.get_by_role("alert")).to_contain_text("There is no such node. What you see is from before.")
        expect(page.locator("h1")).to_have_text("gpu-0")


def test_an_arrow_of_the_slider_keeps_the_search_and_its_keys_keep_the_focus(page: Page) -> None:
    begin, end = moments.AT - 60, moments.AT
    source = MadeUp(moments.small(), {begin: moments.small(), end: moments.small()})
    source.is_live = False
    with served(source) as server:
        page.goto(f"{server}/fleet?q=gpu-1&show=all")
        page.get_by_role("link", name="The decision before").click()
        expect(page.get_by_role("searchbox")).to_have_value("gpu-1")
        expect(page.locator("a.g")).to_have_count(1)
        slider = page.get_by_role("slider")
        slider.focus()
        with page.expect_navigation():
            for _ in range(5):
                page.keyboard.press("ArrowRight")
        expect(slider).to_be_focused()
        expect(page.locator("a.g")).to_have_count(1)


def test_equal_answers_of_the_closest_nodes_are_one_card(page: Page) -> None:
    source = MadeUp(moments.small())
    answer = NodeAnswer(node="gpu-0", answer=Answer.SHORT, why="too little", like=("gpu-1", "gpu-2"))
    found = PodAnswer(
        pod="ml/train-7", scheduler="x", profile="x", stage="waiting", headline="none", nodes=3, closest=(answer,)
    )
    source.answers = {"ml/train-7": lambda change: found}
    with served(source) as server:
        page.goto(f"{server}/waiting/ml/train-7")
        expect(page.locator(".closest article")).to_have_count(1)
        expect(page.locator(".closest article h3")).to_contain_text("gpu-0 and 2 like it")
