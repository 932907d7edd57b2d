"""A choice by the engine alone, for tests of the engine: survey all rows, place on the best, or on the next best."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Aligned
from numalign.placement.decisions import Code, Decision
from numalign.placement.engine import Engine


class Choice(Struct, frozen=True):
    """What came of it."""

    decision: Decision | None
    refused: Counter[Code] = Counter()
    """Nodes by cause, where no node was found."""

    @property
    def node(self) -> str | None:
        return self.decision.node if self.decision is not None else None

    @property
    def uid(self) -> str:
        assert self.decision is not None
        return self.decision.uid

    @property
    def score(self) -> int:
        assert self.decision is not None
        return self.decision.score

    @property
    def warning(self) -> str:
        assert self.decision is not None
        return self.decision.warning

    @property
    def placement(self) -> tuple[Aligned, ...]:
        return self.decision.placement if self.decision is not None else ()


def chosen(engine: Engine, pod: Pod, rng: Random | None = None, now: float = 0.0) -> Choice:
    shape, rng = engine.shape(pod), rng or Random(1)
    while True:
        codes = engine.survey(shape)
        best = int(codes.max(initial=-1))
        if best < 0:
            return Choice(None, Counter(code for each in codes.tolist() if (code := Code(each)) != Code.VACANT))
        rows = np.flatnonzero(codes == best)
        decision = engine.place(pod, shape, int(rows[int(rng.random() * len(rows))]), now)
        if decision is not None:
            return Choice(decision)
