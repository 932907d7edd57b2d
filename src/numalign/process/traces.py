"""Sends spans to a collector of OpenTelemetry traces: OTLP over gRPC, in batches, by a thread beside the process.

`scheduler.events.podtraces` makes the spans, and `scheduler.http.serving` opens the exporter if a collector is given.
OpenTelemetry is the extra `tracing`; only `exporting` imports it. A collector that is away costs spans, never time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from numalign import __version__
from numalign.api.errors import BadObject, echo

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExportResult

LOG: Final = logging.getLogger(__name__)
LIBRARY: Final = "opentelemetry"
MOST_WAITING: Final = 8192
"""Spans that wait for the collector; the oldest are dropped."""
DEADLINE: Final = 5.0
NANO: Final = 1_000_000_000
RANDOM_BITS: Final = 56
"""The bits at the end of a trace id that are random (W3C Trace Context, level 2)."""


class Collector(Struct, frozen=True):
    """Where spans are sent, and which share of all traces."""

    endpoint: str
    """http://HOST:PORT without TLS, or https://HOST:PORT with a certificate that is verified."""
    ratio: float = 1.0


class Span(Struct, frozen=True, kw_only=True):
    """One step of a trace. Times are seconds since 1970."""

    trace: int
    number: int
    parent: int = 0
    """The number of the span that it is a part of; 0: the trace begins with it."""
    name: str
    start: float
    end: float
    attributes: Mapping[str, str | int | float | bool]
    error: str = ""
    """What went wrong; empty: nothing."""


Send = Callable[[Span], None]


def collector(endpoint: str, ratio: float) -> Collector:
    """BadObject if the endpoint is none, or if OpenTelemetry is not installed."""
    try:
        parts = urlsplit(endpoint)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port is not None
    except ValueError:
        usable = False
    if not usable:
        why = f"{echo(endpoint)} is not the address of a collector; write one like http://127.0.0.1:4317"
        raise BadObject("Option", "--tracing-endpoint", "", why)
    try:
        import opentelemetry.exporter.otlp.proto.grpc.trace_exporter
        import opentelemetry.sdk.trace  # noqa: F401  (both are looked for, and used by `exporting`)
    except ImportError:
        why = "needs OpenTelemetry, which is not installed: install numalign[tracing]"
        raise BadObject("Option", "--tracing-endpoint", "", why) from None
    return Collector(endpoint, ratio)


def is_sampled(trace: int, ratio: float) -> bool:
    """Whether a trace is among the share that is sent; the same answer in every process."""
    return trace & ((1 << RANDOM_BITS) - 1) >= (1.0 - ratio) * (1 << RANDOM_BITS)


@contextmanager
def exporting(to: Collector, service: str, instance: str) -> Iterator[Send]:
    """Sends spans until the context ends, which waits a few seconds for the last ones."""
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    # It would write a line for each try, and not as lines of our log.
    logging.getLogger(LIBRARY).setLevel(logging.CRITICAL)
    about: dict[str, Any] = {"service.name": service, "service.version": __version__, "service.instance.id": instance}
    resource = Resource.create(about)
    sending = OTLPSpanExporter(endpoint=to.endpoint, timeout=DEADLINE)
    reporting: Any = OutageReporter(sending, to.endpoint)
    processor: Any = BatchSpanProcessor(reporting, max_queue_size=MOST_WAITING)
    try:
        yield lambda span: processor.on_end(_readable(span, resource))
    finally:
        processor.shutdown()


def _readable(span: Span, resource: Any) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext, Status, StatusCode, TraceFlags

    def context(number: int) -> SpanContext:
        return SpanContext(span.trace, number, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))

    return ReadableSpan(
        span.name,
        context=context(span.number),
        parent=context(span.parent) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(),
        start_time=round(span.start * NANO),
        end_time=round(span.end * NANO),
    )


class OutageReporter:
    """An exporter that logs when its collector stops taking spans, and when it takes them again."""

    def __init__(self, exporter: Any, endpoint: str) -> None:
        self._exporter, self._endpoint = exporter, endpoint
        self._away, self._lost = False, 0
        # While it shuts down, the processor exports from two threads at once, and one of them may find no span left.
        self._counting = threading.Lock()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        from opentelemetry.sdk.trace.export import SpanExportResult

        result: SpanExportResult = self._exporter.export(spans)
        is_away = result is not SpanExportResult.SUCCESS
        # Counted before it is logged: a log that cannot be written must not make every batch the first one.
        with self._counting:
            was_away, lost = self._away, self._lost
            self._away, self._lost = is_away, lost + len(spans) if is_away else 0
        if is_away and not was_away:
            LOG.warning(
                "The collector %s does not take spans; they are lost until it does. Check --tracing-endpoint.",
                self._endpoint,
            )
        elif was_away and not is_away:
            LOG.info("The collector %s takes spans again; %d were lost", self._endpoint, lost)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        flushed: bool = self._exporter.force_flush(timeout_millis)
        return flushed
