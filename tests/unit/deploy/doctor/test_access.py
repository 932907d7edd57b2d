"""What RBAC objects grant to an account: wildcards, names, namespaces, and the ways to name a subject."""

from __future__ import annotations

import pytest

from numalign.api.objects.meta import ObjectMeta
from numalign.deploy.doctor import access
from numalign.deploy.doctor.observed import Observed, Role, RoleBinding, RoleRef, Rule, Subject
from numalign.deploy.rights import Holder, Right

ACCOUNT = Holder("ServiceAccount", "agent", "home")
OURS = Subject("ServiceAccount", "agent", "home")
PODS = Right("", ("pods",), ("list",))


def rule(groups: str = "", resources: str = "pods", verbs: str = "list", names: tuple[str, ...] = ()) -> Rule:
    return Rule((groups,), (resources,), (verbs,), names)


def everywhere(*rules: Rule, subject: Subject = OURS) -> Observed:
    meta = ObjectMeta(name="r")
    bound = RoleBinding(meta, RoleRef("ClusterRole", "r"), (subject,))
    return Observed(cluster_roles=(Role(meta, rules),), cluster_role_bindings=(bound,))


def allowed(observed: Observed, right: Right = PODS) -> bool:
    return access.granted(observed, ACCOUNT).allows(right, right.resources[0], right.verbs[0])


@pytest.mark.parametrize(
    "granted, is_enough",
    [
        (rule(), True),
        (rule("*", "*", "*"), True),
        (rule("apps"), False),
        (rule(resources="nodes"), False),
        (rule(verbs="get"), False),
        (rule(names=("one",)), False),
    ],
)
def test_a_rule_covers_group_resource_verb_and_all_names(granted: Rule, is_enough: bool) -> None:
    assert allowed(everywhere(granted)) is is_enough


@pytest.mark.parametrize(
    "subject, is_meant",
    [
        (OURS, True),
        (Subject("ServiceAccount", "agent", "elsewhere"), False),
        (Subject("ServiceAccount", "agent", ""), False),
        (Subject("User", "system:serviceaccount:home:agent"), True),
        (Subject("Group", "system:serviceaccounts"), True),
        (Subject("Group", "system:serviceaccounts:home"), True),
        (Subject("Group", "system:serviceaccounts:elsewhere"), False),
        (Subject("Group", "system:authenticated"), True),
        (Subject("", ""), False),
    ],
)
def test_an_account_is_meant_by_its_name_or_its_groups(subject: Subject, is_meant: bool) -> None:
    assert allowed(everywhere(rule(), subject=subject)) is is_meant


def test_a_right_to_named_objects_needs_these_names() -> None:
    lease = Right("", ("pods",), ("list",), names=("ours",))
    assert allowed(everywhere(rule(names=("ours", "other"))), lease)
    assert not allowed(everywhere(rule(names=("other",))), lease)
    assert allowed(everywhere(rule()), lease)


def test_a_right_to_own_objects_is_granted_by_any_names() -> None:
    assert allowed(everywhere(rule(names=("n0",))), Right("", ("pods",), ("list",), own=True))


def test_a_subresource_is_covered_by_its_wildcard() -> None:
    status = Right("", ("pods/status",), ("list",))
    assert allowed(everywhere(rule(resources="*/status")), status)
    assert not allowed(everywhere(rule(resources="pods")), status)


@pytest.mark.parametrize("kind", ["ClusterRole", "Role"])
def test_a_binding_in_a_namespace_grants_there_alone(kind: str) -> None:
    local, cluster = ObjectMeta(name="r", namespace="here"), ObjectMeta(name="r")
    roles = {"roles": (Role(local, (rule(),)),)} if kind == "Role" else {"cluster_roles": (Role(cluster, (rule(),)),)}
    observed = Observed(role_bindings=(RoleBinding(local, RoleRef(kind, "r"), (OURS,)),), **roles)  # type: ignore[arg-type]
    assert allowed(observed, Right("", ("pods",), ("list",), namespace="here"))
    assert not allowed(observed, Right("", ("pods",), ("list",), namespace="there"))
    assert not allowed(observed)


def test_a_binding_to_a_role_that_does_not_exist_grants_nothing() -> None:
    bound = RoleBinding(ObjectMeta(name="r"), RoleRef("ClusterRole", "r"), (OURS,))
    assert not allowed(Observed(cluster_role_bindings=(bound,)))


def test_null_rules_and_subjects_grant_nothing() -> None:
    meta = ObjectMeta(name="r")
    bound = RoleBinding(meta, RoleRef("ClusterRole", "r"), None)
    assert not allowed(Observed(cluster_roles=(Role(meta, None),), cluster_role_bindings=(bound,)))
