"""Log records are one line each, as text or JSON, whatever they contain."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.process import log
from numalign.process.log import Form, TooManyRules, Verbosity, VerbosityRule, about

LOG = logging.getLogger("numalign.example")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    logger = logging.getLogger(log.ROOT)
    before = logger.handlers[:], logger.propagate, logger.level
    yield
    for rule in log.VERBOSITY.rules():
        log.VERBOSITY.remove(rule.selector)
    logger.handlers[:], logger.propagate = before[:2]
    logger.setLevel(before[2])


def said(form: Form, verbosity: int, message: str, **fields: object) -> str:
    stream = io.StringIO()
    log.start(form, verbosity, stream)
    LOG.debug("not told")
    LOG.info(message, extra=about(**fields))
    return stream.getvalue()


def test_text_has_fields_at_its_end() -> None:
    line = said("text", 2, "bound", pod="default/web", node="worker-7")
    assert line.endswith(" I numalign.example: bound pod=default/web node=worker-7\n")


def test_json_has_them_as_fields() -> None:
    told = json.loads(said("json", 2, "bound", pod="default/web"))
    assert (told["message"], told["pod"], told["level"]) == ("bound", "default/web", "info")


def test_a_message_stays_on_its_line() -> None:
    assert said("text", 2, "a\nb", why="c\nd").count("\n") == 1


def test_verbosity_can_be_raised_while_it_runs() -> None:
    stream = io.StringIO()
    log.start("text", 2, stream)
    log.set_verbosity(4)
    LOG.debug("told")
    assert "told" in stream.getvalue()


def test_a_failure_is_logged_with_its_trace() -> None:
    stream = io.StringIO()
    log.start("text", 2, stream)
    try:
        raise RuntimeError("broken")
    except RuntimeError:
        LOG.exception("failed")
    assert "RuntimeError: broken" in stream.getvalue()


def test_values_with_blanks_are_quoted() -> None:
    assert said("text", 2, "refused", why="0/3 nodes", node="a").endswith('refused why="0/3 nodes" node=a\n')


class Hands:
    """A clock that is set by hand."""

    now = 0.0


MATCHING = {
    "a pod by name": ({"pod": "default/web"}, "numalign.scheduler.cycle", {"pod": "default/web", "uid": "u"}, True),
    "a pod by uid": ({"pod": "u"}, "numalign.scheduler.cycle", {"pod": "default/web", "uid": "u"}, True),
    "another pod": ({"pod": "default/web"}, "numalign.scheduler.cycle", {"pod": "default/other"}, False),
    "a node": ({"node": "n"}, "numalign.scheduler.cycle", {"node": "n"}, True),
    "no field": ({"node": "n"}, "numalign.scheduler.cycle", {}, False),
    "a component": ({"component": "scheduler.bind"}, "numalign.scheduler.bind.binder", {}, True),
    "its like": ({"component": "scheduler.bin"}, "numalign.scheduler.bind.binder", {}, False),
    "a pod there": ({"component": "kube", "pod": "a/b"}, "numalign.kube.client", {"pod": "a/b"}, True),
    "not there": ({"component": "kube", "pod": "a/b"}, "numalign.agent.cycle", {"pod": "a/b"}, False),
}


def debug(name: str, **fields: object) -> logging.LogRecord:
    return logging.makeLogRecord({"name": name, "levelno": logging.DEBUG, "about": fields})


@pytest.mark.parametrize("selector, name, fields, is_logged", MATCHING.values(), ids=MATCHING)
def test_debug_lines_of_one_thing_are_logged_alone(
    selector: dict[str, str], name: str, fields: dict[str, object], is_logged: bool
) -> None:
    verbosity = Verbosity(lambda: 0.0)
    verbosity.add(VerbosityRule(verbosity=4, until=1.0, **selector))
    assert verbosity.filter(debug(name, **fields)) is is_logged


def test_a_rule_ends_by_itself_and_debug_records_are_not_made_any_more() -> None:
    verbosity = Verbosity(lambda: Hands.now)
    Hands.now = 0.0
    verbosity.set(2)
    verbosity.add(VerbosityRule(verbosity=4, pod="default/web", until=60.0))
    assert logging.getLogger(log.ROOT).isEnabledFor(logging.DEBUG)
    Hands.now = 60.0
    assert not verbosity.filter(debug("numalign.a", pod="default/web"))
    assert not logging.getLogger(log.ROOT).isEnabledFor(logging.DEBUG)
    assert verbosity.rules() == []


def test_rules_are_replaced_ended_and_not_too_many() -> None:
    verbosity = Verbosity(lambda: 0.0)
    for level in (4, 5):
        verbosity.add(VerbosityRule(verbosity=level, node="n"))
    assert [each.verbosity for each in verbosity.rules()] == [5]
    assert verbosity.remove(("", "", "n"))
    assert not verbosity.remove(("", "", "n"))
    for number in range(log.MOST_RULES):
        verbosity.add(VerbosityRule(verbosity=4, pod=f"default/p{number}"))
    with pytest.raises(TooManyRules):
        verbosity.add(VerbosityRule(verbosity=4, pod="default/one-more"))


@given(st.integers(0, 9), st.lists(st.tuples(st.integers(0, 9), st.sampled_from(["", "a/b", "a/c"])), max_size=5))
def test_the_newest_rule_that_matches_counts_and_info_is_never_lost(base: int, rules: list[tuple[int, str]]) -> None:
    verbosity = Verbosity(lambda: 0.0)
    verbosity.set(base)
    expected = base
    for level, pod in rules:
        verbosity.add(VerbosityRule(verbosity=level, pod=pod))
        expected = level if pod in ("", "a/b") else expected
    assert verbosity.filter(debug("numalign.a", pod="a/b")) is (expected >= log.DEBUGGING)
    assert verbosity.filter(logging.makeLogRecord({"name": "numalign.a", "levelno": logging.INFO}))
