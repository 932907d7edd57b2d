"""When an object of an installation is ready, judged by its status: pure functions of trees.

`waiting` polls and asks here. A Deployment is ready when its rollout is complete, a DaemonSet when every selected node
runs the new pod, a definition when it is served. An agent is ready when its node has a fresh report: a pod that runs
and publishes nothing is of no use to a scheduler."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from numalign.api.nrt import publishers
from numalign.deploy import podtroubles
from numalign.deploy.apply import objects
from numalign.deploy.apply.objects import Tree

FRESH: Final = publishers.HEARTBEAT_SECONDS + 60.0
"""Seconds. A minute for clocks that differ; the doctor calls an agent dead after a longer silence."""


class Readiness(Struct, frozen=True):
    """`failed`: waiting longer does not help."""

    ready: bool
    words: str
    failed: bool = False


MISSING: Final = Readiness(ready=False, words="does not exist")


def state(tree: Tree | None) -> Readiness:
    if tree is None:
        return MISSING
    if objects.at(tree, "metadata", "deletionTimestamp"):
        return Readiness(ready=False, words="is being deleted")
    judge = {"Deployment": deployment, "DaemonSet": daemonset, objects.CRD: definition, objects.NAMESPACE: namespace}
    known = judge.get(str(tree.get("kind")))
    return known(tree) if known is not None else Readiness(ready=True, words="exists")


def deployment(tree: Tree) -> Readiness:
    wanted = objects.at(tree, "spec", "replicas")
    wanted = 1 if wanted is None else int(wanted)
    if not _is_observed(tree):
        return Readiness(ready=False, words="the controller has not seen the change yet")
    progressing = _condition(tree, "Progressing")
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        why = progressing.get("message") or "no pod became ready in time"
        return Readiness(ready=False, words=f"the rollout does not progress: {why}", failed=True)
    updated, total, available = (_count(tree, key) for key in ("updatedReplicas", "replicas", "availableReplicas"))
    failure = _condition(tree, "ReplicaFailure")
    is_complete = updated >= wanted and total <= updated and available >= wanted
    if failure.get("status") == "True" and not is_complete:
        words = podtroubles.refused(str(failure.get("message") or failure.get("reason") or ""))
        return Readiness(ready=False, words=words)
    if updated < wanted:
        return Readiness(ready=False, words=f"{updated} of {wanted} replicas updated")
    if total > updated:
        return Readiness(ready=False, words=f"{total - updated} old replicas left")
    if available < wanted:
        return Readiness(ready=False, words=f"{available} of {wanted} replicas available")
    return Readiness(ready=True, words=f"{available} of {wanted} replicas available")


def daemonset(tree: Tree) -> Readiness:
    if not _is_observed(tree):
        return Readiness(ready=False, words="the controller has not seen the change yet")
    desired, ready = _count(tree, "desiredNumberScheduled"), _count(tree, "numberReady")
    updated = _count(tree, "updatedNumberScheduled")
    on_delete = objects.at(tree, "spec", "updateStrategy", "type") == "OnDelete"
    if not desired:
        return Readiness(ready=True, words="no node is selected")
    if updated < desired and not on_delete:
        return Readiness(ready=False, words=f"{updated} of {desired} pods updated")
    return Readiness(ready=ready >= desired, words=f"{ready} of {desired} pods ready")


def definition(tree: Tree) -> Readiness:
    names = _condition(tree, "NamesAccepted")
    if names.get("status") == "False":
        why = f"its names are not accepted: {names.get('message') or names.get('reason')}"
        return Readiness(ready=False, words=why, failed=True)
    established = _condition(tree, "Established").get("status") == "True"
    is_ready = established and names.get("status") == "True"
    return Readiness(ready=is_ready, words="established" if is_ready else "is not established yet")


def namespace(tree: Tree) -> Readiness:
    phase = objects.at(tree, "status", "phase") or "Active"
    return Readiness(ready=phase == "Active", words=str(phase).lower())


def _is_observed(tree: Tree) -> bool:
    return _count(tree, "observedGeneration") >= int(objects.at(tree, "metadata", "generation") or 0)


def _count(tree: Tree, key: str) -> int:
    return int(objects.at(tree, "status", key) or 0)


def _condition(tree: Tree, kind: str) -> Tree:
    conditions = objects.at(tree, "status", "conditions") or ()
    return next((each for each in conditions if each.get("type") == kind), {})


class Reports(Struct, frozen=True):
    """The nodes on which an agent should report: how many, and which have no fresh report."""

    nodes: int
    missing: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    def state(self) -> Readiness:
        fresh = self.nodes - len(self.missing) - len(self.stale)
        words = f"{fresh} of {self.nodes} nodes have a fresh report"
        late = [*self.missing, *self.stale]
        if late:
            words += f"; none from {', '.join(late[:3])}" + (f" and {len(late) - 3} more" if len(late) > 3 else "")
        return Readiness(ready=not late, words=words)


def reports(nodes: Iterable[str], found: Mapping[str, Tree], now: datetime) -> Reports:
    """`found` are the reports by node; of each only its metadata is read."""
    named = sorted(set(nodes))
    missing = tuple(node for node in named if node not in found)
    stale = tuple(node for node in named if node in found and not is_fresh(found[node], now))
    return Reports(len(named), missing, stale)


def is_fresh(report: Tree, now: datetime) -> bool:
    """By the agent's heartbeat. A report of another publisher has none: that it exists must do."""
    written = objects.at(report, "metadata", "annotations", publishers.HEARTBEAT)
    if written is None:
        return True
    try:
        age = (now - datetime.fromisoformat(written)).total_seconds()
    except (TypeError, ValueError):
        return False
    return age <= FRESH
