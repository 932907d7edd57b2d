"""Finds the filter plugins that keep a pod off nodes, and the change of the pod or node that would help.

`advise` calls it for causes that are not about amounts: taints, selectors, cordons, the pod's own annotations. It tries
the changed pod; for plugins that no change of the pod satisfies, it tries the pod without the plugin."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api.attributes import directspec, intent
from numalign.api.objects.pod import Pod, Toleration
from numalign.placement.columns.intent import Unkept
from numalign.placement.explain import obstacles
from numalign.placement.explain.reasons import Relaxing
from numalign.placement.rules.clusterstate import TaintKey
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodespec import NodeUnschedulable, TaintToleration
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.scheduler.explain.explanations import Cause, Explained
from numalign.scheduler.explain.trial import FitSearch
from numalign.scheduler.profiles import ZONES

POD: Final = "Pod"
CONTAINER: Final = "Container"
"""Scopes in the words of the annotation."""
CORDON: Final = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")
MOST_CAUSES: Final = 12
"""Causes for which a change is tried; nodes may have thousands of different taints."""
NOT_READY: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})
CONDITIONS: Final = "node.kubernetes.io/"
"""The prefix of taints that the node controller sets and removes by the node's conditions."""

Ask = tuple[Pod, frozenset[str], str]
"""The changed pod, the plugins to skip, and the change in words."""


def found(explained: Explained, search: FitSearch) -> tuple[Relaxing, ...]:
    """By plugin the change that makes the most nodes fit."""
    best: dict[str, Relaxing] = {}
    not_amounts = (cause for cause in explained.causes if cause.answer.plugin != NodeResourcesFit.name)
    for cause in islice(not_amounts, MOST_CAUSES):
        for each in _relaxed(explained.pod, cause, search):
            known = best.setdefault(each.plugin, each)
            if len(each.nodes) > len(known.nodes):
                best[each.plugin] = each
    return tuple(best.values())


def _relaxed(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Relaxing]:
    for changed, leave_out, words in _asks(pod, cause, search):
        nodes = search.nodes(changed, leave_out)
        if nodes:
            plugin = cause.answer.plugin
            yield Relaxing(plugin=plugin, change=words, nodes=nodes, is_uncordon=plugin == NodeUnschedulable.name)


def _asks(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    plugin = cause.answer.plugin
    if plugin in SPECIAL:
        yield from SPECIAL[plugin](pod, cause, search)
    else:
        yield pod, frozenset({plugin}), f"if it were not for {plugin}: {cause.answer.sentence}"


def _tolerating(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    # All nodes of a cause have the same taints.
    node = search.cluster.node_named(cause.nodes[0])
    taints = obstacles.untolerated(node.spec.taints, pod.spec.tolerations) if node is not None else ()
    added = tuple(Toleration(key=key, value=value, effect=effect) for key, value, effect in taints)
    yield _with_tolerations(pod, added), frozenset(), _without_taints(taints, len(cause.nodes))


def _without_taints(taints: tuple[TaintKey, ...], nodes: int) -> str:
    """A pod that tolerates the taint of a condition would not run well: the condition has to end."""
    if all(key in NOT_READY for key, _, _ in taints):
        return f"if {'it were' if nodes == 1 else 'they were'} Ready"
    words = " and ".join(map(obstacles.taint_text, taints))
    return f"without taint {words}" if taints[0][0].startswith(CONDITIONS) else f"if it tolerated {words}"


def _unselective(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    affinity = pod.spec.affinity
    left = structs.replace(affinity, node_affinity=None) if affinity is not None else None
    spec = structs.replace(pod.spec, node_selector={}, affinity=left)
    given = (("node selector", pod.spec.node_selector), ("node affinity", affinity and affinity.node_affinity))
    written = [name for name, wanted in given if wanted]
    changed = structs.replace(pod, spec=spec)
    unmatched = cause.answer.obstacle.labels if cause.answer.obstacle is not None else ()
    labels = f" {', '.join(unmatched)}" if unmatched else ""
    nowhere = ", which no node has" if unmatched and _is_nowhere(pod, unmatched, search) else ""
    yield changed, frozenset(), f"without its {' and '.join(written) or 'node selector'}{labels}{nowhere}"


def _is_nowhere(pod: Pod, labels: tuple[str, ...], search: FitSearch) -> bool:
    nodes = filter(None, map(search.cluster.node_named, search.cluster.world.rows))
    found = (obstacles.of(NodeAffinity.name, pod, node) for node in nodes)
    return all(each is not None and set(labels) <= set(each.labels) for each in found)


def _uncordoned(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    many = "if it were uncordoned" if len(cause.nodes) == 1 else "if they were uncordoned"
    # A cordon is a flag and a taint, which go together.
    yield _with_tolerations(pod, (CORDON,)), frozenset({NodeUnschedulable.name}), many


def _unwishing(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    reason = cause.answer.reason
    if reason is None or not isinstance(reason.cause, Unkept):
        return
    meta = pod.metadata
    given = [name for name in intent.WISHES if name in meta.annotations]
    kept = {name: value for name, value in meta.annotations.items() if name not in intent.WISHES}
    changed = structs.replace(pod, metadata=structs.replace(meta, annotations=kept))
    yield changed, frozenset(), f"without its annotation{'s' * (len(given) > 1)} {' and '.join(given)}"


def _otherwise(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    yield from _unwishing(pod, cause, search)
    yield from _by_container(pod)


def _by_container(pod: Pod) -> Iterator[Ask]:
    """A pod that wants the same zones for all of its containers, in direct mode."""
    meta, key = pod.metadata, directspec.TOPOLOGY_SPEC
    try:
        written = msgspec.json.decode(meta.annotations.get(key, ""), type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return
    if written.get("scope") != POD or len(pod.in_admission_order()) < 2:
        return
    changed = msgspec.json.encode(written | {"scope": CONTAINER}).decode()
    annotations = {**meta.annotations, key: changed}
    yield (
        structs.replace(pod, metadata=structs.replace(meta, annotations=annotations)),
        frozenset(),
        f'with "scope": "{CONTAINER}" in its annotation {key}',
    )


def _with_tolerations(pod: Pod, added: tuple[Toleration, ...]) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, *added)))


SPECIAL: Final[Mapping[str, Callable[[Pod, Cause, FitSearch], Iterator[Ask]]]] = {
    TaintToleration.name: _tolerating,
    NodeAffinity.name: _unselective,
    NodeUnschedulable.name: _uncordoned,
    ZONES: _otherwise,
}
"""Plugins whose refusal a change of the pod can resolve."""
