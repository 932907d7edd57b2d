"""What our scheduler counts, from its own page."""

from __future__ import annotations

import re
import urllib.request

from tests.lab.live import Live

SAMPLE = re.compile(r"^(\w+)(?:\{[^}]*\})? ([0-9.e+-]+)$", re.MULTILINE)


def of_scheduler(live: Live) -> dict[str, float]:
    """Sums over labels."""
    port = live.lab.parts["scheduler"].program.port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in SAMPLE.findall(text):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def rejections(live: Live) -> int:
    """Pods of ours that nodes turned away."""
    return int(of_scheduler(live).get("numalign_pods_rejected_total", 0))
