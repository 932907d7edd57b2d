"""Queueing hints: whether a change of a pod, a node or a volume can make a pod schedulable for one plugin.

`wakeups` calls them. For pods, `old` None means created and `new` None means deleted; a term with a namespace
selector is assumed to match. For nodes, the plugin itself is asked about a cluster state with that one node and no
pods. For volumes, the claim must be one of the pod's, or the deleted pod must share a disk or claim with it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from numalign.api.attributes import intent
from numalign.api.objects import nodematching, requests, selectors
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from numalign.api.objects.volumes import PersistentVolume, PersistentVolumeClaim
from numalign.placement.rules import nodestate
from numalign.placement.rules.clusterstate import ClusterState
from numalign.placement.rules.nodes import nodespec
from numalign.placement.rules.pods import podterms
from numalign.placement.rules.pods.podtopologyspread import HONOR, MUST
from numalign.placement.rules.rule import FITS, FilterRule, Refusal
from numalign.placement.rules.volumes import volumecatalogue, volumerestrictions

NO_AFFINITY = PodAffinity()


def scaled_down(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """For NodeResourcesFit: an assigned pod now requests less of a resource that the pending pod requests."""
    if old is None or new is None:
        return True
    before, after = requests.assigned(old), requests.assigned(new)
    asked = (name for name, amount in requests.effective(pod).items() if amount.nanos)
    return any(name in before and (name not in after or after[name] < before[name]) for name in asked)


def frees_port(pod: Pod, gone: Pod | None, _: object = None) -> bool:
    """For NodePorts: the deleted pod used a host port of the pending pod."""
    used = nodestate.wanted(gone) if gone is not None else ()
    return any(nodestate.conflict(wish, port) for port in used for wish in nodestate.wanted(pod))


def wishes_otherwise(_: Pod, old: Pod | None, new: Pod | None) -> bool:
    """For zones: the pending pod requests another alignment, or its invalid annotations were corrected."""
    if old is None or new is None:
        return True
    before, after = old.metadata.annotations, new.metadata.annotations
    return any(before.get(name) != after.get(name) for name in intent.WISHES)


# PodTopologySpread


def changes_spread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod was created, deleted or changed that a constraint counts."""
    if any(each.metadata.namespace != pod.metadata.namespace for each in (old, new) if each is not None):
        return False
    if not pod.spec.topology_spread_constraints:
        return True  # the profile's own constraints, whose selectors come from services
    return any(_is_counted(each, pod, old) != _is_counted(each, pod, new) for each in _hard(pod))


def respread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """The pending pod's own labels or tolerations changed."""
    if old is None or new is None:
        return True
    if old.spec.tolerations != new.spec.tolerations and any(c.node_taints_policy == HONOR for c in _hard(pod)):
        return True
    return old.metadata.labels != new.metadata.labels and changes_spread(pod, old, new)


def changes_domains(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """A node was added, deleted, changed its domain or its taints."""
    keys = {constraint.topology_key for constraint in _hard(pod)}
    if not pod.spec.topology_spread_constraints:
        return True
    before, after = _domains(old, keys), _domains(new, keys)
    if old is not None and new is not None and before == after:
        return before is not None and old.spec.taints != new.spec.taints
    return before != after


def _hard(pod: Pod) -> list[TopologySpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == MUST]


def _is_counted(constraint: TopologySpreadConstraint, pod: Pod, other: Pod | None) -> bool:
    if other is None:
        return False
    labels, own = other.metadata.labels, pod.metadata.labels
    same = all(labels.get(key) == own[key] for key in constraint.match_label_keys if key in own)
    return same and selectors.matches(constraint.label_selector, labels)


def _domains(node: Node | None, keys: Iterable[str]) -> dict[str, str] | None:
    """The node's domains; None: it is not in all of them, so that constraints do not count it."""
    labels = node.metadata.labels if node is not None else {}
    return {key: labels[key] for key in keys} if node is not None and all(key in labels for key in keys) else None


# InterPodAffinity


def changes_affinity(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """A pod was created that matches the affinity, or a pod was deleted that matches the anti-affinity."""
    near, away = _near(pod), _away(pod)
    if new is not None and _is_all(near, pod, new) and not (old is not None and _is_all(near, pod, old)):
        return True
    if old is None:
        return False
    if _is_any(away, pod, old) and not (new is not None and _is_any(away, pod, new)):
        return True
    return new is None and _is_any(_away(old), old, pod)


def changes_topology(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """A node was added, or changed a topology label of a term."""
    if new is None:
        return False
    if old is None:
        return bool(_away(pod)) or any(term.topology_key in new.metadata.labels for term in _near(pod))
    before, after = old.metadata.labels, new.metadata.labels
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    return any(term.topology_key in changed and term.topology_key in after for term in _near(pod)) or any(
        term.topology_key in changed and term.topology_key in before for term in _away(pod)
    )


def _near(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    return ((pod.spec.affinity and pod.spec.affinity.pod_affinity) or NO_AFFINITY).required


def _away(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    return ((pod.spec.affinity and pod.spec.affinity.pod_anti_affinity) or NO_AFFINITY).required


def _is_all(terms: tuple[PodAffinityTerm, ...], owner: Pod, other: Pod) -> bool:
    return bool(terms) and all(_matches(term, owner, other) for term in terms)


def _is_any(terms: tuple[PodAffinityTerm, ...], owner: Pod, other: Pod) -> bool:
    return any(_matches(term, owner, other) for term in terms)


def _matches(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    read = podterms.of(term, owner)
    within = other.metadata.namespace in read.namespaces or term.namespace_selector is not None
    return within and read.selector.matches(other.metadata.labels)


PODS = "pods"


class SingleNodes:
    """Evaluates plugins on single nodes without pods."""

    def __init__(self) -> None:
        # An update is about two of them, before and after.
        self._worlds: deque[tuple[Node, ClusterState]] = deque(maxlen=2)

    def newly_fits(self, rule: FilterRule[Any], pod: Pod, old: Node | None, new: Node | None) -> bool:
        if new is None or not self.fits(rule, pod, new):
            return False
        return old is None or not self.fits(rule, pod, old)

    def roomier(self, rule: FilterRule[Any], pod: Pod, old: Node | None, new: Node | None) -> bool:
        """For NodeResourcesFit: the pod fits the empty node, which has more of something that it asks for."""
        if new is None or not self.fits(rule, pod, new):
            return False
        return old is None or has_grown(pod, old, new)

    def fits(self, rule: FilterRule[Any], pod: Pod, node: Node) -> bool:
        prepared = rule.prepare(pod, self._world(node))
        if prepared is None or isinstance(prepared, Refusal):
            return prepared is None
        return int(rule.filter(prepared)[0]) == FITS

    def _world(self, node: Node) -> ClusterState:
        for seen, world in self._worlds:
            if seen is node:
                return world
        world = ClusterState()
        world.put_node(0, node)
        self._worlds.append((node, world))
        return world


def has_grown(pod: Pod, old: Node, new: Node) -> bool:
    before, after = old.allocatable, new.allocatable
    asked = [name for name, amount in requests.effective(pod).items() if amount.nanos]
    return any(name in after and (name not in before or before[name] < after[name]) for name in (PODS, *asked))


def tolerates_cordons(pod: Pod) -> bool:
    """For NodeUnschedulable: the pod's new toleration is the one that counts."""
    return nodematching.tolerated(*nodespec.CORDONED, pod.spec.tolerations)


def is_claimed(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """The claim is named by the pod, or made for one of its ephemeral volumes."""
    meta = claim.metadata
    return any((each.namespace, each.name) == (meta.namespace, meta.name) for each in volumecatalogue.named(pod))


def is_in_other_zone(old: PersistentVolume | None, new: PersistentVolume | None) -> bool:
    """For VolumeZone, which reads the zones of a volume from its labels."""
    return old is None or new is None or old.metadata.labels != new.metadata.labels


def frees_disk(pod: Pod, gone: Pod | None, _: object = None) -> bool:
    """For VolumeRestrictions: both pods name the same claim, or both use disks."""
    if gone is None:
        return True
    both_disks = volumerestrictions.disks_of(pod) and volumerestrictions.disks_of(gone)
    return bool(both_disks) or not _claims(pod).isdisjoint(_claims(gone))


def frees_attachment(_: Pod, gone: Pod | None, __: object = None) -> bool:
    """For NodeVolumeLimits: every volume of the deleted pod may have counted."""
    return gone is None or bool(gone.spec.volumes)


def _claims(pod: Pod) -> set[str]:
    return {each.name for each in volumecatalogue.named(pod)}
