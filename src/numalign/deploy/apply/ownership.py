"""Whose an object is, and what follows for it: applied, taken over, left alone or refused.

The API server records in `managedFields` who applied an object; an object with an entry of the deployer is ours.
`applying` asks `decide` for every object before it writes anything. A CustomResourceDefinition is shared by all
publishers and readers of reports, so a foreign or newer one is used as it is.

Two tools that apply the same field would undo each other forever: `disputed` names such fields, and the deployer does
not take them. A field that was edited by hand is drift and is put back."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from msgspec import Struct

from numalign.deploy.apply import objects
from numalign.deploy.apply.objects import Tree
from numalign.kube.resources import Cause

APPLY: Final = "Apply"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
VERSION_LABEL: Final = "app.kubernetes.io/version"
HELM_RELEASE: Final = "meta.helm.sh/release-name"
CREATED: Final = "numalign.io/created-by"
"""On a namespace that the deployer created, and may therefore delete."""
ENFORCE: Final = "pod-security.kubernetes.io/enforce"
CONFLICT: Final = "FieldManagerConflict"
MANAGER: Final = re.compile(r'conflict with "((?:[^"\\]|\\.)*)"(?: with subresource "[^"]*")?(?P<updated> using )?')


class Decision(Struct, frozen=True):
    """`force`: take all fields from their managers. `why` is for people."""

    kind: Literal["apply", "skip", "refuse"]
    force: bool = False
    why: str = ""


def managers(tree: Tree, operation: str = APPLY) -> list[str]:
    entries = objects.at(tree, "metadata", "managedFields") or ()
    return [each.get("manager", "") for each in entries if each.get("operation") == operation]


def entries(tree: Tree) -> list[Tree]:
    """Who manages which fields, without the times."""
    listed = objects.at(tree, "metadata", "managedFields") or ()
    return [{key: value for key, value in each.items() if key != "time"} for each in listed]


def is_ours(tree: Tree, manager: str) -> bool:
    return manager in managers(tree)


def owner(tree: Tree) -> str:
    """Who made it, as far as the object tells."""
    meta = tree.get("metadata") or {}
    release = (meta.get("annotations") or {}).get(HELM_RELEASE)
    if release:
        return f"the Helm release {release}"
    by = [name for name in (*managers(tree), *managers(tree, "Update")) if name]
    labelled = (meta.get("labels") or {}).get(MANAGED_BY)
    return by[0] if by else labelled or "another manager"


def decide(wanted: Tree, live: Tree | None, manager: str, *, adopt: bool) -> Decision:
    if live is None:
        return Decision("apply")
    kind = wanted["kind"]
    if objects.at(live, "metadata", "deletionTimestamp"):
        return Decision("refuse", why="is being deleted; wait until it is gone and run the command again")
    if kind == objects.CRD:
        return _definition(wanted, live, manager, adopt=adopt)
    if kind == objects.NAMESPACE:
        return _namespace(wanted, live, manager)
    if is_ours(live, manager):
        return Decision("apply")
    if adopt:
        return Decision("apply", force=True, why=f"taken over from {owner(live)}")
    return Decision("refuse", why=f"exists already and belongs to {owner(live)}; give --adopt to take it over")


def _namespace(wanted: Tree, live: Tree, manager: str) -> Decision:
    """The mark tells our namespaces from those that were there: these are neither changed nor deleted."""
    if objects.at(live, "metadata", "annotations", CREATED) == manager:
        return Decision("apply")
    needed, level = (objects.at(tree, "metadata", "labels", ENFORCE) for tree in (wanted, live))
    why = "exists already and is used as it is"
    if needed and level not in (None, needed):
        why += f"; it enforces the pod security level {level}, which refuses pods that mount folders of the host"
    return Decision("skip", why=why)


def _definition(wanted: Tree, live: Tree, manager: str, *, adopt: bool) -> Decision:
    if adopt:
        return Decision("apply", force=True)
    missing = sorted(served(wanted) - served(live))
    if not is_ours(live, manager):
        whose = f"belongs to {owner(live)}"
        if missing:
            return Decision(
                "refuse", why=f"{whose} and does not serve {', '.join(missing)}; give --adopt to replace it"
            )
        return Decision("skip", why=f"{whose} and is used as it is; --adopt takes it over")
    newer = sorted(served(live) - served(wanted))
    if newer:
        return Decision("skip", why=f"is newer: it serves {', '.join(newer)}, too; --adopt replaces it")
    if _version(live) > _version(wanted):
        text = objects.at(live, "metadata", "labels", VERSION_LABEL)
        return Decision("skip", why=f"is newer: numalign {text} installed it; --adopt replaces it")
    return Decision("apply")


def served(definition: Tree) -> set[str]:
    versions = objects.at(definition, "spec", "versions") or ()
    return {each["name"] for each in versions if each.get("served")}


def _version(tree: Tree) -> tuple[int, ...]:
    text = objects.at(tree, "metadata", "labels", VERSION_LABEL) or ""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", text.partition("+")[0])[:3])


class Dispute(Struct, frozen=True):
    """A field that another manager owns with another value. `by_hand`: by an update, not by an apply."""

    field: str
    manager: str
    by_hand: bool


def disputes(causes: Iterable[Cause]) -> list[Dispute]:
    found = []
    for cause in causes:
        if cause.reason == CONFLICT and (match := MANAGER.match(cause.message)):
            found.append(Dispute(cause.field.lstrip("."), match[1], match["updated"] is not None))
    return found


def disputed(found: Sequence[Dispute]) -> str:
    """What keeps us from taking these fields; empty where all of them are drift."""
    declared = [each for each in found if not each.by_hand]
    if not declared:
        return ""
    names = sorted({each.manager for each in declared})
    listed = ", ".join(dict.fromkeys(each.field for each in declared))
    return (
        f"{' and '.join(names)} also applies {listed}, with another value; "
        "let one of the two tools own it, or give --force-conflicts"
    )
