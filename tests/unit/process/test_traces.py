"""Spans reach a collector as they were made; one that is away costs a warning, and nothing where tracing is off."""

from __future__ import annotations

import importlib.util
import logging
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SpanExportResult

from numalign.api.errors import BadObject
from numalign.process import traces
from numalign.process.traces import Collector, OutageReporter, Span
from tests import otlp

TRACE = UUID("678a5aa3-3b6f-4507-8c5f-e8f8dc3bf364").int


def span(number: int, *, parent: int = 0, error: str = "") -> Span:
    attributes: dict[str, str | int | float | bool] = {"k8s.pod.name": "web", "numalign.attempt": 2}
    return Span(
        trace=TRACE,
        number=number,
        parent=parent,
        name=f"step-{number}",
        start=1000.25,
        end=1000.5,
        attributes=attributes,
        error=error,
    )


def test_spans_reach_the_collector_with_ids_times_and_errors() -> None:
    with otlp.collecting() as collected:
        with traces.exporting(Collector(collected.endpoint), "tested", "a") as send:
            send(span(1))
            send(span(2, parent=1, error="rejected"))
        whole, part = sorted(collected.awaited(lambda found: len(found) == 2), key=lambda each: each.span_id)
    assert collected.services == {"tested"}
    assert {whole.trace_id, part.trace_id} == {TRACE.to_bytes(16)}
    assert (whole.span_id, whole.parent_span_id, part.parent_span_id) == ((1).to_bytes(8), b"", (1).to_bytes(8))
    assert (part.start_time_unix_nano, part.end_time_unix_nano) == (1_000_250_000_000, 1_000_500_000_000)
    assert {each.key for each in part.attributes} == {"k8s.pod.name", "numalign.attempt"}
    assert (whole.status.message, part.status.message) == ("", "rejected")


class Scripted:
    """An exporter whose collector takes spans, or not, as the letters say."""

    def __init__(self, takes: str) -> None:
        self._takes = iter(takes)

    def export(self, spans: Sequence[object]) -> SpanExportResult:
        return SpanExportResult.SUCCESS if next(self._takes) == "y" else SpanExportResult.FAILURE


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    """Of numalign alone: other tests start our log, which keeps its lines from pytest."""
    logger = logging.getLogger("numalign")
    monkeypatch.setattr(logger, "propagate", True)
    monkeypatch.setattr(logger, "handlers", [])
    caplog.set_level(logging.INFO, "numalign")
    return caplog


@pytest.mark.parametrize(
    "takes, lines",
    [
        ("yy", []),
        ("nnn", ["does not take spans"]),
        ("ynny", ["does not take spans", "takes spans again; 4 were lost"]),
        ("nyn", ["does not take spans", "takes spans again; 2 were lost", "does not take spans"]),
    ],
)
def test_an_outage_of_the_collector_is_logged_once_with_what_it_cost(
    takes: str, lines: list[str], logged: pytest.LogCaptureFixture
) -> None:
    exporter = OutageReporter(Scripted(takes), "http://collector:4317")
    for _ in takes:
        exporter.export([object(), object()])  # type: ignore[list-item]
    assert [line in each.getMessage() for line, each in zip(lines, logged.records, strict=True)] == [True] * len(lines)


def test_a_collector_that_is_away_holds_nothing_up(
    logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces, "DEADLINE", 0.2)
    # Bound and not listening: connections are refused, and no other process gets the port.
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with traces.exporting(Collector(f"http://127.0.0.1:{port}"), "tested", "a") as send:
            for number in range(1, 3000):
                send(span(number))
    assert {each.getMessage().partition(" does")[0] for each in logged.records} == {
        f"The collector http://127.0.0.1:{port}"
    }


@pytest.mark.parametrize(
    "endpoint", ["localhost:4317", "ftp://a:1", "http://a", "http://", "http://[::1", "http://a:x"]
)
def test_an_endpoint_that_is_none_is_refused(endpoint: str) -> None:
    with pytest.raises(BadObject, match=r"--tracing-endpoint: .*is not the address of a collector"):
        traces.collector(endpoint, 1.0)


def test_without_opentelemetry_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert importlib.util.find_spec("opentelemetry.sdk.trace") is not None
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(BadObject, match=r"install numalign\[tracing\]"):
        traces.collector("http://127.0.0.1:4317", 1.0)


def test_nothing_of_opentelemetry_is_imported_where_no_collector_is_given() -> None:
    code = "import sys, numalign.scheduler.http.serving; sys.exit('opentelemetry' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=Path("/")).returncode == 0


@given(st.uuids(version=4), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_has_every_trace_of_a_smaller_one(uid: UUID, one: float, other: float) -> None:
    small, large = sorted((one, other))
    assert traces.is_sampled(uid.int, large) >= traces.is_sampled(uid.int, small)


@given(st.uuids(version=4))
def test_all_and_none_are_shares(uid: UUID) -> None:
    assert traces.is_sampled(uid.int, 1.0)
    assert not traces.is_sampled(uid.int, 0.0)
