"""The reason why a pod is unschedulable: plugins for the queue, and the message "0/12 nodes are available: ...".

`cycle` calls `refusal` for an attempt that found no node. Reasons of kube-scheduler's plugins are kube-scheduler's
own. Where zones are the reason, the plugin's text is followed by ours, which names container, resource and amounts
(kube-scheduler spec 4.10). Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.explain import answers as explain
from numalign.placement.explain import reasons, wording
from numalign.placement.explain.reasons import Group, Reason
from numalign.placement.rules.nodes import topologyreports
from numalign.placement.rules.rule import Rows
from numalign.scheduler.choose.choose import NoNode
from numalign.scheduler.profiles import ZONES
from numalign.scheduler.queue.queued import Rejection


class Refusal(Struct, frozen=True):
    rejection: Rejection
    message: str


def refusal(found: NoNode, pod: Pod, shape: Shape, engine: Engine, *, zones: bool = True) -> Refusal:
    """`zones`: whether the profile checks zones."""
    if found.refused is not None:
        return _of_pod(found)
    counts: Counter[str] = Counter()
    reasons: dict[str, dict[str, None]] = {}
    unreported: list[int] = []
    for plugin, refused, rows in found.tallies():
        if plugin == ZONES:
            unreported += rows.tolist()
        reasons.setdefault(plugin, {}).update(dict.fromkeys(refused.reasons))
        for text in refused.reasons:
            counts[text] += len(rows)
    for group in zone_groups(found.zones, pod, shape, engine):
        text = wording.of_zones(group.answer)
        reasons.setdefault(ZONES, {})[text] = None
        counts[text] += len(group.nodes)
    kept_off, promised = _kept_off(found), [wording.PROMISED] * len(found.promised)
    # A node that a rule refuses has been counted.
    counts.update(why for row, why in kept_off.items() if found.filtered is not None and found.filtered.has(row))
    counts.update(promised)
    for text in (*kept_off.values(), *promised):
        reasons.setdefault(ZONES, {})[text] = None
    blocked = [*unreported, *found.zones.tolist(), *kept_off, *found.promised.tolist()]
    rejection = Rejection(
        reasons={plugin: tuple(texts) for plugin, texts in reasons.items()},
        zones_of=frozenset(engine.names[row] for row in blocked),
    )
    message = wording.unavailable(found.nodes, counts)
    never = None
    if zones and found.filtered is not None and len(found.filtered.rows):
        never = explain.of(engine, pod, shape).never_on_any(found.filtered.rows)
    if never is not None:
        return Refusal(rejection, f"{message} {wording.never(never)}")
    awaited = counts[topologyreports.AWAITED]
    return Refusal(rejection, f"{message} {wording.first_reports(awaited)}" if awaited else message)


def _of_pod(found: NoNode) -> Refusal:
    """A plugin rejected the pod in PreFilter; reasons of single nodes are not reported then."""
    assert found.refused is not None
    said = found.refused.refusal.reasons
    message = f"0/{found.nodes} nodes are available: {', '.join(said)}." if found.nodes else wording.NO_NODES
    rejection = Rejection(reasons=dict.fromkeys(found.refused.plugins, said), zones_of=frozenset())
    return Refusal(rejection, message)


def _kept_off(found: NoNode) -> dict[int, str]:
    """Nodes that would take the pod if it were not for that, or from which others could be evicted for it."""
    if not found.kept_off:
        return {}
    hopeless = set(found.unresolvable.tolist())
    return {row: why for row, why in found.kept_off.items() if row not in hopeless}


def zone_groups(rows: Rows, pod: Pod, shape: Shape, engine: Engine) -> Iterable[Group[Reason]]:
    """The nodes of these rows by the reason why their zones refuse the pod."""
    if not len(rows):
        return ()
    answers, names = explain.of(engine, pod, shape), engine.names
    found = {names[row]: answers.reason(row) for row in np.sort(rows).tolist()}
    return reasons.grouped({node: reason for node, reason in found.items() if reason is not None}, reasons.merged)
