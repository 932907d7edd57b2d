"""Asks each node what it says to one pod.

The scheduler asks when it parks a pod, explanations and replays ask for commands and pages. Nothing is charged and
nothing changes. `wording` turns the reasons into sentences (docs/explain.md)."""

from __future__ import annotations

from typing import Protocol

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain.exactanswers import ExactAnswers
from numalign.placement.explain.reasons import Reason
from numalign.placement.explain.referenceanswers import ReferenceAnswers
from numalign.placement.reports.nodefacts import Assumption


class Answers(Protocol):
    """What the rows of a flavour say to one pod."""

    def reason(self, row: int) -> Reason | None:
        """None: the row is a candidate."""
        ...

    def uncertain(self, row: int) -> Reason:
        """Of a row that seemed to fit, and on which the pod turned out not to be certain of admission."""
        ...

    def warning(self, row: int) -> Reason | None: ...

    def assumptions(self, row: int) -> frozenset[Assumption]: ...


def answers(engine: Engine, pod: Pod, shape: Shape | None = None) -> Answers:
    """What each row says to the pod; BadObject if the pod cannot be used at all. `shape`: if it is known already."""
    flavour, shape = engine.flavour, shape or engine.shape(pod)
    if isinstance(flavour, ExactFlavour):
        return ExactAnswers(flavour, pod, shape)
    return ReferenceAnswers(flavour, pod, shape, engine.columns)
