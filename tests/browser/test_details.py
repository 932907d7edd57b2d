"""A node, waiting pods and decisions in a real browser: of real answers, and of whatever may be in them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec import structs
from playwright.sync_api import Browser, Page, expect

from numalign.cli.results.moments.sources import FixedSource
from numalign.dashboard.details import (
    Answer,
    Ask,
    Cause,
    Change,
    Container,
    Core,
    Cpu,
    CpuUse,
    DecisionDetail,
    DecisionStory,
    Held,
    Lack,
    NodeAnswer,
    NodeDetail,
    NodeGroup,
    NodePod,
    Part,
    PodAnswer,
    Repetition,
    Score,
    Setting,
    StoryStep,
    Suggestion,
    WaitingMatrix,
    WaitingShape,
    ZoneShort,
)
from numalign.dashboard.moment import Decision, Report
from tests import machinescenes
from tests.browser import moments
from tests.browser.moments import AT, GIB, GPU, LONG, MARKUP, RIGHT_TO_LEFT, MadeUp
from tests.browser.pages import served
from tests.browser.test_looks import AXE, RULES

WIDTHS = (1280, 390)
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def busy() -> Iterator[str]:
    with served(FixedSource(machinescenes.busy())) as server:
        yield server


def opened(page: Page, address: str, width: int = 1280) -> None:
    """The page, which fits its window at any width."""
    page.set_viewport_size({"width": width, "height": 800})
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 200
    assert not page.evaluate(TOO_WIDE)


def test_a_node_is_drawn_with_its_cpus_pods_and_settings(page: Page, busy: str) -> None:
    opened(page, f"{busy}/fleet")
    page.goto(f"{busy}/node/gpu-a")
    assert page.locator("h1").inner_text() == "gpu-a"
    assert page.locator(".drawing rect.cpu").count() == 192
    assert page.locator(".drawing rect.cpu.pod").count() == 40
    label = page.locator(".cpus svg").first.get_attribute("aria-label") or ""
    assert label.startswith("CPUs of zone 0: 96 on 48 cores")
    assert page.locator(".pods tbody tr").count() == 2
    assert "single-numa-node" in page.locator("#settings + table").inner_text()


def test_on_a_phone_pods_and_reasons_are_read_without_scrolling_sideways(page: Page, busy: str) -> None:
    beyond = "each => each.scrollWidth - each.clientWidth"
    opened(page, f"{busy}/node/gpu-a", 390)
    assert page.get_by_role("group", name="Pods of the node").evaluate(beyond) <= 0
    assert page.get_by_role("rowheader", name="default/train-1").is_visible()
    opened(page, f"{busy}/waiting/default/late-0", 390)
    boxes = [page.locator(".reasons tbody tr").first.locator("td").nth(each).bounding_box() for each in (0, 1)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]


def test_a_stock_report_is_drawn_without_cpus(page: Page, busy: str) -> None:
    opened(page, f"{busy}/node/plain")
    assert page.locator(".drawing rect.cpu").count() == 0
    assert page.locator(".bars .drawing").count() > 4
    assert "does not name CPUs" in page.locator(".legend").inner_text()
    assert page.locator("#assumed").is_visible()


def test_a_user_gets_from_a_waiting_pod_to_a_change_that_helps(page: Page, busy: str) -> None:
    opened(page, f"{busy}/waiting")
    page.get_by_role("link", name="default/late-0").first.click()
    expect(page.locator("#now")).to_contain_text("0 of 3 nodes can take the pod")
    page.locator(".help .try").first.click()
    expect(page.locator(".answer")).to_contain_text("Then it would fit")
    page.get_by_role("link", name="Back to what is").click()
    expect(page.locator(".answer")).to_have_count(0)


def test_a_change_is_asked_by_keyboard(page: Page, busy: str) -> None:
    opened(page, f"{busy}/waiting/default/late-0")
    field = page.get_by_label(GPU, exact=True)
    field.fill("2")
    field.press("Enter")
    expect(page.locator(".changes")).to_contain_text("2 nvidia.com/gpu in container main")
    expect(page.locator(".answer")).to_contain_text("Then it would fit")
    expect(page.get_by_label(GPU, exact=True)).to_have_value("2")


def test_a_policy_and_pods_that_are_gone_are_asked_together(page: Page, busy: str) -> None:
    opened(page, f"{busy}/waiting/default/late-0")
    page.locator("details", has_text="default/train-1").locator("summary").first.click()
    if not page.get_by_label("default/train-1").is_visible():
        page.locator("details", has_text="default/train-1").locator("summary").first.click()
    page.get_by_label("default/train-1").check()
    page.get_by_label("policy").select_option("none")
    page.get_by_role("button", name="Ask the engine").click()
    expect(page.locator(".changes")).to_contain_text("without pod default/train-1")
    expect(page.locator(".changes")).to_contain_text("policy none on all nodes")


def test_what_somebody_types_is_checked_and_named(page: Page, busy: str) -> None:
    opened(page, f"{busy}/waiting/default/late-0?ask0=%3Cscript%3E")
    assert "is no amount of cpu" in page.get_by_role("alert").last.inner_text()
    opened(page, f"{busy}/waiting/default/late-0?without=default/nobody")
    assert "default/nobody" in page.locator(".notice.bad").inner_text()


@pytest.mark.parametrize("path", ["node/gone", "waiting/default/gone", "decisions/gone"])
def test_what_is_not_there_is_said_to_be_gone(page: Page, busy: str, path: str) -> None:
    page.expected.append("404")  # type: ignore[attr-defined]
    answer = page.goto(f"{busy}/{path}")
    assert answer is not None
    assert answer.status == 404
    assert page.locator("h1").inner_text().startswith("There is no such")
    page.locator("main").get_by_role("link", name="Fleet").click()
    expect(page.locator("h1")).to_have_text("Fleet")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", ["waiting", "decisions", "node/bare"])
def test_pages_without_anything_to_show_say_so(page: Page, path: str, width: int) -> None:
    source = MadeUp(moments.empty())
    source.nodes = {"bare": NodeDetail(name="bare")}
    with served(source) as server:
        opened(page, f"{server}/{path}", width)
        assert page.locator("main .notice").count() == 1


def wide(zones: int, cores: int) -> NodeDetail:
    """So many zones of so many cores with two threads, full of pods."""
    made = [Core((at, at + cores * zones), at // cores, at // cores // 2, at // 8) for at in range(zones * cores)]
    ids = [cpu for core in made for cpu in core.cpus]
    return NodeDetail(
        name="wide",
        status="Ready",
        policy="none",
        scope="container",
        zones=tuple(range(zones)),
        sockets={socket: (2 * socket, 2 * socket + 1) for socket in range(zones // 2)},
        cores=tuple(made),
        cpus={cpu: Cpu(cpu, CpuUse.HELD, f"ml/p-{cpu % 700}", "main") for cpu in ids},
        parts=tuple(
            Part(resource="cpu", zones=(zone,), size=2000 * cores, allocatable=2000 * cores, free=0)
            for zone in range(zones)
        ),
        groups=((0, 1),),
        distances={zone: {other: 10 + abs(zone - other) for other in range(zones)} for zone in range(zones)},
        report=Report(written=AT - 4, publisher="numalign"),
    )


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("zones, cores", [(34, 4), (2, 128)])
def test_many_zones_and_zones_of_256_cpus_are_all_drawn(page: Page, zones: int, cores: int, width: int) -> None:
    source = MadeUp(moments.wide())
    source.nodes = {"wide": wide(zones, cores)}
    with served(source) as server:
        opened(page, f"{server}/node/wide", width)
        assert page.locator(".drawing rect.cpu").count() == 2 * zones * cores
        assert page.locator(".zone.grouped").count() == 2


def hostile() -> MadeUp:
    """Markup, signs that write from right to left, and long words wherever a cluster may have text of its own."""
    source = MadeUp(moments.hostile())
    words = (MARKUP, RIGHT_TO_LEFT, LONG)
    pods = tuple(
        NodePod(
            name=f"x/{word}",
            source="predicted",
            arrived=False,
            containers=(Container(name=word, zones=((0,), (1,)), cpus=(1,), devices=(word,)),),
            holds=(Held(resource=word, amount=2, zones=(0,)), Held(resource="memory", amount=GIB, zones=(0, 1))),
        )
        for word in words
    )
    lacks = tuple(Lack(resource=word, need=4, in_zones=1, most=1, zones=(ZoneShort(0, 1, 3),)) for word in words)
    answer = NodeAnswer(node=MARKUP, answer=Answer.SHORT, why=MARKUP, plugin=MARKUP, says=words, lacks=lacks)
    cause = Cause(nodes=3, why=MARKUP, plugin=MARKUP, examples=words)
    asks = tuple(Ask(word, word, 4) for word in words)
    scores = tuple(Score(word, 9 - place, {word: place}) for place, word in enumerate(words))
    source.nodes = {
        word: NodeDetail(
            name=word,
            status=word,
            taints=words,
            policy="none",
            scope="container",
            zones=(0, 1),
            cores=(Core((0, 1), 0, 0, 0), Core((2, 3), 1, 0, None)),
            cpus={cpu: Cpu(cpu, CpuUse.HELD, f"x/{words[cpu % 3]}", MARKUP) for cpu in range(4)},
            parts=tuple(Part(resource=each, zones=(0,), size=4, allocatable=4, free=1) for each in words),
            pods=pods,
            settings=(Setting(MARKUP, LONG, MARKUP),),
            report=Report(publisher=MARKUP),
            assumed=words,
            repaired=words,
        )
        for word in words
    }
    source.matrix = WaitingMatrix(
        shapes=(WaitingShape(pods=tuple(f"x/{word}" for word in words), requests={MARKUP: 3}, headline=MARKUP),),
        groups=(NodeGroup(nodes=words),),
        answers=((answer,),),
        unserved=words,
    )
    pod = PodAnswer(
        pod=f"x/{MARKUP}",
        scheduler=MARKUP,
        profile=MARKUP,
        stage="waiting",
        message=MARKUP,
        unattended=MARKUP,
        asks=asks,
        headline=MARKUP,
        never=MARKUP,
        nodes=3,
        fitting=words,
        causes=(cause,),
        closest=(answer,),
        changed=(answer,),
        suggestions=(Suggestion(MARKUP, Change(gone=words)),),
        holders={MARKUP: words},
        notes=words,
    )
    source.answers = {f"x/{MARKUP}": lambda change: structs.replace(pod, problem=change.node)}
    decision = Decision(key=MARKUP, pod=MARKUP, at=AT, attempt=1, node=MARKUP, zones=MARKUP, message=MARKUP)
    steps = tuple(StoryStep(AT, word, ((word, word), ("zones", word))) for word in words)
    made = {
        MARKUP: DecisionDetail(
            decision=decision, scores=scores, others=(decision,), story=DecisionStory(steps, 3), repeats=MARKUP
        )
    }
    source.made = {**made, "1": made[MARKUP]}
    source.repetitions = {
        MARKUP: Repetition(
            agrees=False,
            node=MARKUP,
            zones=MARKUP,
            message=MARKUP,
            scores=scores,
            causes=(cause,),
            refused=(answer,),
            problems=words,
        )
    }
    return source


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_words_stay_words_and_links_to_them_work(page: Page, width: int) -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    with served(hostile()) as server:
        opened(page, f"{server}/waiting", width)
        page.locator(".heat tbody a").first.click()
        expect(page.locator("h1")).to_have_text(f"x/{MARKUP}")
        assert not page.evaluate(TOO_WIDE)
        page.locator(".help .try").first.click()
        expect(page.locator(".changes li")).to_have_count(3)
        assert not page.evaluate(TOO_WIDE)
        page.locator(".closest a").first.click()
        expect(page.locator("h1")).to_have_text(MARKUP)
        assert not page.evaluate(TOO_WIDE)
        opened(page, f"{server}/decisions", width)
        page.locator("tbody a").first.click()
        expect(page.locator("#scores")).to_be_attached()
        assert page.locator("main script, main img").count() == 0


@pytest.mark.parametrize("width", WIDTHS)
def test_a_decision_is_repeated_with_what_every_node_said(page: Page, width: int) -> None:
    source = hostile()
    source.made = {"1": source.made[MARKUP]}
    source.repetitions = {"1": structs.replace(source.repetitions[MARKUP], agrees=True)}
    with served(source) as server:
        opened(page, f"{server}/decisions/1", width)
        assert page.locator(".scores tbody tr").count() == 3
        page.get_by_role("link", name="Repeat it").click()
        expect(page.get_by_role("status")).to_contain_text("decided the same")
        page.get_by_text("Node by node").click()
        expect(page.locator("details.all tbody tr")).to_have_count(1)
        assert not page.evaluate(TOO_WIDE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_nodes_pods_and_decisions_are_accessible(browser: Browser, busy: str, scheme: str) -> None:
    """By axe-core, with everything that they may show."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 800}, color_scheme="dark" if scheme == "dark" else "light", bypass_csp=True
    )
    shown = hostile()
    shown.made = {"1": shown.made[MARKUP]}
    shown.repetitions = {"1": shown.repetitions[MARKUP]}
    try:
        with served(shown) as other:
            page = context.new_page()
            for address in (
                f"{busy}/node/gpu-a",
                f"{busy}/node/plain",
                f"{busy}/waiting",
                f"{busy}/waiting/default/late-0?policy=none&without=default/train-1",
                f"{other}/decisions",
                f"{other}/decisions/1?repeat=1",
            ):
                page.goto(address)
                page.add_script_tag(content=AXE)
                found = page.evaluate("rules => axe.run({runOnly: rules})", RULES)
                said = [
                    (each["id"], [node["html"][:160] for node in each["nodes"]][:4]) for each in found["violations"]
                ]
                assert said == [], address
    finally:
        context.close()
