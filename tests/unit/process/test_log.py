"""Log records are one line each, as text or JSON, whatever they contain."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from numalign.process import log
from numalign.process.log import Form, about

LOG = logging.getLogger("numalign.example")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    logger = logging.getLogger(log.ROOT)
    before = logger.handlers[:], logger.propagate, logger.level
    yield
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
