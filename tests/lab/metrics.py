"""What our programs count, from their own pages."""

from __future__ import annotations

import re
import urllib.request

from numalign.lab.processes import Part
from tests.lab.live import Live

PATIENCE = 60.0
REJECTED = "numalign_pods_rejected_total"
DIVERGED = "numalign_prediction_divergence_total"


def page(part: Part) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{part.program.port}/metrics", timeout=PATIENCE) as answer:
        return str(answer.read().decode())


def told_by(part: Part, name: str, having: str = "") -> dict[str, int]:
    """By the value of the metric's first label, which is empty where it has none; of those with this label alone."""
    found = re.findall(rf'^{name}(?:\{{(\w+="([^"]*)"[^}}]*)\}})? ([0-9.e+]+)$', page(part), re.MULTILINE)
    return {label: int(float(value)) for labels, label, value in found if having in labels}


def counted(live: Live, name: str, having: str = "") -> dict[str, int]:
    return told_by(live.lab.parts["scheduler"], name, having)


def rejections(live: Live) -> int:
    """Pods of ours that nodes turned away, as our scheduler counts them."""
    return sum(counted(live, REJECTED, 'placed_by="numalign"').values())
