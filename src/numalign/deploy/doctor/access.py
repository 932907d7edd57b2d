"""Whether the accounts of our programs have the rights that these need, by the RBAC objects of the cluster.

`rights` says what is needed, the account is the one of the program's pods. Rights that another authorizer than RBAC
grants are not seen. A right to the holder's own objects counts as granted by any names: each account has its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.deploy import rights
from numalign.deploy.doctor import programs
from numalign.deploy.doctor.checks import ERROR, Check, Sighting
from numalign.deploy.doctor.observed import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ROLE_BINDINGS,
    ROLES,
    Observed,
    Role,
    RoleBinding,
    Rule,
    Subject,
)
from numalign.deploy.doctor.programs import Program
from numalign.deploy.doctor.repairs import Grant
from numalign.deploy.doctor.view import View
from numalign.deploy.rights import Holder, Right
from numalign.kube.resources import Resource

EVERY: Final = "*"
KINDS: Final[dict[str, Resource[Any]]] = {
    each.kind: each for each in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, ROLES, ROLE_BINDINGS)
}


class Granted(msgspec.Struct, frozen=True):
    """The rules of one account: in all namespaces, and in one of them."""

    everywhere: tuple[Rule, ...] = ()
    within: dict[str, tuple[Rule, ...]] = msgspec.field(default_factory=dict)

    def allows(self, right: Right, resource: str, verb: str) -> bool:
        rules = (*self.everywhere, *self.within.get(right.namespace, ()))
        return any(_covers(rule, right, resource, verb) for rule in rules)


def _covers(rule: Rule, right: Right, resource: str, verb: str) -> bool:
    part = resource.partition("/")[2]
    return (
        _has(rule.api_groups, right.group)
        and (_has(rule.resources, resource) or (bool(part) and f"{EVERY}/{part}" in rule.resources))
        and _has(rule.verbs, verb)
        and (not rule.resource_names or right.own or (bool(right.names) and {*right.names} <= {*rule.resource_names}))
    )


def _has(listed: tuple[str, ...], wanted: str) -> bool:
    return wanted in listed or EVERY in listed


def granted(observed: Observed, account: Holder) -> Granted:
    cluster = {each.metadata.name: each.rules or () for each in observed.cluster_roles}
    local = {each.metadata.full_name: each.rules or () for each in observed.roles}
    everywhere = tuple(
        rule
        for binding in observed.cluster_role_bindings
        if _binds(binding, account)
        for rule in cluster.get(binding.role_ref.name, ())
    )
    within: dict[str, tuple[Rule, ...]] = {}
    for binding in observed.role_bindings:
        if _binds(binding, account):
            space, name = binding.metadata.namespace, binding.role_ref.name
            of_cluster = binding.role_ref.kind == CLUSTER_ROLES.kind
            rules = cluster.get(name, ()) if of_cluster else local.get(f"{space}/{name}", ())
            within[space] = (*within.get(space, ()), *rules)
    return Granted(everywhere, within)


def _binds(binding: RoleBinding, account: Holder) -> bool:
    return any(_is(subject, account, binding.metadata.namespace) for subject in binding.subjects or ())


def _is(subject: Subject, account: Holder, namespace: str) -> bool:
    match subject.kind:
        case "ServiceAccount":
            return (subject.name, subject.namespace or namespace) == (account.name, account.namespace)
        case "User":
            return subject.name == f"system:serviceaccount:{account.namespace}:{account.name}"
        case "Group":
            groups = ("system:serviceaccounts", f"system:serviceaccounts:{account.namespace}", "system:authenticated")
            return subject.name in groups
    return False


def needed(program: Program, observed: Observed) -> tuple[Right, ...]:
    """The rights that the program needs with its options and its configuration."""
    if program.component == "agent":
        return tuple(each for each in rights.AGENT if not each.option or each.option in program.words)
    if program.component == "extender":
        return tuple(each for each in rights.EXTENDER if not each.option)
    namespace, lease = programs.serving(program, observed).lease
    table = [each for each in rights.SCHEDULER if not each.option]
    if CONFIG_MAPS.plural in observed.unread:
        # Which Lease it uses is not known.
        return tuple(each for each in table if each.group != rights.LEASES)
    return tuple(_of_lease(each, namespace, lease) if each.group == rights.LEASES else each for each in table)


def _of_lease(right: Right, namespace: str, lease: str) -> Right:
    return structs.replace(right, namespace=namespace, names=(lease,) if right.names else ())


def _short(view: View) -> Iterator[Sighting]:
    observed = view.observed
    for program in programs.found(observed):
        if program.product != "numalign":
            continue
        account = _account(program)
        table, held = needed(program, observed), granted(observed, account)
        short = [each for each in table if _lacks(held, each)]
        for right, repair in zip(short, _repairs(observed, account, table, short), strict=True):
            yield Sighting(
                where=f"ServiceAccount {account.namespace}/{account.name} of {program.title}",
                seen=f"may not {_words(held, right)}",
                repair=repair,
            )


def _account(program: Program) -> Holder:
    name = program.workload.spec.template.spec.service_account_name or "default"
    return Holder("ServiceAccount", name, program.workload.metadata.namespace)


def _lacks(held: Granted, right: Right) -> list[tuple[str, str]]:
    """Resource and verb."""
    return [(each, verb) for each in right.resources for verb in right.verbs if not held.allows(right, each, verb)]


def _words(held: Granted, right: Right) -> str:
    lacking = _lacks(held, right)
    verbs = " and ".join(dict.fromkeys(verb for _, verb in lacking))
    kinds = ", ".join(dict.fromkeys(f"{each}.{right.group}".rstrip(".") for each, _ in lacking))
    place = f" in {right.namespace}" if right.namespace else ""
    return f"{verbs} {kinds}{place}"


def _repairs(
    observed: Observed, account: Holder, table: Iterable[Right], short: Iterable[Right]
) -> Iterator[Grant | None]:
    """For each right, the role that grants all rights of its namespace; a role is written once, for the first.

    The binding is written with its role, as part of the first right's repair where the role itself is complete."""
    written: set[str] = set()
    for right in short:
        if right.namespace in written:
            yield None
            continue
        written.add(right.namespace)
        wanted = [each for each in table if each.namespace == right.namespace]
        yield _grant(observed, account, wanted)


def _grant(observed: Observed, account: Holder, wanted: Iterable[Right]) -> Grant:
    role, binding = rights.roles(account, wanted)
    listed: tuple[Role, ...] = observed.cluster_roles if role["kind"] == CLUSTER_ROLES.kind else observed.roles
    namespace = role["metadata"].get("namespace", "")
    live = next((each for each in listed if each.metadata.full_name == f"{namespace}/{account.name}".lstrip("/")), None)
    before = None if live is None else [msgspec.to_builtins(each) for each in live.rules or ()]
    # Rules that were added to the role stay.
    kept = [each for each in before or () if each not in role["rules"]]
    after = role | {"rules": [*role["rules"], *kept]}
    return Grant(
        target=KINDS[role["kind"]].at(account.name, namespace),
        wanted=after,
        before=None if before is None else {"rules": before},
        after={"rules": after["rules"], "subjects": binding["subjects"]},
        binding=KINDS[binding["kind"]].at(account.name, namespace),
        bound=binding,
    )


CHECKS: Final = (
    Check(
        id="rbac-short",
        severity=ERROR,
        title="A program lacks rights at the API server",
        why="An agent without them publishes nothing; a scheduler sees only part of the cluster or cannot bind.",
        fix="apply the roles of this release (--fix, or examples/rbac.yaml)",
        needs=(
            DAEMON_SETS.plural,
            DEPLOYMENTS.plural,
            CLUSTER_ROLES.plural,
            CLUSTER_ROLE_BINDINGS.plural,
            ROLES.plural,
            ROLE_BINDINGS.plural,
        ),
        find=_short,
    ),
)
