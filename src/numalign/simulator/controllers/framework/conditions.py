"""The conditions list in the status of an object: looked up, set, taken out; the list given is never changed.

Every controller that reports conditions uses these, each kind with the time stamps that its type has."""

from collections.abc import Sequence
from datetime import datetime

from numalign.simulator.controllers.framework import moments
from numalign.simulator.trees import Tree

Conditions = list[Tree]


def listed(tree: Tree) -> Conditions:
    """Those of an object, none if it has no status yet."""
    return (tree.get("status") or {}).get("conditions") or []


def find(conditions: Sequence[Tree], kind: str) -> Tree | None:
    return next((each for each in conditions if each.get("type") == kind), None)


def is_true(tree: Tree, kind: str) -> bool:
    found = find(listed(tree), kind)
    return found is not None and found.get("status") == "True"


def made(kind: str, status: str, reason: str, message: str) -> Tree:
    """Without the times, which `put` knows."""
    return {"type": kind, "status": status, "reason": reason, "message": message}


def put(conditions: Sequence[Tree], condition: Tree, now: datetime, *stamps: str) -> Conditions:
    """The list with this condition in it; `lastTransitionTime` moves with the status, `stamps` whenever it differs."""
    old = find(conditions, condition["type"])
    if old is not None and all(old.get(key) == value for key, value in condition.items()):
        return list(conditions)
    written = moments.written(now)
    stays = old is not None and old.get("status") == condition["status"]
    times = dict.fromkeys(stamps, written)
    times["lastTransitionTime"] = (old or {}).get("lastTransitionTime", written) if stays else written
    new = condition | times
    return [new if each is old else each for each in conditions] + ([] if old is not None else [new])


def without(conditions: Sequence[Tree], kind: str) -> Conditions:
    return [each for each in conditions if each.get("type") != kind]
