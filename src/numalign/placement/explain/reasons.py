"""Why a pod does not fit on a node, and what would make it fit, as data.

`answers` makes one reason per node, `grouped` and `merged` combine reasons of one kind, `scheduler.explain` makes
suggestions. Zones go by their real ids, containers by name and place in admission order. Amounts are integers: cpu in
thousandths, everything else in whole units. `wording` says reasons and suggestions in sentences; no text is made
here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct, structs

from numalign.api.attributes.intent import Intent
from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.kubelet.demand import Role
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code
from numalign.placement.rowmodel.causes import Cause


class NodeCause(StrEnum):
    """Causes that are found before zones are checked."""

    NO_NODE = "no-node"
    TOTALS = "node-totals"
    POD_COUNT = "pod-count"
    PLUGIN = "plugin"
    """The reference flavour refuses; it does not say more than `role` and `scope`."""
    NOT_COUNTED = "not-counted"
    """There may be room for more pods; the row model was not asked any further."""


AnyCause = Cause | NodeCause | Unkept

T = TypeVar("T")
WHOLE_NODE: Final = 0

SHORTAGES: Final[frozenset[AnyCause]] = frozenset(
    {
        Cause.NO_COMMON_ZONES,
        Cause.TOO_FEW_CPUS,
        Cause.TOO_FEW_DEVICES,
        Cause.TOO_LITTLE_MEMORY,
        NodeCause.TOTALS,
    }
)
"""Causes that one resource alone may explain."""


class ZoneShare(Struct, frozen=True):
    """What one zone has of a resource, and what it lacks of the need."""

    zone: int
    free: int
    short: int


class Lack(Struct, frozen=True, kw_only=True):
    """One of the resources that are needed together, not necessarily the one that is short."""

    resource: str
    need: int
    zones: int = WHOLE_NODE
    """The number of zones that must hold it together; 0: any zones of the node."""
    most: int | None = None
    """The most that this number of zones has free, on the best node. None: amounts do not decide."""
    too_large: bool = False
    """Whether the empty node has too little of it, too."""
    by_zone: tuple[ZoneShare, ...] = ()
    """Amounts by zone; empty for a reason of several nodes."""

    @property
    def is_short(self) -> bool:
        return self.most is not None and self.most < self.need

    @property
    def fitting(self) -> tuple[int, ...]:
        """The zones that have enough of it."""
        return tuple(each.zone for each in self.by_zone if not each.short)

    @property
    def kind(self) -> tuple[object, ...]:
        """Equal for lacks that differ only in what the nodes have."""
        return self.resource, self.need, self.zones, self.too_large


class Reason(Struct, frozen=True, kw_only=True, dict=True):
    """Why one node, or a group of nodes, refuses the pod."""

    code: Code
    cause: AnyCause
    policy: Policy | None = None
    scope: Scope | None = None
    """None: the node has no report, zones were not checked, or nodes differ."""
    container: str = ""
    """Empty: the pod as a whole."""
    place: int = -1
    role: Role | None = None
    lacks: tuple[Lack, ...] = ()
    closest: tuple[int, ...] = ()
    """The zones that came closest."""
    structural: bool = False
    """Whether the empty node would refuse the pod, too: waiting does not help."""
    after_init: bool = False
    """Whether the container has to use what init containers leave in their zones."""
    threads_per_core: int = 1
    wish: Intent | None = None
    """The intent that the node does not keep."""
    waiting_for: tuple[str, ...] = ()
    """Pending pods of the node, where the answer depends on their zones."""
    assumptions: tuple[Assumption, ...] = ()
    """What the engine assumed because the node's report does not say."""

    @cached_property
    def worst(self) -> Lack | None:
        """The resource that is short by the largest part; resources that are short on the empty node come first."""
        short = [lack for lack in self.lacks if lack.is_short]
        return min(short, key=lambda lack: (not lack.too_large, (lack.most or 0) / lack.need), default=None)

    @cached_property
    def named_lacks(self) -> tuple[Lack, ...]:
        """The resources that a sentence names: the one that is short, else all that are needed together."""
        # Where one zone has to hold everything, what takes several zones is too large.
        too_wide = self.cause is Cause.DIFFERENT_ZONE_COUNTS and self.policy == "single-numa-node"
        alone = self.worst if too_wide or self.cause in SHORTAGES else None
        return self.lacks if alone is None else (alone,)

    @cached_property
    def disagreeing(self) -> tuple[Lack, ...]:
        """Resources that each fit in one zone but not in the same one: two if two suffice to show it, else all.

        Empty: several zones are needed, the zones are not known, or zones are not refused for lack of a common one."""
        if self.cause is not Cause.NO_COMMON_ZONES or self.after_init:
            return ()
        limited = [lack for lack in self.lacks if lack.zones == 1 and 0 < len(lack.fitting) < len(lack.by_zone)]
        if len(limited) < 2 or any(lack.is_short for lack in self.lacks):
            return ()
        for some in (*combinations(limited, 2), tuple(limited)):
            if not set.intersection(*(set(lack.fitting) for lack in some)):
                return some
        return ()

    @cached_property
    def kind(self) -> tuple[object, ...]:
        """Reasons of one kind are one line of a summary."""
        lacks = tuple(lack.kind for lack in self.named_lacks)
        subject = self.cause, self.place, self.container, self.role, lacks
        return (*subject, self.after_init, *self._named)

    @property
    def _named(self) -> tuple[object, ...]:
        if isinstance(self.cause, Unkept):
            return self.policy, self.scope
        return (self.threads_per_core,) if self.cause is Cause.PARTIAL_CORES else ()


class Obstacle(Struct, frozen=True, kw_only=True):
    """What is written on a node and keeps the pod away, by name; one of the three."""

    cordoned: bool = False
    taints: tuple[str, ...] = ()
    """Those that the pod does not tolerate."""
    labels: tuple[str, ...] = ()
    """The parts of the pod's node selector and node affinity that the node does not match."""


class HasKind(Protocol):
    @property
    def kind(self) -> Hashable: ...


A = TypeVar("A", bound=HasKind)


class Group(Struct, Generic[A], frozen=True):
    """Nodes that refuse for one kind of reason."""

    answer: A
    """The merged reason, with the best amounts of the nodes."""
    nodes: tuple[str, ...]


def grouped(
    refused: Mapping[str, A], merge: Callable[[Sequence[A]], A], identity: Callable[[A], int] = id
) -> tuple[Group[A], ...]:
    """Answers of one kind as one, with all their nodes; the most frequent first.

    Nodes that are equal share one object: answers of one `identity` are merged once."""
    nodes: defaultdict[Hashable, list[str]] = defaultdict(list)
    alike: defaultdict[Hashable, dict[int, A]] = defaultdict(dict)
    for node, answer in refused.items():
        nodes[answer.kind].append(node)
        alike[answer.kind][identity(answer)] = answer
    found = [Group(merge(tuple(alike[kind].values())), tuple(sorted(names))) for kind, names in nodes.items()]
    return tuple(sorted(found, key=lambda group: (-len(group.nodes), group.nodes)))


def merged(alike: Sequence[Reason]) -> Reason:
    """Merges reasons of one kind into one, with the best amounts of their nodes."""
    first = alike[0]
    if len(alike) == 1:
        return first
    return structs.replace(
        first,
        policy=_common([reason.policy for reason in alike]),
        scope=_common([reason.scope for reason in alike]),
        lacks=tuple(_best(column) for column in zip(*(reason.named_lacks for reason in alike), strict=True)),
        closest=(),
        waiting_for=tuple(sorted({name for reason in alike for name in reason.waiting_for})),
        assumptions=tuple(sorted({each for reason in alike for each in reason.assumptions})),
    )


def _common(values: Sequence[T]) -> T | None:
    return values[0] if len(set(values)) == 1 else None


def _best(lacks: Iterable[Lack]) -> Lack:
    known = list(lacks)
    amounts = [lack.most for lack in known if lack.most is not None]
    return structs.replace(known[0], most=max(amounts, default=None), by_zone=())


class Suggestion(Struct, frozen=True, kw_only=True, tag_field="kind", rename="camel"):
    """Base of all kinds."""


class Freeing(Suggestion, frozen=True, kw_only=True, tag="free-pods"):
    """The pod would fit on the node without these pods."""

    node: str
    pods: tuple[str, ...]
    resource: str = ""
    """What the node lacks, if that is one resource, and how much of it these pods hold there."""
    amount: int = 0
    zones: tuple[int, ...] = ()


class Shrinking(Suggestion, frozen=True, kw_only=True, tag="ask-for-less"):
    """The pod would fit if a container requested this amount."""

    container: str
    resource: str
    amount: int
    instead_of: int
    nodes: tuple[str, ...]


class Oversized(Suggestion, frozen=True, kw_only=True, tag="too-large"):
    """No node is large enough; an empty one would be if the container requested this amount.

    Without a resource: no single resource is the reason, and only another policy helps."""

    container: str = ""
    resource: str = ""
    amount: int = 0
    instead_of: int = 0
    fits_now: Shrinking | None = None
    policies: tuple[str, ...] = ()
    """Policies under which some empty node would take the pod as it is."""


class Relaxing(Suggestion, frozen=True, kw_only=True, tag="change-rule"):
    """The pod would fit if a filter plugin did not refuse it."""

    plugin: str
    change: str
    """The change as a clause, such as `if it tolerated ...`."""
    nodes: tuple[str, ...]
    is_uncordon: bool = False
    """Whether one command on the node does it, and no pod has to change."""


class Absent(Suggestion, frozen=True, kw_only=True, tag="no-such-resource"):
    resource: str


class Waiting(Suggestion, frozen=True, kw_only=True, tag="wait"):
    """The answer depends on pods that are pending on the node."""

    node: str
    pods: tuple[str, ...]


AnySuggestion = Freeing | Shrinking | Oversized | Relaxing | Absent | Waiting
