"""Makes the objects of a cluster what a rendered set says: plans, checks, applies, prunes.

    plan = await plan_for(server, installation, wanted, options)      # reads only; Refused where it cannot be done
    expected = await preview(server, plan)                            # what would change, by a dry run of the server
    await check(server, plan, expected)                               # Refused where a right is lacking
    changes = await perform(server, plan, expected, say)              # does it

Nothing is written before the plan stands, the server has accepted every object in a dry run and the user's rights are
known to suffice. An object that a dry run leaves as it is is not sent again. Each write is a server-side apply, so a
run that was interrupted is continued by the next one."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct, structs

from numalign.deploy.apply import differences, inventory, objects, ownership, removing, waiting
from numalign.deploy.apply.differences import FieldChange
from numalign.deploy.apply.inventory import Installation, Inventory
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.ownership import Decision
from numalign.deploy.apply.server import AccessQuestion, Server
from numalign.deploy.apply.waiting import Say
from numalign.kube import errors

Action = Literal["created", "configured", "unchanged", "skipped", "pruned", "kept"]

BUILT_IN: Final = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
PRIVILEGED: Final = "privileged"
BINDINGS: Final = frozenset({"ClusterRoleBinding", "RoleBinding"})
DEFINED: Final = 60.0
"""Seconds for a definition to be served."""


class ApplyOptions(Struct, frozen=True, kw_only=True):
    adopt: bool = False
    """Take over objects that another tool made."""
    force_conflicts: bool = False
    """Take over fields that another tool applies."""
    prune: bool = True
    timeout: float = 120.0


class Change(Struct, frozen=True, omit_defaults=True):
    """What became, or would become, of an object. `fields` are those that differ from the live object."""

    action: Action
    object: Ref
    why: str = ""
    fields: tuple[FieldChange, ...] = ()
    settled: bool = False
    """Applying it would change nothing, not even who manages its fields."""


class Refused(Exception):
    """It cannot be done, and nothing was changed. One sentence per object."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class Step(Struct, frozen=True):
    tree: Tree
    live: Tree | None
    decision: Decision

    @property
    def ref(self) -> Ref:
        return objects.ref(self.tree)


class ApplyPlan(Struct, frozen=True):
    installation: Installation
    steps: tuple[Step, ...]
    known: Inventory
    surplus: tuple[Ref, ...]
    """What an earlier run applied and the set no longer has."""
    options: ApplyOptions

    @property
    def refs(self) -> list[Ref]:
        """Our objects after this run."""
        return [step.ref for step in self.steps if step.decision.kind == "apply"]


async def plan_for(
    server: Server, installation: Installation, wanted: Iterable[Tree], options: ApplyOptions
) -> ApplyPlan:
    """What has to be done. BadObject for a set that is none, Refused where an object stands in the way."""
    ordered = objects.checked(with_namespace(installation, wanted, server.manager))
    refs = [objects.ref(tree) for tree in ordered]
    await server.learn(each.api_version for each in refs)
    live = await server.all(refs, server.get)
    steps = [
        Step(tree, found, ownership.decide(tree, found, server.manager, adopt=options.adopt))
        for tree, found in zip(ordered, live, strict=True)
    ]
    problems = [*_unserved(server, ordered), *(_refused(step) for step in steps if step.decision.kind == "refuse")]
    problems += await inventory.shared(server, installation, refs)
    if problems:
        raise Refused(problems)
    known = await inventory.read(server, installation)
    kept = {each.identity for each in refs}
    surplus = [each for each in objects.backwards(known.refs) if each.identity not in kept] if options.prune else []
    return ApplyPlan(installation, tuple(steps), known, tuple(surplus), options)


def with_namespace(installation: Installation, wanted: Iterable[Tree], manager: str) -> list[Tree]:
    """The set with the namespace of the installation, unless every cluster has it. Its mark says that we made it."""
    trees = list(wanted)
    made = [tree for tree in trees if objects.at(tree, "kind") == objects.NAMESPACE]
    if not made and installation.namespace not in BUILT_IN:
        labels = {ownership.ENFORCE: PRIVILEGED} if any(map(_mounts_host, trees)) else {}
        meta = {"name": installation.namespace, "labels": {"app.kubernetes.io/part-of": "numalign", **labels}}
        trees.insert(0, {"apiVersion": "v1", "kind": objects.NAMESPACE, "metadata": meta})
    return [_marked(tree, manager) if objects.at(tree, "kind") == objects.NAMESPACE else tree for tree in trees]


def _marked(tree: Tree, manager: str) -> Tree:
    meta = tree.get("metadata") or {}
    return tree | {"metadata": meta | {"annotations": (meta.get("annotations") or {}) | {ownership.CREATED: manager}}}


def _mounts_host(tree: Tree) -> bool:
    volumes = objects.at(tree, "spec", "template", "spec", "volumes") or ()
    return any("hostPath" in each for each in volumes)


def _unserved(server: Server, ordered: Sequence[Tree]) -> list[str]:
    defined = {
        (objects.at(tree, "spec", "group"), objects.at(tree, "spec", "names", "kind"))
        for tree in ordered
        if tree["kind"] == objects.CRD
    }
    missing = [objects.ref(tree) for tree in ordered if server.kind(objects.ref(tree)) is None]
    return [
        f"{each}: the cluster does not serve {each.kind} of {each.api_version}; install its definition or leave it out"
        for each in missing
        if (each.group, each.kind) not in defined
    ]


def _refused(step: Step) -> str:
    return f"{step.ref}: {step.decision.why}"


async def check(server: Server, plan: ApplyPlan, expected: Sequence[Change] = ()) -> None:
    """Refused where the user lacks a right that this plan needs; `expected` tells what needs none."""
    settled = {change.object for change in expected if change.settled}
    steps = [step for step in plan.steps if step.decision.kind == "apply" and step.ref not in settled]
    if not steps and not plan.surplus and plan.known.live is not None:
        return
    needed = dict.fromkeys([*_rights(server, steps, plan.surplus), *inventory.rights(plan.installation)])
    allowed = await server.all(needed, server.may)
    lacking = [right for right, is_allowed in zip(needed, allowed, strict=True) if not is_allowed]
    if lacking:
        raise Refused([f"you may not {right}; ask an administrator for it" for right in lacking])


def _rights(server: Server, steps: Iterable[Step], surplus: Iterable[Ref]) -> list[AccessQuestion]:
    found = []
    for step in steps:
        verbs = ("get", "patch", "create") if step.live is None else ("get", "patch")
        found += [_right(server, step.ref, verb) for verb in verbs]
    return found + [_right(server, each, verb) for each in surplus for verb in ("get", "delete")]


def _right(server: Server, which: Ref, verb: str) -> AccessQuestion:
    target = server.target(which)
    return AccessQuestion(verb, target.resource.group, target.resource.plural, target.namespace)


async def preview(server: Server, plan: ApplyPlan, *, by_server: bool = True) -> list[Change]:
    """What would change. `by_server`: by a dry run, which also validates; else by comparing what is written. Refused
    names every object that the server would not accept, and every right that is lacking."""

    async def attempt(step: Step) -> Change | errors.Refusal | Disputed:
        try:
            return await _previewed(server, step, plan, by_server=by_server)
        except (errors.Refusal, Disputed) as problem:
            return problem

    found = await server.all(plan.steps, attempt)
    changes = [each for each in found if isinstance(each, Change)]
    if len(changes) < len(found):
        if any(isinstance(each, errors.Forbidden) for each in found):
            await check(server, plan)
        tried = zip(plan.steps, found, strict=True)
        raise Refused([_sentence(step.ref, each) for step, each in tried if not isinstance(each, Change)])
    surplus = await server.all(plan.surplus, server.get)
    for which, tree in zip(plan.surplus, surplus, strict=True):
        if tree is not None:
            why = removing.why_kept(which, tree, server.manager)
            changes.append(Change("kept" if why else "pruned", which, why))
    return changes


async def _previewed(server: Server, step: Step, plan: ApplyPlan, *, by_server: bool) -> Change:
    if step.decision.kind == "skip":
        return Change("skipped", step.ref, step.decision.why)
    if step.live is None:
        if by_server and _can_be_tried(server, step, plan):
            await server.apply(step.tree, dry_run=True)
        return Change("created", step.ref)
    if not by_server:
        same = differences.is_within(differences.clean(step.tree), differences.clean(step.live))
        return Change("unchanged" if same else "configured", step.ref, step.decision.why)
    after = await _applied(server, step, plan.options, dry_run=True)
    return _change(step, after)


def _can_be_tried(server: Server, step: Step, plan: ApplyPlan) -> bool:
    """A dry run fails where the namespace, the definition or the role it refers to is yet to be created."""
    absent = {each.ref.name for each in plan.steps if each.ref.kind == objects.NAMESPACE and each.live is None}
    is_placed = step.ref.namespace not in absent and server.kind(step.ref) is not None
    return is_placed and step.ref.kind not in BINDINGS


def _change(step: Step, after: Tree) -> Change:
    if step.live is None:
        return Change("created", step.ref)
    found = differences.between(step.live, after)
    # Where only the managers of fields changed, the object is as it was.
    action: Action = "configured" if found else "unchanged"
    settled = not found and ownership.entries(step.live) == ownership.entries(after)
    return Change(action, step.ref, step.decision.why, tuple(found), settled)


class Disputed(Exception):
    """Another tool applies a field of the object."""


async def _applied(server: Server, step: Step, options: ApplyOptions, *, dry_run: bool = False) -> Tree:
    force = step.decision.force or options.force_conflicts
    try:
        return await server.apply(step.tree, force=force, dry_run=dry_run)
    except errors.Conflict as problem:
        found = ownership.disputes(problem.status.details.causes)
        if not found:
            raise
        why = ownership.disputed(found)
        if why:
            raise Disputed(why) from None
    return await server.apply(step.tree, force=True, dry_run=dry_run)


def _sentence(which: Ref, problem: Exception) -> str:
    if isinstance(problem, errors.Invalid) and "immutable" in problem.status.message:
        return f"{which}: {problem}; remove the installation and apply it again"
    if isinstance(problem, errors.Refusal):
        return str(problem)
    return f"{which}: {problem}"


class Stopped(Exception):
    """The run ended before its end. `changes` are done and stay; the next run continues."""

    def __init__(self, why: str, changes: Sequence[Change]) -> None:
        super().__init__(why)
        self.changes = tuple(changes)


async def perform(server: Server, plan: ApplyPlan, expected: Sequence[Change], say: Say) -> list[Change]:
    """Does it, and says one line per object. Raises Stopped, TimedOut where something pruned does not go away."""
    done: list[Change] = []
    settled = {change.object: change for change in expected if change.settled}
    try:
        return await _performed(server, plan, settled, done, say)
    except (errors.KubeError, Disputed, inventory.Busy) as problem:
        raise Stopped(f"{problem}; run the command again to continue", done) from None


async def _performed(
    server: Server, plan: ApplyPlan, settled: Mapping[Ref, Change], done: list[Change], say: Say
) -> list[Change]:
    def tell(change: Change) -> None:
        done.append(change)
        say(line(change))

    rooms = [step for step in plan.steps if step.ref.kind == objects.NAMESPACE]
    others = [step for step in plan.steps if step.ref.kind != objects.NAMESPACE]
    for step in rooms:
        tell(settled.get(step.ref) or await _put(server, step, plan.options))
    known = await inventory.write(server, plan.installation, plan.known, [*plan.known.refs, *plan.refs])
    for step in others:
        tell(settled.get(step.ref) or await _put(server, step, plan.options))
        if step.ref.kind == objects.CRD:
            await _defined(server, step, say)
    left = []
    for change, remains in await removing.pruned(server, plan.surplus, plan.options.timeout):
        tell(Change("kept" if remains else "pruned", change, remains))
        left += [change] if remains == removing.STILL_THERE else []
    await inventory.write(server, plan.installation, known, [*plan.refs, *left])
    if left:
        raise waiting.TimedOut([waiting.Standing(str(each), ready=False, words=removing.STILL_THERE) for each in left])
    return done


async def _put(server: Server, step: Step, options: ApplyOptions) -> Change:
    if step.decision.kind == "skip":
        return Change("skipped", step.ref, step.decision.why)
    return _change(step, await _applied(server, step, options))


async def _defined(server: Server, step: Step, say: Say) -> None:
    await waiting.ready(server, [step.ref], DEFINED, say, with_reports=False)
    group = objects.at(step.tree, "spec", "group")
    for version in ownership.served(step.tree):
        server.forget(f"{group}/{version}")
    await server.learn(f"{group}/{version}" for version in ownership.served(step.tree))


def line(change: Change) -> str:
    """As kubectl: the object and what became of it."""
    return f"{change.object}: {change.action}" + (f" ({change.why})" if change.why else "")


def is_different(changes: Iterable[Change]) -> bool:
    return any(change.action in ("created", "configured", "pruned") for change in changes)


def summary(changes: Sequence[Change]) -> dict[str, int]:
    """How many objects of each fate; fates that did not happen are left out."""
    actions = [change.action for change in changes]
    return {action: actions.count(action) for action in dict.fromkeys(sorted(actions))}


def without_values(change: Change) -> Change:
    """The change without values of Secrets, which belong in no output."""
    if change.object.kind != "Secret":
        return change
    hidden = tuple(structs.replace(each, old=None, new=None) for each in change.fields)
    return structs.replace(change, fields=hidden)
