"""A collector of OpenTelemetry traces in the test's own process: OTLP over gRPC, on the loopback."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
PATIENCE = 120.0
LOOK = 0.02


class Collected:
    """The spans that came so far."""

    def __init__(self) -> None:
        self.endpoint = ""
        self._lock = threading.Lock()
        self._spans: list[Span] = []
        self.services: set[str] = set()

    def export(self, request: ExportTraceServiceRequest, _: Any) -> ExportTraceServiceResponse:
        with self._lock:
            for resource in request.resource_spans:
                about = {each.key: each.value.string_value for each in resource.resource.attributes}
                self.services.add(about["service.name"])
                for scope in resource.scope_spans:
                    self._spans += scope.spans
        return ExportTraceServiceResponse()

    def spans(self) -> list[Span]:
        with self._lock:
            return list(self._spans)

    def awaited(self, enough: Callable[[list[Span]], bool]) -> list[Span]:
        """The spans, once there are enough of them."""
        until = time.monotonic() + PATIENCE
        while not enough(found := self.spans()):
            assert time.monotonic() < until, [each.name for each in found]
            time.sleep(LOOK)
        return found


@contextlib.contextmanager
def collecting() -> Iterator[Collected]:
    collected, server = Collected(), grpc.server(futures.ThreadPoolExecutor(2))
    handler = grpc.unary_unary_rpc_method_handler(
        collected.export,
        request_deserializer=ExportTraceServiceRequest.FromString,
        response_serializer=ExportTraceServiceResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),))
    collected.endpoint = f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        yield collected
    finally:
        server.stop(None).wait()
