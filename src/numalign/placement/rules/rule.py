"""Interfaces of plugins that filter nodes, score them, or both.

The scheduling cycle prepares every plugin for a pod, asks for one code per row, and scores the remaining rows;
preemption asks again about one row with pods removed. Reasons are kube-scheduler's texts. Arrays are as long as
`ClusterState.capacity`; values of rows without a node (`ClusterState.present`) are undefined. `normalised` scales
raw scores to 0..100 over the rows that passed all filters."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.objects.pod import Pod
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.totals import ByAmounts

FITS: Final = 0
MAX_SCORE: Final = 100

Codes = NDArray[np.int32]
"""By row: `FITS`, or the code of a refusal."""
Rows = NDArray[np.intp]
Scores = NDArray[np.int64]


class Refusal(Struct, frozen=True):
    """Why a node, or the pod on any node, is refused. Unresolvable: taking pods away would not help."""

    reasons: tuple[str, ...]
    unresolvable: bool = False


class ByCode(Protocol):
    """What codes mean."""

    def __getitem__(self, code: int) -> Refusal: ...


class Refusals:
    """The refusals that a rule knows, by code: the first one is 1. More can be met on the way."""

    def __init__(self, *known: Refusal) -> None:
        self._by_code = list(known)

    def __getitem__(self, code: int) -> Refusal:
        if code == FITS:
            raise IndexError("a node that fits has no refusal")
        return self._by_code[code - 1]

    def code(self, refusal: Refusal) -> int:
        """Its code, a new one if it has none."""
        if refusal not in self._by_code:
            self._by_code.append(refusal)
        return self._by_code.index(refusal) + 1


class Prepared(Protocol):
    """What a rule worked out for one pod, before it looks at nodes."""

    @property
    def refusals(self) -> ByCode: ...

    @property
    def only(self) -> frozenset[str] | None:
        """Names of the only nodes worth a look; None: all of them (kube-scheduler spec 4.6)."""


P = TypeVar("P", bound=Prepared)
S = TypeVar("S")
Q = TypeVar("Q", contravariant=True)


class FilterRule(Protocol[P]):
    @property
    def name(self) -> str:
        """The stock plugin's."""

    def prepare(self, pod: Pod, world: ClusterState) -> P | Refusal | None:
        """None: the rule has nothing to say about this pod. A refusal: no node will do."""

    def filter(self, prepared: P) -> Codes: ...

    def filter_row(self, prepared: P, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        """The row's code if pods of it with these uids were gone and these pods were there."""


class ScoreRule(Protocol[S]):
    @property
    def name(self) -> str: ...

    def prepare_score(self, pod: Pod, world: ClusterState, rows: Rows) -> S | None:
        """`rows` passed all filters, and ascend. None: the rule adds nothing to any node's score."""

    def score(self, prepared: S, rows: Rows) -> Scores: ...

    def normalized(self, prepared: S, raw: Scores) -> Scores:
        """Scores from 0 to 100, of the same rows."""


@runtime_checkable
class LooksAround(Protocol):
    """A rule that looks at more than one node, or at what comes and goes beside nodes and pods."""

    def concerns(self, pod: Pod) -> bool:
        """Whether it has anything to say about the pod now; quick, and in doubt yes."""


@runtime_checkable
class Surrounded(Protocol):
    """One of these to which more than the pod decides whether it has anything to say."""

    @property
    def surroundings(self) -> int:
        """Raised whenever it may answer otherwise about the same pod."""


@runtime_checkable
class AloneFilter(Protocol[Q]):
    """A filter that judges every row by the description of its node, for pods of all sizes alike."""

    def filter_alone(self, prepared: Q) -> Codes: ...


@runtime_checkable
class AloneScore(Protocol[Q]):
    """The same for a score, which is normalised as it is."""

    def score_alone(self, prepared: Q) -> NDArray[np.signedinteger] | None:
        """None: this time it has to be normalised over all rows that passed the filters."""


@runtime_checkable
class AmountsFilter(Protocol[Q]):
    """A filter that judges every row by its amounts, whatever other rows have."""

    def filter_amounts(self, prepared: Q) -> ByAmounts: ...


@runtime_checkable
class AmountsScore(Protocol[Q]):
    """The same for a score, which is normalised as it is."""

    def score_amounts(self, prepared: Q) -> ByAmounts: ...


def span(rows: Rows) -> Rows | slice:
    """Ascending rows, as a slice where none is missing between the first and the last: arrays are not copied then."""
    count = len(rows)
    if count and rows.item(-1) - rows.item(0) == count - 1:
        return slice(rows.item(0), rows.item(0) + count)
    return rows


class Coded(Struct, frozen=True):
    """Prepared, for rules whose verdict on a row does not depend on the pods there."""

    codes: Codes
    refusals: Refusals
    only: frozenset[str] | None = None


class StaticFilter:
    """Base of rules that look at the node alone: all is said when `prepare` is done."""

    def filter(self, prepared: Coded) -> Codes:
        return prepared.codes

    def filter_row(self, prepared: Coded, row: int, removed: Collection[str], added: Sequence[Pod]) -> int:
        return int(prepared.codes[row])


def by_largest(raw: Scores) -> Scores:
    largest = max(int(raw.max(initial=0)), 0)
    return raw * MAX_SCORE // largest if largest else raw


def by_largest_reversed(raw: Scores) -> Scores:
    largest = max(int(raw.max(initial=0)), 0)
    return MAX_SCORE - raw * MAX_SCORE // largest if largest else highest(len(raw))


@lru_cache(maxsize=16)
def highest(count: int) -> Scores:
    """The highest score so many times; not to be written to."""
    found = np.full(count, MAX_SCORE, np.int64)
    found.flags.writeable = False
    return found
