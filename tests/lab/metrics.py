"""What our scheduler counts, from its own page."""

from __future__ import annotations

import re
import urllib.request

from tests.lab.live import Live

PATIENCE = 60.0
REJECTED = "numalign_pods_rejected_total"
DIVERGED = "numalign_prediction_divergence_total"


def counted(live: Live, name: str) -> dict[str, int]:
    """By the value of the metric's first label."""
    port = live.lab.parts["scheduler"].program.port
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=PATIENCE) as answer:
        text = answer.read().decode()
    found = re.findall(rf'^{name}\{{\w+="([^"]*)"[^}}]*\}} ([0-9.e+]+)$', text, re.MULTILINE)
    return {label: int(float(value)) for label, value in found}


def rejections(live: Live) -> int:
    """Pods of ours that nodes turned away."""
    return sum(counted(live, REJECTED).values())
