"""What roles and their bindings must keep to. They are stored and shown; nobody is refused anything by them."""

from collections.abc import Iterator
from typing import Final

from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.apiserver.storage.resources import RBAC
from numalign.simulator.apiserver.validation import rules
from numalign.simulator.trees import Tree

SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    for index, rule in enumerate(tree.get("rules") or ()):
        here = f"rules[{index}]"
        if not rule.get("nonResourceURLs"):
            if not rule.get("apiGroups"):
                yield rules.required(f"{here}.apiGroups", "resource rules must supply at least one api group")
            if not rule.get("resources"):
                yield rules.required(f"{here}.resources", "resource rules must supply at least one resource")
        if not rule.get("verbs"):
            yield rules.required(f"{here}.verbs")


def role_binding(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    yield from _binding(tree, old, ("Role", "ClusterRole"))


def cluster_role_binding(tree: Tree, old: Tree | None) -> Iterator[Cause]:
    yield from _binding(tree, old, ("ClusterRole",))


def _binding(tree: Tree, old: Tree | None, kinds: tuple[str, ...]) -> Iterator[Cause]:
    role = tree.get("roleRef") or {}
    if role.get("apiGroup") != RBAC:
        yield rules.unsupported("roleRef.apiGroup", role.get("apiGroup", ""), (RBAC,))
    if role.get("kind") not in kinds:
        yield rules.unsupported("roleRef.kind", role.get("kind", ""), kinds)
    if not role.get("name"):
        yield rules.required("roleRef.name")
    for index, subject in enumerate(tree.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{index}]")
    if old is not None:
        shown = {"APIGroup": role.get("apiGroup"), "Kind": role.get("kind"), "Name": role.get("name")}
        yield from rules.unchanged("roleRef", role, old.get("roleRef"), shown=shown)


def _subject(subject: Tree, path: str) -> Iterator[Cause]:
    kind = subject.get("kind", "")
    if kind not in SUBJECTS:
        yield rules.unsupported(f"{path}.kind", kind, SUBJECTS)
    if not subject.get("name"):
        yield rules.required(f"{path}.name")
    if kind == "ServiceAccount" and not subject.get("namespace"):
        yield rules.required(f"{path}.namespace")
