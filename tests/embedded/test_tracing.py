"""A running scheduler sends the trace of a pod to a collector, from the queue to the kubelet's answer."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from tests import otlp
from tests.embedded import clusters
from tests.embedded import schedulerstories as stories

PODS = "/api/v1/namespaces/default/pods"


def test_one_pod_is_traced_from_the_queue_to_its_kubelet_under_its_uid(tmp_path: Path) -> None:
    with otlp.collecting() as collected, clusters.up(tmp_path, "--nodes 1 --no-blind-scheduler") as up:
        options = f"--port 0 --tracing-endpoint {collected.endpoint}"
        with clusters.running(up, f"scheduler run {options}"):
            _, made = up.call("POST", PODS, stories.pod("web", 1))
            spans = collected.awaited(lambda found: any(each.name == "pod" for each in found))
    assert {each.trace_id for each in spans} == {UUID(made["metadata"]["uid"]).bytes}
    names = [each.name for each in sorted(spans, key=lambda each: each.start_time_unix_nano)]
    assert [each for each in names if each in ("queue", "attempt", "binding", "kubelet")] == [
        "queue",
        "attempt",
        "binding",
        "kubelet",
    ]
    (attempt,) = (each for each in spans if each.name == "attempt")
    assert [each.name for each in spans if each.parent_span_id == attempt.span_id] != []
    assert collected.services == {"numalign-scheduler"}


def test_a_scheduler_whose_collector_is_no_address_does_not_start(tmp_path: Path) -> None:
    with (
        clusters.up(tmp_path, "--nodes 1") as up,
        clusters.running(up, "scheduler run --port 0 --tracing-endpoint localhost:4317") as process,
    ):
        said = process.communicate(timeout=clusters.PATIENCE)[1]
    assert process.returncode == 2
    assert "write one like http://127.0.0.1:4317" in said
