"""The resource rules for one node and one pod, word for word by the specification: plain numbers in, a score out.

`offered`, `used` and `asked` are amounts of the configured resources in their order, cpu in thousandths."""

from __future__ import annotations

import math
from collections.abc import Sequence

Amounts = Sequence[int]
Shape = Sequence[tuple[int, int]]


def least(offered: Amounts, used: Amounts, weights: Amounts) -> int:
    """Kube-scheduler spec 1.9; `used` includes the pod."""
    scores = [max(cap - use, 0) * 100 // cap if cap else 0 for cap, use in zip(offered, used, strict=True)]
    return _mean(scores, offered, weights)


def most(offered: Amounts, used: Amounts, weights: Amounts) -> int:
    scores = [min(cap, use) * 100 // cap if cap else 0 for cap, use in zip(offered, used, strict=True)]
    return _mean(scores, offered, weights)


def ratio(offered: Amounts, used: Amounts, weights: Amounts, shape: Shape) -> int:
    total = weight_sum = 0
    for cap, use, weight in zip(offered, used, weights, strict=True):
        score = on_line(100 if use > cap else use * 100 // cap, shape) if cap else 0
        if score > 0:
            total, weight_sum = total + score * weight, weight_sum + weight
    return math.floor(total / weight_sum + 0.5) if weight_sum else 0


def on_line(utilization: int, shape: Shape) -> int:
    previous: tuple[int, int] | None = None
    for x, y in shape:
        if utilization <= x:
            if previous is None:
                return y * 10
            rise = (y - previous[1]) * 10 * (utilization - previous[0])
            return previous[1] * 10 + math.trunc(rise / (x - previous[0]))
        previous = (x, y)
    return shape[-1][1] * 10


def balanced(offered: Amounts, used: Amounts, asked: Amounts) -> int:
    """Kube-scheduler spec 1.10, since 1.36."""
    after = [use + ask for use, ask in zip(used, asked, strict=True)]
    return 50 + (50 + _balance(offered, after) - _balance(offered, used)) // 2


def _balance(offered: Amounts, used: Amounts) -> int:
    shares = [min(use / cap, 1.0) for cap, use in zip(offered, used, strict=True) if cap]
    if len(shares) < 2:
        return 100
    if len(shares) == 2:
        return int((1 - abs((shares[0] - shares[1]) / 2)) * 100)
    total = 0.0
    for share in shares:
        total += share
    mean, squares = total / len(shares), 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int((1 - math.sqrt(squares / len(shares))) * 100)


def _mean(scores: Amounts, offered: Amounts, weights: Amounts) -> int:
    counted = [(score, weight) for score, cap, weight in zip(scores, offered, weights, strict=True) if cap]
    total = sum(weight for _, weight in counted)
    return sum(score * weight for score, weight in counted) // total if total else 0
