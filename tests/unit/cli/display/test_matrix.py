"""The picture of a node: every pod has its share, and every width its form."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.cli.display import matrix, values
from numalign.cli.display.formats import Page
from tests.unit.cli.small import STATIC_CPUS, admitted, guaranteed, kubelet, pod

PINNING = kubelet("gpu-8", "single-numa-node", **STATIC_CPUS)
ANSWER = admitted(PINNING, *(pod(name, {**guaranteed(40), "nvidia.com/gpu": 2}) for name in ("a", "b", "c")))


def drawn(answer: values.AdmitReport) -> str:
    page = Page()
    matrix.draw(page, answer)
    return page.text()


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A terminal of a width to be set."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def test_zones_go_down_and_resources_across() -> None:
    assert drawn(ANSWER).splitlines()[1:8] == [
        "        cpu               memory               gpu          efa",
        "-" * 78,
        "zone 0  AAAAAAABBBBBBB..  -                    AABB         ....",
        "        15 of 95 free                          0 of 4 free  4 of 4 free",
        "zone 1  CCCCCCC.........  -                    CC..         ....",
        "        56 of 96 free                          2 of 4 free  4 of 4 free",
        "node    71 of 191 free    1.99 of 1.99Ti free  2 of 8 free  8 of 8 free",
    ]


def test_the_legend_names_who_is_who() -> None:
    assert drawn(ANSWER).splitlines()[-1] == "A a   B b   C c   . free"


def test_plain_text_is_ascii_without_colour() -> None:
    assert drawn(ANSWER).isascii()
    assert "\x1b" not in drawn(ANSWER)


def test_a_terminal_gets_colours(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("COLUMNS", "100")
    assert "\x1b[30;42m" in drawn(ANSWER)


def test_no_color_is_respected(terminal: pytest.MonkeyPatch) -> None:
    terminal.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in drawn(ANSWER)
    assert "AA" in drawn(ANSWER)


@pytest.mark.parametrize("width", [30, 40, 60])
def test_narrow_terminals_get_one_cell_below_the_other(terminal: pytest.MonkeyPatch, width: int) -> None:
    terminal.setenv("COLUMNS", str(width))
    terminal.setenv("NO_COLOR", "1")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", drawn(ANSWER)).splitlines()
    assert max(map(len, lines)) <= width
    assert lines[:3] == ["zone 0", "  cpu  15 of 95 free", "  AAAAAAABBBBBBB.."]


def test_zones_with_nothing_to_give_are_left_out() -> None:
    assert "zone 5" not in drawn(admitted(kubelet("superchip-34"), pod("a", guaranteed(1))))


def test_more_pods_than_letters_share_the_last_one() -> None:
    many = kubelet("epyc-nps1", "best-effort", **STATIC_CPUS)
    answer = admitted(many, *(pod(f"p{number}", guaranteed(1)) for number in range(70)))
    assert "# p69" in drawn(answer)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=20), st.integers(1, 40))
def test_shares_fill_the_bar_exactly(amounts: list[int], width: int) -> None:
    shares = matrix._shares(amounts, width)
    assert sum(shares) == (width if any(amounts) else 0)
    assert all(share >= 0 for share in shares)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=10), st.integers(10, 40))
def test_every_holder_gets_at_least_one_character(amounts: list[int], width: int) -> None:
    shares = matrix._shares(amounts, width)
    assert [share > 0 for share in shares] == [amount > 0 for amount in amounts]
