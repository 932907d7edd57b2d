"""Recorded cases of the node-side publishers.

The repository carries those that were worked out from a description of the publishers; the whole file, with the tables
of upstream's own tests, lies in a folder beside the repository on the machines where it was made."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from numalign.oracle import recorded
from numalign.oracle.recorded import RecordedCase
from tests.oracle import recordings

VENDORED = recordings.DATA / "exporter.json.xz"
BESIDE = Path(__file__).parents[3] / "shared" / "cases" / "exporter.json"
FILES = {path.name: path for path in (VENDORED, BESIDE) if path.exists()}


@cache
def cases(path: Path) -> list[RecordedCase]:
    return recorded.load(path) or []
