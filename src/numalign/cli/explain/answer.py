"""What `numalign explain` answers, as values: the JSON and YAML output, field by field.

`told` fills these in from what the scheduler's own explanation says; `explaindrawing` turns them into text. Amounts
are CPUs (thousandths possible), bytes, or numbers of devices. docs/use/explain.md documents every field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.cli.admit import report, units
from numalign.cli.admit.report import Held, Lacking, Reported, Zones
from numalign.cli.admit.units import Amount
from numalign.placement.explain.nodeview import Tenant
from numalign.placement.explain.reasons import AnySuggestion
from numalign.placement.ledger.holdings import Source
from numalign.scheduler.explain import advise
from numalign.scheduler.explain.explanations import Cause, Explained, PodProgress, RejectedNodes, Stage

EXAMPLES: Final = 3
"""Nodes of a cause that are named."""


class NodeTold(Reported, frozen=True, kw_only=True):
    """One node's answer; a node that fits has nothing but its name."""

    node: str
    fits: bool
    why: str = ""
    plugin: str = ""
    says: tuple[str, ...] = ()
    """In the stock scheduler's words."""
    cause: str = ""
    policy: str = ""
    scope: str = ""
    container: str = ""
    never: bool = False
    """Whether it would be so on the empty node, too."""
    lacks: tuple[Lacking, ...] = ()


class CauseTold(Reported, frozen=True, kw_only=True):
    """Nodes that refuse for one kind of reason."""

    nodes: int
    why: str
    plugin: str
    cause: str
    examples: tuple[str, ...]


class Placed(Reported, frozen=True, kw_only=True):
    """Where a pod is or would be. By container the zones, or all sets of zones that are possible."""

    node: str
    source: Source | None = None
    """How its zones are known; None: nothing of it is aligned, or the node has no report."""
    containers: Mapping[str, tuple[Zones, ...]] = {}
    holds: tuple[Held, ...] = ()


class PodTold(Reported, frozen=True, kw_only=True):
    namespace: str
    name: str
    scheduler: str
    qos_class: QoS
    requests: dict[str, Amount]
    stage: Stage | None = None
    """None: there is no such pod, it is only thought of."""
    leaving: bool = False
    gates: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""
    placed: Placed | None = None

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


class Asked(Reported, frozen=True, kw_only=True):
    """What the nodes said."""

    profile: str
    """By whose rules."""
    nodes: int
    fits: bool
    headline: str
    fitting: tuple[str, ...]
    untried: tuple[str, ...]
    causes: tuple[CauseTold, ...]
    closest: tuple[NodeTold, ...]
    answers: tuple[NodeTold, ...]
    """Every node's, where they were asked for."""
    help: str
    """One line of what would make it fit; empty: it fits, or nothing is known."""
    suggestions: tuple[Any, ...]
    notes: tuple[str, ...]


class Told(Reported, frozen=True, kw_only=True):
    pod: PodTold
    fits: bool
    """Whether it has a node, or would find one; of several, whether all would."""
    asked: Asked | None = None
    """None: the pod has a node, and nobody was asked."""
    chosen: Placed | None = None
    """Where it would go now, or could: among equals it is a matter of chance."""
    copies: int = 1
    """How many like it were asked for, one after the other."""
    placed: Mapping[str, int] = {}
    """Nodes that took them, with how many."""
    problems: tuple[str, ...] = ()
    """What could not be read of the cluster."""


def pod(thing: Pod, state: PodProgress | None = None) -> PodTold:
    meta = thing.metadata
    known = state or PodProgress(stage=Stage.WAITING)
    return PodTold(
        namespace=meta.namespace,
        name=meta.name,
        scheduler=thing.spec.scheduler_name,
        qos_class=qos.of(thing),
        requests=units.requested(requests.effective(thing)),
        stage=state.stage if state is not None else None,
        leaving=known.is_leaving,
        gates=known.gates,
        reason=known.reason,
        message=known.message,
        placed=placed(known.node, known.tenant) if known.node else None,
    )


def placed(node: str, tenant: Tenant | None) -> Placed:
    if tenant is None or not tenant.charges:
        return Placed(node=node)
    held = tuple(
        Held(resource=each.resource, amount=each.amount, zones=each.zones, certain=each.certain)
        for each in sorted(tenant.charges, key=lambda each: (each.zones, each.resource))
    )
    return Placed(node=node, source=tenant.source, containers=tenant.containers, holds=held)


def asked(found: Explained, suggested: tuple[AnySuggestion, ...], *, closest: int, every: bool) -> Asked:
    """`closest`: how many nodes are told in full; `every`: whether all are told."""
    nodes = [*(fitting(node) for node in found.fitting), *map(maybe, found.untried)]
    answers = [answer(node, found.refused[node]) for node in sorted(found.refused)] if every else []
    return Asked(
        profile=found.profile,
        nodes=found.nodes,
        fits=found.fits,
        headline=found.headline,
        fitting=found.fitting,
        untried=found.untried,
        causes=tuple(map(cause, found.causes)),
        closest=tuple(answer(node, found.refused[node]) for node in found.closest[:closest]),
        answers=tuple(sorted([*nodes, *answers], key=lambda each: each.node)) if every else (),
        help=advise.line(suggested),
        suggestions=tuple(map(suggestion, suggested)),
        notes=tuple(found.notes),
    )


def fitting(node: str) -> NodeTold:
    return NodeTold(node=node, fits=True)


def maybe(node: str) -> NodeTold:
    return NodeTold(node=node, fits=True, why="may fit; it was not tried, because too many nodes hang on pods to come")


def answer(node: str, said: RejectedNodes) -> NodeTold:
    reason = said.reason
    known = NodeTold(node=node, fits=False, why=said.sentence, plugin=said.plugin, says=said.texts)
    if reason is None:
        return known
    return msgspec.structs.replace(
        known,
        cause=reason.cause,
        policy=reason.policy or "",
        scope=reason.scope or "",
        container=reason.container,
        never=reason.structural,
        lacks=tuple(map(report.lacking, reason.lacks)),
    )


def cause(found: Cause) -> CauseTold:
    reason = found.answer.reason
    return CauseTold(
        nodes=len(found.nodes),
        why=found.answer.sentence,
        plugin=found.answer.plugin,
        cause=reason.cause if reason is not None else "",
        examples=found.nodes[:EXAMPLES],
    )


def suggestion(found: AnySuggestion) -> Any:
    """As plain values, with CPUs instead of thousandths."""
    return _in_cpus(msgspec.to_builtins(found))


def _in_cpus(plain: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = {name: _in_cpus(value) for name, value in plain.items() if isinstance(value, dict)}
    if plain.get("resource") == resourcenames.CPU:
        counted = ("amount", "insteadOf")
        inner |= {name: units.total(resourcenames.CPU, plain[name]) for name in counted if name in plain}
    return plain | inner


def counted(nodes: Sequence[str]) -> dict[str, int]:
    return {node: nodes.count(node) for node in dict.fromkeys(nodes)}
