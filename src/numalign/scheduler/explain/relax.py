"""Finds the one filter plugin that keeps a pod off nodes, and the change of the pod or node that would help.

`advise` calls it for causes that are not about amounts: taints, selectors, cordons, the pod's own annotations. It tries
the changed pod; for plugins that no change of the pod satisfies, it tries the pod without the plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from numalign.api.attributes import intent
from numalign.api.objects import nodematching
from numalign.api.objects.node import Taint
from numalign.api.objects.pod import Pod, Toleration
from numalign.placement.columns.intent import Unkept
from numalign.placement.explain.reasons import Relaxing
from numalign.placement.rules.clusterstate import TaintKey
from numalign.placement.rules.nodes import nodespec
from numalign.placement.rules.nodes.nodeaffinity import NodeAffinity
from numalign.placement.rules.nodes.nodespec import NodeUnschedulable, TaintToleration
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.scheduler.explain.explanations import Cause, Explained
from numalign.scheduler.explain.trial import FitSearch
from numalign.scheduler.profiles import ZONES

CORDON: Final = Toleration(key="node.kubernetes.io/unschedulable", operator="Exists")
MOST_TAINTS: Final = 4

Ask = tuple[Pod, frozenset[str], str]
"""The changed pod, the plugins to skip, and the change in words."""


def found(explained: Explained, search: FitSearch) -> Relaxing | None:
    """The change that makes the most nodes fit."""
    tried = [each for cause in explained.causes for each in _relaxed(explained.pod, cause, search)]
    return max(tried, key=lambda each: len(each.nodes), default=None)


def _relaxed(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Relaxing]:
    for changed, leave_out, words in _asks(pod, cause, search):
        nodes = search.nodes(changed, leave_out)
        if nodes:
            yield Relaxing(plugin=cause.answer.plugin, change=words, nodes=nodes)


def _asks(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    plugin = cause.answer.plugin
    if plugin in SPECIAL:
        yield from SPECIAL[plugin](pod, cause, search)
    elif plugin != NodeResourcesFit.name:
        yield pod, frozenset({plugin}), f"if it were not for {plugin}: {cause.answer.sentence}"


def _tolerating(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    own, found = pod.spec.tolerations, map(search.cluster.node_named, cause.nodes)
    untolerated = Counter(_untolerated(node.spec.taints, own) for node in found if node is not None)
    for taints, _ in untolerated.most_common(MOST_TAINTS):
        added = tuple(Toleration(key=key, value=value, effect=effect) for key, value, effect in taints)
        words = f"if it tolerated {' and '.join(map(_taint, taints))}"
        yield _with_tolerations(pod, added), frozenset(), words


def _untolerated(taints: Sequence[Taint], own: Sequence[Toleration]) -> tuple[TaintKey, ...]:
    keys = ((taint.key, taint.value, taint.effect) for taint in taints if taint.effect in nodespec.KEEPS_AWAY)
    return tuple(key for key in keys if not nodematching.tolerated(*key, own))


def _taint(taint: TaintKey) -> str:
    key, value, effect = taint
    return f"{key}={value}:{effect}" if value else f"{key}:{effect}"


def _unselective(pod: Pod, cause: Cause, search: FitSearch) -> Iterator[Ask]:
    affinity = pod.spec.affinity
    left = structs.replace(affinity, node_affinity=None) if affinity is not None else None
    spec = structs.replace(pod.spec, node_selector={}, affinity=left)
    written = [
        name for name, given in (("node selector", pod.spec.node_selector), ("node affinity", affinity)) if given
    ]
    changed = structs.replace(pod, spec=spec)
    yield changed, frozenset(), f"without its {' and '.join(written) or 'node selector'}"


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


def _with_tolerations(pod: Pod, added: tuple[Toleration, ...]) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, tolerations=(*pod.spec.tolerations, *added)))


SPECIAL: Final[Mapping[str, Callable[[Pod, Cause, FitSearch], Iterator[Ask]]]] = {
    TaintToleration.name: _tolerating,
    NodeAffinity.name: _unselective,
    NodeUnschedulable.name: _uncordoned,
    ZONES: _unwishing,
}
"""Plugins whose refusal a change of the pod can resolve."""
