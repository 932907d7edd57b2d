"""Why a pod goes nowhere, node by node and summed up over the cluster.

The scheduler asks when a pod is parked, the command line and the pages whenever somebody wants to know. Reasons of one
kind become one, with the best numbers that any of their nodes has; `wording` says each in a sentence (docs/explain.md).
Nothing is charged and nothing changes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import Protocol

from msgspec import Struct, field

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.explain import reasons, wording
from numalign.placement.explain.exactanswers import ExactAnswers
from numalign.placement.explain.reasons import Group, Reason
from numalign.placement.explain.referenceanswers import ReferenceAnswers
from numalign.placement.reports.nodefacts import Assumption


class Explanation(Struct, frozen=True, kw_only=True, dict=True):
    """What every node says to one pod."""

    pod: str
    """namespace/name"""
    fitting: tuple[str, ...] = ()
    """Nodes that can take it now, as far as is known without trying."""
    refused: Mapping[str, Reason] = field(default_factory=dict)
    """By node."""
    warned: Mapping[str, Reason] = field(default_factory=dict)
    """Fitting nodes that do not keep what the pod would prefer."""
    assumptions: Mapping[Assumption, int] = field(default_factory=dict)
    """How many nodes were judged with something that their reports do not say."""
    problem: str = ""
    """Why the pod itself cannot be used."""

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        return grouped(self.refused)

    @property
    def lines(self) -> list[str]:
        """The summary, a sentence per line: how many nodes fit, then why others do not, the most frequent first."""
        if self.problem:
            return [self.problem]
        head = wording.headline(len(self.fitting), len(self.fitting) + len(self.refused))
        return [head, *map(wording.line, self.groups)]

    @property
    def notes(self) -> list[str]:
        """What comes beside it: wishes that fitting nodes do not keep, and what was assumed about nodes."""
        warnings = map(wording.warning, grouped(self.warned))
        assumed = sorted(self.assumptions.items(), key=lambda each: (-each[1], each[0]))
        return [*warnings, *(wording.assumption(what, nodes) for what, nodes in assumed)]


class Answers(Protocol):
    """What a flavour's rows say to one pod."""

    def reason(self, row: int) -> Reason | None:
        """None: the row is a candidate."""
        ...

    def warning(self, row: int) -> Reason | None: ...

    def assumptions(self, row: int) -> frozenset[Assumption]: ...


def explain(engine: Engine, pod: Pod) -> Explanation:
    """What every node says to the pod now."""
    try:
        told = answers(engine, pod)
    except BadObject as problem:
        return Explanation(pod=pod.metadata.full_name, problem=str(problem))
    found = {node: told.reason(row) for node, row in engine.columns.rows.items()}
    fitting = [node for node, reason in found.items() if reason is None]
    warnings = {node: told.warning(engine.columns.rows[node]) for node in fitting}
    return Explanation(
        pod=pod.metadata.full_name,
        fitting=tuple(fitting),
        refused={node: reason for node, reason in found.items() if reason},
        warned={node: warning for node, warning in warnings.items() if warning},
        assumptions=Counter(each for row in engine.columns.rows.values() for each in told.assumptions(row)),
    )


def on_node(engine: Engine, pod: Pod, node: str) -> Reason | None:
    """The same for one node; None: it can take the pod. BadObject if the pod cannot be used at all."""
    return answers(engine, pod).reason(engine.columns.rows[node])


def grouped(refused: Mapping[str, Reason]) -> tuple[Group, ...]:
    """Reasons of one kind as one, with all their nodes; the most frequent first."""
    nodes: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    alike: defaultdict[tuple[object, ...], dict[int, Reason]] = defaultdict(dict)
    for node, reason in refused.items():
        nodes[reason.kind].append(node)
        # Nodes that are equal share one object, which is looked at once.
        alike[reason.kind][id(reason)] = reason
    found = [Group(reasons.merged(tuple(alike[kind].values())), tuple(sorted(names))) for kind, names in nodes.items()]
    return tuple(sorted(found, key=lambda group: (-len(group.nodes), group.nodes)))


def answers(engine: Engine, pod: Pod, shape: Shape | None = None) -> Answers:
    """What each row says to the pod; BadObject if the pod cannot be used at all. `shape`: if it is known already."""
    flavour, shape = engine.flavour, shape or engine.shape(pod)
    if isinstance(flavour, ExactFlavour):
        return ExactAnswers(flavour, pod, shape)
    return ReferenceAnswers(flavour, pod, shape, engine.columns)
