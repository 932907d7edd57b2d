"""What comes before scores: how certain it is that a node admits the pod.

`choose` and `noderanks` rank nodes by certainty first; `Engine.certainty` says it for a score. Pure."""

from __future__ import annotations

from typing import Final

from numalign.api.objects import resourcenames
from numalign.api.objects.qos import QoS
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Certainty

NOMINATED: Final = 3
"""Above every `Certainty`: the node was picked for the pod earlier."""
BY_SCORE: Final = int(Certainty.BY_SCORE)


def is_aligned(shape: Shape) -> bool:
    """Whether kubelets may pin something of it: CPUs and memory of Guaranteed pods, devices of any pod."""
    return shape.qos is QoS.GUARANTEED or any(map(resourcenames.is_extended, shape.totals))
