"""Recorded cases of scheduler plugins: those that the repository carries, and the whole files where they are at hand.

The whole files lie in a folder beside the repository on the machines where they were made."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from numalign.oracle import recorded
from numalign.oracle.recorded import RecordedCase
from tests.oracle import recordings

VENDORED = recordings.DATA / "scheduler_plugin.json.xz"
BESIDE = Path(__file__).parents[3] / "shared" / "cases"
WHOLE = [path for path in (BESIDE / "scheduler-plugin.json", BESIDE / "koordinator.json") if path.exists()]
FILES = {path.name: path for path in (VENDORED, *WHOLE)}

VENDORED_COUNTS = {
    "filter_random": 230,
    "score_random": 197,
    "filter_preemption_random": 80,
    "cache_scenario": 45,
    "edge_filter": 25,
    "edge_score": 22,
    "pfp_vectors": 20,
    "reference_quirks_score": 8,
    "reference_quirks_filter": 3,
}

BEHAVIOUR = (
    *("filter", "score", "edge", "pfp", "np", "config", "node_to_pod_data", "cache_scenario", "get_cached_nrt"),
    *("integration_single_cycle", "victim_tracking", "is_foreign_pod", "tm_from_nrt"),
)
"""How names of suites begin whose every case has an answer here."""


@cache
def cases(path: Path) -> list[RecordedCase]:
    found = recorded.load(path)
    assert found is not None
    return found
