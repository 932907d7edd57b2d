"""*Fleet* in a real browser: what it shows, how it follows the cluster, and how a reader moves in it."""

from __future__ import annotations

import re

import pytest
from msgspec import structs
from playwright.sync_api import BrowserContext, Page, Route, expect

from numalign.dashboard.moment import Moment, Share, Zone
from tests.browser import moments
from tests.browser.moments import GPU, MadeUp
from tests.browser.pages import served


def changed(shown: Moment, **nodes: int) -> Moment:
    """With so many CPUs in use in zone 0 of these nodes; names have _ for -."""
    new = {name.replace("_", "-"): used for name, used in nodes.items()}
    made = {
        name: moments.node(name, (moments.zone(0, used=new[name]), moments.zone(1))) if name in new else node
        for name, node in shown.nodes.items()
    }
    return structs.replace(shown, nodes=made, version=f"{shown.version}+")


def test_a_glyph_says_in_words_what_it_shows(page: Page) -> None:
    with served(MadeUp(moments.small())) as server:
        page.goto(f"{server}/fleet?resource={GPU}")
        label = page.get_by_role("link", name="gpu-1;").get_attribute("aria-label")
    assert label is not None
    assert "7 of 8 gpu free" in label
    assert "zone 0: 3 stranded" in label
    assert "report is not renewed" in label


def test_only_nodes_that_changed_are_drawn_again(page: Page) -> None:
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/fleet")
        page.evaluate("for (const each of document.querySelectorAll('a.g')) each.mine = true")
        source.shown = changed(source.shown, gpu_1=7)
        expect(page.get_by_role("link", name="gpu-1; 85 of 92 cpu free")).to_be_attached()
        kept = page.evaluate("[...document.querySelectorAll('a.g')].filter(each => each.mine).length")
    assert kept == len(source.shown.nodes) - 1


def test_a_node_that_comes_and_one_that_goes_change_the_list(page: Page) -> None:
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/fleet")
        nodes = dict(source.shown.nodes)
        del nodes["gpu-0"]
        nodes["gpu-9"] = moments.node("gpu-9", (moments.zone(0),))
        source.shown = structs.replace(source.shown, nodes=nodes, version="other")
        expect(page.get_by_role("link", name="gpu-9;")).to_be_attached()
        expect(page.get_by_role("link", name="gpu-0;")).not_to_be_attached()


def test_a_server_that_is_gone_is_named_and_its_return_noticed(page: Page) -> None:
    page.expected.append("ERR_CONNECTION_REFUSED")  # type: ignore[attr-defined]
    source = MadeUp(moments.small())
    with served(source) as server:
        port = int(server.rpartition(":")[2])
        page.goto(f"{server}/fleet")
    expect(page.get_by_role("alert")).to_contain_text("does not answer")
    expect(page.get_by_role("link", name="gpu-1;")).to_be_attached()
    source.shown = changed(source.shown, gpu_1=7)
    with served(source, port=port):
        expect(page.get_by_role("link", name="gpu-1; 85 of 92 cpu free")).to_be_attached()
        expect(page.get_by_role("alert")).to_be_hidden()


def test_a_cluster_that_cannot_be_read_is_said_with_the_reason(page: Page) -> None:
    page.expected.append("503")  # type: ignore[attr-defined]
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/fleet")
        source.fails = "the API server cannot be reached"
        expect(page.get_by_role("alert")).to_contain_text("the API server cannot be reached")
        source.fails = ""
        expect(page.get_by_role("alert")).to_be_hidden()


def test_two_tabs_follow_the_cluster_each_in_its_own_view(page: Page, context: BrowserContext) -> None:
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/fleet?q=gpu-1")
        other = context.new_page()
        other.goto(f"{server}/fleet?sort=free&resource={GPU}")
        source.shown = changed(source.shown, gpu_1=7)
        expect(other.get_by_role("link", name="gpu-1; 8 of 8 gpu free")).to_be_attached()
        page.bring_to_front()
        expect(page.get_by_role("link", name="gpu-1; 85 of 92 cpu free")).to_be_attached()
        expect(page.locator("a.g")).to_have_count(1)
        other.close()


def test_search_filter_and_order_change_the_list_and_the_address(page: Page) -> None:
    with served(MadeUp(moments.small())) as server:
        page.goto(f"{server}/fleet")
        page.keyboard.press("/")
        page.keyboard.type("gpu-")
        expect(page.locator("a.g")).to_have_count(3)
        page.get_by_label("Sort by").select_option("free")
        expect(page.locator("a.g").first).to_contain_text("gpu-2")
        page.get_by_label("Show").select_option("off")
        expect(page.locator("a.g")).to_have_count(1)
        expect(page).to_have_url(re.compile("q=gpu-.*show=off|show=off.*q=gpu-"))
        page.reload()
        expect(page.locator("a.g")).to_have_count(1)


def test_the_last_of_two_searches_is_shown_though_the_first_is_answered_late(page: Page) -> None:
    counting = "addEventListener('htmx:config:request', () => { document.body.dataset.asked += 'x' })"
    late = list[Route]()
    with served(MadeUp(moments.small())) as server:
        page.goto(f"{server}/fleet")
        page.evaluate(counting)
        page.route(re.compile("[?&]q=g(&|$)"), lambda route: late.append(route))
        page.keyboard.press("/")
        with page.expect_request(re.compile("[?&]q=g(&|$)")):
            page.keyboard.type("g")
        page.keyboard.type("pu-2")
        expect(page.locator("body")).to_have_attribute("data-asked", re.compile("xx"))
        late[0].continue_()
        expect(page.locator("a.g")).to_have_count(1)
        expect(page).to_have_url(re.compile("q=gpu-2"))


def test_an_update_between_a_search_and_its_answer_does_not_lose_the_search(page: Page) -> None:
    late = list[Route]()
    source = MadeUp(moments.small())
    with served(source) as server:
        page.goto(f"{server}/fleet")
        page.route(re.compile("[?&]q=gpu-2(&|$)"), lambda route: late.append(route))
        page.keyboard.press("/")
        with page.expect_request(re.compile("[?&]q=gpu-2(&|$)")):
            page.get_by_role("searchbox").fill("gpu-2")
        nodes = dict(source.shown.nodes)
        del nodes["plain-0"]
        source.shown = structs.replace(source.shown, nodes=nodes, version="other")
        expect(page.locator("a.g")).to_have_count(3)
        late[0].continue_()
        expect(page.locator("a.g")).to_have_count(1)


def test_arrow_keys_move_among_the_nodes_and_enter_opens_one(page: Page) -> None:
    page.expected.append("404")  # type: ignore[attr-defined]
    with served(MadeUp(moments.large(80))) as server:
        page.goto(f"{server}/fleet")
        page.locator("a.g").first.focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("a.g:focus")).to_have_text("node-0001")
        page.keyboard.press("ArrowDown")
        expect(page.locator("a.g:focus")).to_have_text(re.compile("node-00[1-7]"))
        page.keyboard.press("End")
        expect(page.locator("a.g:focus")).to_have_text("node-0079")
        assert page.evaluate("document.querySelectorAll('a.g:not([tabindex=\"-1\"])').length") == 1
        page.keyboard.press("Enter")
        page.wait_for_url("**/node/node-0079")


def test_a_node_of_34_zones_shows_them_all(page: Page) -> None:
    with served(MadeUp(moments.wide())) as server:
        page.goto(f"{server}/fleet")
        glyph = page.get_by_role("link", name="superchip;")
        label = glyph.get_attribute("aria-label") or ""
        width = glyph.locator("svg").bounding_box()
    assert label.count("zone ") == 34
    assert width is not None
    assert width["width"] > 34


def test_zones_without_the_resource_are_drawn_as_one(page: Page) -> None:
    cpus = tuple(moments.zone(each, gpus=0) for each in (0, 1))
    memory = tuple(Zone(id=each, shares={"memory": Share(4, 4, 4)}) for each in range(2, 34))
    with served(MadeUp(moments.moment((moments.node("superchip", cpus + memory), moments.node("plain", cpus))))) as at:
        page.goto(f"{at}/fleet?resource=cpu")
        glyph, plain = page.get_by_role("link", name="superchip;"), page.get_by_role("link", name="plain;")
        assert glyph.locator("path.n").count() == 1
        assert plain.locator("path.n").count() == 0
        wide, narrow = (each.locator("svg").get_attribute("width") or "" for each in (glyph, plain))
    assert int(wide) < 2 * int(narrow)


def test_few_nodes_have_their_amounts_below_their_names(page: Page) -> None:
    shown = "each => getComputedStyle(each, '::after').content"
    with served(MadeUp(moments.small())) as server:
        page.goto(f"{server}/fleet?resource={GPU}")
        assert page.get_by_role("link", name="gpu-1;").evaluate(shown) == '"7 of 8 free"'
    with served(MadeUp(moments.busy())) as server:
        page.goto(f"{server}/fleet?resource={GPU}")
        assert page.locator("a.g").first.evaluate(shown) == "none"


def test_names_with_markup_are_text(page: Page) -> None:
    with served(MadeUp(moments.hostile())) as server:
        page.goto(f"{server}/fleet")
        names = page.locator("a.g bdi").all_inner_texts()
        assert set(names) == {moments.MARKUP, moments.RIGHT_TO_LEFT, moments.LONG}
        assert page.locator("img").count() == 0
        page.goto(f"{server}/health")
        assert page.locator("img").count() == 0
        assert page.get_by_text("<script>alert(1)</script>").count() > 0


def test_without_javascript_the_list_can_be_chosen(page: Page, context: BrowserContext) -> None:
    browser = context.browser
    assert browser is not None
    plain = browser.new_context(java_script_enabled=False)
    try:
        with served(MadeUp(moments.small())) as server:
            tab = plain.new_page()
            tab.goto(f"{server}/fleet")
            tab.get_by_label("Search").fill("gpu-2")
            tab.get_by_role("button", name="Show").click()
            expect(tab.locator("a.g")).to_have_count(1)
    finally:
        plain.close()


def test_the_slider_goes_back_in_a_recording(page: Page) -> None:
    begin, end = moments.AT - 60, moments.AT
    before = structs.replace(changed(moments.small(), gpu_1=1), at=begin)
    source = MadeUp(moments.small(), {begin: before, end: moments.small()})
    source.is_live = False
    with served(source) as server:
        page.goto(f"{server}/fleet?q=gpu-1")
        expect(page.get_by_role("link", name="gpu-1; 46 of 92 cpu free")).to_be_attached()
        page.get_by_role("slider").focus()
        page.keyboard.press("Home")
        expect(page.get_by_role("link", name="gpu-1; 91 of 92 cpu free")).to_be_attached()
        expect(page.locator("a.g")).to_have_count(1)
        # Links to other pages stay at that time.
        assert f"at={begin:.3f}" in (page.get_by_role("link", name="Health").get_attribute("href") or "")
        page.get_by_role("link", name="The next decision").click()
        expect(page.get_by_role("link", name="gpu-1; 46 of 92 cpu free")).to_be_attached()


@pytest.mark.parametrize(
    "query", ["resource=%3Cscript%3E", "sort=x&show=y", "q=" + "x" * 9000, "at=nan", "at=-inf", "at=1e13", "since=x.y"]
)
def test_queries_that_make_no_sense_show_something_sensible(page: Page, query: str) -> None:
    with served(MadeUp(moments.small())) as server:
        answer = page.goto(f"{server}/fleet?{query}")
    assert answer is not None
    assert answer.status == 200
