"""Reads and changes the conditions in an object's status. The given list is never modified.

All controllers use it; `stamps` names the timestamps that a kind of condition has beside lastTransitionTime."""

from collections.abc import Sequence
from datetime import datetime

from numalign.simulator import clock
from numalign.simulator.trees import Tree

Conditions = list[Tree]


def listed(tree: Tree) -> Conditions:
    """The conditions of an object; empty if it has no status yet."""
    return (tree.get("status") or {}).get("conditions") or []


def find(conditions: Sequence[Tree], kind: str) -> Tree | None:
    return next((each for each in conditions if each.get("type") == kind), None)


def is_true(tree: Tree, kind: str) -> bool:
    found = find(listed(tree), kind)
    return found is not None and found.get("status") == "True"


def made(kind: str, status: str, reason: str, message: str) -> Tree:
    """A condition without timestamps, which `put` adds."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def put(conditions: Sequence[Tree], condition: Tree, now: datetime, *stamps: str) -> Conditions:
    """The list with this condition. `lastTransitionTime` changes with the status, `stamps` with any field."""
    old = find(conditions, condition["type"])
    if old is not None and all(old.get(key) == value for key, value in condition.items()):
        return list(conditions)
    written = clock.text(now)
    stays = old is not None and old.get("status") == condition["status"]
    times = dict.fromkeys(stamps, written)
    times["lastTransitionTime"] = (old or {}).get("lastTransitionTime", written) if stays else written
    new = condition | times
    return [new if each is old else each for each in conditions] + ([] if old is not None else [new])


def without(conditions: Sequence[Tree], kind: str) -> Conditions:
    return [each for each in conditions if each.get("type") != kind]
