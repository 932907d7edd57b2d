"""The annotations by which `kubectl rollout` reads a deployment's history off its replica sets.

`deployments` calls these; the numbers in them are texts, and somebody may have changed them by hand."""

from collections.abc import Iterable
from typing import Final

from numalign.simulator.trees import Tree

REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
NOT_COPIED: Final = frozenset({REVISION, HISTORY, DESIRED, MOST, LAST_APPLIED, "deprecated.deployment.rollback.to"})
LONGEST_HISTORY: Final = 2000


def annotations(tree: Tree) -> dict[str, str]:
    return tree["metadata"].get("annotations") or {}


def number(tree: Tree, annotation: str) -> int | None:
    written = annotations(tree).get(annotation, "")
    return int(written) if written.isdecimal() else None


def revision(tree: Tree) -> int:
    return number(tree, REVISION) or 0


def following(old: Iterable[Tree]) -> int:
    """The number of the newest replica set, given all others."""
    return max(map(revision, old), default=0) + 1


def inherited(deployment: Tree, replicaset: Tree, following: int) -> dict[str, str]:
    """The annotations of the newest replica set: the deployment's, and its place in the history."""
    mine = annotations(replicaset)
    copied = {key: value for key, value in annotations(deployment).items() if key not in NOT_COPIED}
    before = revision(replicaset)
    if before >= following:
        return mine | copied
    history = {HISTORY: _history(mine.get(HISTORY, ""), str(before))} if before else {}
    return mine | copied | history | {REVISION: str(following)}


def sizes(replicas: int, most: int) -> dict[str, str]:
    return {DESIRED: str(replicas), MOST: str(most)}


def _history(written: str, revision: str) -> str:
    entries = [*filter(None, written.split(",")), revision]
    while len(",".join(entries)) > LONGEST_HISTORY:
        entries.pop(0)
    return ",".join(entries)
