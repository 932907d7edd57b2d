"""Metrics of the process are exported where the system provides them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from numalign.process import metrics
from numalign.process.metrics import Registry


def told() -> dict[str, float]:
    registry = Registry()
    metrics.register_process_metrics(registry)
    pairs = (line.split() for line in registry.text().splitlines() if not line.startswith("#"))
    return {name: float(number) for name, number in pairs}


def test_it_is_about_this_process() -> None:
    found = told()
    assert 0 < found["process_cpu_seconds_total"] <= time.process_time()
    assert found["process_virtual_memory_bytes"] > found["process_resident_memory_bytes"] > 1 << 20
    assert 0 < found["process_open_fds"] <= found["process_max_fds"]


def test_it_started_before_it_loaded_anything() -> None:
    assert metrics.LOADED_AT - 3600 < told()["process_start_time_seconds"] < metrics.LOADED_AT + 0.1


def test_without_proc_the_other_metrics_remain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "PROC_SELF", Path("/nonexistent"))
    found = told()
    assert "process_resident_memory_bytes" not in found
    assert found["process_start_time_seconds"] == pytest.approx(metrics.LOADED_AT, abs=1e-3)
