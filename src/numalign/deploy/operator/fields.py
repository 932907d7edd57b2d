"""Compares a wanted object with the one in the cluster: what to apply, and which fields of others to remove. Pure.

`plan` asks `difference` for every object. Server-side apply leaves fields alone that another manager added. In the
content of our objects there is no room for others: a container or a capability that was added to an agent must go. The
managed fields tell what the server filled in (no manager owns it) from what was added (its manager does).

Metadata and status belong to many, so additions there stay; and so does the annotation of `kubectl rollout restart`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.deploy.apply import differences
from numalign.deploy.apply.ownership import APPLY
from numalign.deploy.operator.objects import Live, Tree

Path = tuple[str, ...]

MANAGER: Final = "numalign-operator"
NOT_CONTENT: Final = ("f:metadata", "f:status")
RESTART: Final = ("f:spec", "f:template", "f:metadata", "f:annotations", "f:kubectl.kubernetes.io/restartedAt")
# Controllers of some distributions add the Secrets of an account to it.
LEFT_TO_OTHERS: Final[tuple[Path, ...]] = (("f:secrets",), ("f:imagePullSecrets",), RESTART)


class Difference(Struct, frozen=True):
    apply: bool = False
    """Whether the object has to be applied."""
    strangers: tuple[Path, ...] = ()
    """Fields in the content that others added."""

    def __bool__(self) -> bool:
        return self.apply or bool(self.strangers)


def difference(wanted: Tree, live: Live) -> Difference:
    applied = [
        each.fields_v1 or {}
        for each in live.metadata.managed_fields
        if each.manager == MANAGER and each.operation == APPLY and not each.subresource
    ]
    stale = not applied or any(any(absent(each, wanted)) for each in applied)
    content = {key: value for key, value in wanted.items() if key not in ("apiVersion", "kind")}
    # Compared without the server's defaults, which no manager owns.
    return Difference(stale or not differences.is_within(content, live.tree()), tuple(_strangers(wanted, live)))


def _strangers(wanted: Tree, live: Live) -> Iterator[Path]:
    for each in live.metadata.managed_fields:
        if each.subresource or (each.manager == MANAGER and each.operation == APPLY):
            continue
        content = {step: below for step, below in (each.fields_v1 or {}).items() if step not in NOT_CONTENT}
        for path in LEFT_TO_OTHERS:
            content = _without(content, path)
        yield from absent(content, wanted)


def _without(owned: Tree, path: Path) -> Tree:
    """The fields without this one, and without parents that have no other."""
    step, *rest = path
    if step not in owned:
        return owned
    others = {key: below for key, below in owned.items() if key != step}
    below = _without(owned[step], tuple(rest)) if rest else {}
    return others | ({step: below} if set(below) - {"."} else {})


def absent(fields: Tree, tree: Any, path: Path = ()) -> Iterator[Path]:
    """The shortest paths of the fields that the tree does not have."""
    for step, below in fields.items():
        if step == ".":
            continue
        place = (*path, step)
        found = stepped(tree, step)
        if found is None:
            yield place
        else:
            yield from absent(below, found[1], place)


def stepped(tree: Any, step: str) -> tuple[str | int, Any] | None:
    """The key and the value that a step of managed fields leads to; None: there is none."""
    sort, _, text = step.partition(":")
    if sort == "f":
        return (text, tree[text]) if isinstance(tree, dict) and text in tree else None
    if not isinstance(tree, list):
        return None
    for place, item in enumerate(tree):
        if sort == "k" and isinstance(item, dict) and _has_keys(item, json.loads(text)):
            return place, item
        if sort == "v" and item == json.loads(text):
            return place, item
    return None


def _has_keys(item: Tree, keys: Tree) -> bool:
    # A key that the manifest leaves out has a default, such as the protocol of a port.
    return all(item.get(key, value) == value for key, value in keys.items())


def removal(strangers: Sequence[Path], live: Live) -> list[Tree]:
    """A JSON patch that takes these fields away, if the object is still the one that was looked at."""
    tree = live.tree()
    places = sorted({tuple(place) for path in strangers if (place := _places(tree, path))}, key=_order, reverse=True)
    check = {"op": "test", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version}
    return [check, *({"op": "remove", "path": _pointer(place)} for place in places)] if places else []


def _places(tree: Any, path: Path) -> list[str | int]:
    places = list[str | int]()
    for step in path:
        found = stepped(tree, step)
        if found is None:
            return []
        places.append(found[0])
        tree = found[1]
    return places


def _order(place: tuple[str | int, ...]) -> list[tuple[int, int, str]]:
    """Later items of a list first, so that the numbers of earlier ones stay true."""
    return [(0, step, "") if isinstance(step, int) else (1, 0, step) for step in place]


def _pointer(place: tuple[str | int, ...]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in place)


def digest(tree: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(tree, order="deterministic")).hexdigest()


def content(live: Live) -> Tree:
    """What counts for a comparison: no versions, no times, no status."""
    tree = live.tree()
    kept = {
        key: value for key, value in tree["metadata"].items() if key in ("labels", "annotations", "ownerReferences")
    }
    return {key: value for key, value in tree.items() if key not in ("metadata", "status")} | {"metadata": kept}
