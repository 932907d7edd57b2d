"""What one reconciliation decides: objects to write and to delete, and the state of the custom resource. Pure.

`agents` and `schedulers` make plans, `controller` performs them. `compared` is the part that both share: wanted objects
against those in the cluster. A plan for a cluster that is as it should be is empty."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct, field, structs

from numalign.api import errors
from numalign.api.objects import statusconditions
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.statusconditions import Condition
from numalign.deploy import model
from numalign.deploy.apply import ownership, readiness
from numalign.deploy.apply.ownership import Decision
from numalign.deploy.apply.readiness import Readiness
from numalign.deploy.model import Image, Values
from numalign.deploy.objects.common import Context
from numalign.deploy.operator import conditions, fields, kinds, objects
from numalign.deploy.operator.conditions import Extra, Outcome
from numalign.deploy.operator.kinds import Custom, Status
from numalign.deploy.operator.objects import Key, Live, Node, Tree
from numalign.deploy.release import NODE_IN_TOKENS, Release

PATIENCE: Final = 600.0
"""Seconds that a rollout may take, or pods may be unready, before the custom resource is Degraded."""
GLANCE: Final = 10.0
"""Seconds between two looks at pods that are not ready."""
WORKLOADS: Final = ("Deployment", "DaemonSet")


class PlanOptions(Struct, frozen=True, kw_only=True):
    """How this operator works: what no custom resource says."""

    release: Release
    """Its namespace is that of the operands, its manager the label of all objects."""
    values: Values
    """Everything that the custom resources do not set."""
    image_policy: str = "any"
    trusted: frozenset[str] = frozenset()
    """Digests that the image policy `trusted` accepts."""

    @property
    def namespace(self) -> str:
        return self.release.namespace

    @property
    def fullname(self) -> str:
        return Context(self.values, self.release).fullname


class ObservedCluster(Struct, frozen=True, kw_only=True):
    """The cluster at one moment."""

    objects: Mapping[Key, Live]
    """Objects with the operator's label."""
    nodes: tuple[Node, ...]
    now: datetime
    waiting: Mapping[str, tuple[str, ...]] = {}
    """Pods that wait for a scheduler, by the name of the scheduler; of names that a resource served before."""
    troubles: Mapping[Key, str] = {}
    """Why pods of a workload that is not ready do not become ready."""
    settled: Mapping[Key, tuple[str, str]] = {}
    """What the server made of objects that it does not store as they are applied (a webhook changes them): digests of
    the wanted object and of its answer."""


class FieldRemoval(Struct, frozen=True):
    """Fields of others to take away from an object."""

    key: Key
    patch: list[Tree]


class Deletion(Struct, frozen=True):
    key: Key
    uid: str


class Plan(Struct, frozen=True, kw_only=True):
    outcome: Outcome | None = None
    """None: paused, nothing is said about the operands."""
    extras: tuple[Extra, ...] = ()
    status: Status = field(default_factory=dict)
    """All fields of the status but the conditions."""
    apply: tuple[Tree, ...] = ()
    remove: tuple[FieldRemoval, ...] = ()
    delete: tuple[Deletion, ...] = ()
    forget: tuple[str, ...] = ()
    """Nodes whose reports are to be deleted."""
    again: float | None = None
    """Seconds after which time alone may change the outcome."""


class Owner(Struct, frozen=True):
    kind: str
    meta: ObjectMeta

    def reference(self) -> Tree:
        """A controller reference. Without blockOwnerDeletion, which needs a right to finalizers on some clusters."""
        return {
            "apiVersion": kinds.API_VERSION,
            "kind": self.kind,
            "name": self.meta.name,
            "uid": self.meta.uid,
            "controller": True,
        }

    def adopts(self, tree: Tree) -> Tree:
        # With the definition of the reports all reports would go, so it outlives the custom resource.
        if tree["kind"] == DEFINITION:
            return tree
        return {**tree, "metadata": {**tree["metadata"], "ownerReferences": [self.reference()]}}

    def has(self, live: Live) -> bool:
        owner = live.metadata.controller
        return owner is not None and owner.uid == self.meta.uid

    def had(self, live: Live) -> bool:
        """Whether a deleted object of the same name owned it: the garbage collector will delete it."""
        owner = live.metadata.controller
        return (
            owner is not None and owner.uid != self.meta.uid and (owner.kind, owner.name) == (self.kind, self.meta.name)
        )


class Compared(Struct, frozen=True, kw_only=True):
    apply: tuple[Tree, ...] = ()
    remove: tuple[FieldRemoval, ...] = ()
    delete: tuple[Deletion, ...] = ()
    waits: tuple[str, ...] = ()
    """Objects that are still being deleted."""
    foreign: tuple[str, ...] = ()
    """Sentences about objects that belong to another manager."""


def compared(
    wanted: Iterable[Tree], observed: ObservedCluster, owner: Owner, keep: Callable[[Key], bool] = lambda key: False
) -> Compared:
    """`keep`: objects that are not wanted, and stay nevertheless."""
    apply, remove, waits, foreign = list[Tree](), list[FieldRemoval](), list[str](), list[str]()
    names = set[Key]()
    for tree in map(owner.adopts, wanted):
        key = objects.key_of(tree)
        names.add(key)
        live = observed.objects.get(key)
        if live is None:
            apply.append(tree)
        elif live.metadata.deletion_timestamp or owner.had(live):
            waits.append(str(key))
        elif live.metadata.controller is not None and not owner.has(live):
            foreign.append(belongs(key, live))
        elif key.kind == DEFINITION and (decision := definition(tree, live)).kind != "apply":
            foreign += [f"{key} {decision.why}"] if decision.kind == "refuse" else []
        elif found := fields.difference(tree, live):
            if found.apply and not _is_settled(key, tree, live, observed):
                apply.append(tree)
            if found.strangers and (patch := fields.removal(found.strangers, live)):
                remove.append(FieldRemoval(key, patch))
    gone = [
        Deletion(key, live.metadata.uid)
        for key, live in sorted(observed.objects.items())
        if key not in names and owner.has(live) and not live.metadata.deletion_timestamp and not keep(key)
    ]
    return Compared(
        apply=tuple(apply), remove=tuple(remove), delete=tuple(gone), waits=tuple(sorted(waits)), foreign=tuple(foreign)
    )


def _is_settled(key: Key, wanted: Tree, live: Live, observed: ObservedCluster) -> bool:
    known = observed.settled.get(key)
    return known is not None and known == (fields.digest(wanted), fields.digest(fields.content(live)))


def belongs(key: Key, live: Live) -> str:
    """Who has an object that the operator would need."""
    owner = live.metadata.controller
    whose = f"{owner.kind} {owner.name}" if owner is not None else ownership.owner(live.tree(key.kind))
    return f"{key} belongs to {whose}; delete it, or run the operator in another namespace"


class Foreign(Exception):
    """An object of a wanted name belongs to another manager."""


DEFINITION: Final = "CustomResourceDefinition"
POLICY_KINDS: Final = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")


def kinds_of(options: PlanOptions) -> list[str]:
    """The kinds to watch: all that a release can have on this cluster."""
    served = options.release.at_least(NODE_IN_TOKENS)
    return [kind for kind in objects.KINDS if served or kind not in POLICY_KINDS]


def is_ours(live: Live) -> bool:
    """Whether the operator applied the object before, whatever its labels say now."""
    return ownership.is_ours(live.tree(), fields.MANAGER)


def definition(tree: Tree, live: Live) -> Decision:
    """What to do about a definition that is there: another project's, or a newer one, is used as it is."""
    return ownership.decide(tree, live.tree(DEFINITION), fields.MANAGER, adopt=False)


class Rollout(Struct, frozen=True):
    """A DaemonSet or Deployment: pods that are wanted and ready, and how it is."""

    key: Key
    wanted: int = 0
    ready: int = 0
    state: Readiness = readiness.MISSING
    why: str = ""
    """Where it is not ready and its pods tell."""

    def __str__(self) -> str:
        return "; ".join(filter(None, (f"{self.key}: {self.state.words}", self.why)))


def is_slow(key: Key, live: Live) -> bool:
    """Whether it has pods, and not all of them are ready."""
    return key.kind in WORKLOADS and not readiness.state(live.tree(key.kind)).ready


def rollout(key: Key, observed: ObservedCluster) -> Rollout:
    live = observed.objects.get(key)
    if live is None:
        return Rollout(key)
    tree = live.tree(key.kind)
    status = tree.get("status") or {}
    state = readiness.state(tree)
    why = "" if state.ready else observed.troubles.get(key, "")
    if key.kind == "DaemonSet":
        return Rollout(key, int(status.get("desiredNumberScheduled", 0)), int(status.get("numberReady", 0)), state, why)
    wanted = int((tree.get("spec") or {}).get("replicas", 1))
    return Rollout(key, wanted, int(status.get("readyReplicas", 0)), state, why)


def judged(
    rollouts: Iterable[Rollout],
    found: Compared,
    status: Status,
    reasons: tuple[str, str],
    now: datetime,
    notes: Iterable[str],
) -> tuple[Outcome, float | None]:
    """The state of operands that exist or are being written, and when to look again. `reasons`: of pods that come, and
    of pods that do not. `notes` are added to the message of an Available resource."""
    coming, failing = reasons
    slow = [each for each in rollouts if not each.state.ready]
    if found.foreign:
        return Outcome("Degraded", conditions.INTERNAL_ERROR, "; ".join(found.foreign)), None
    if not slow and not found.apply and not found.waits:
        return Outcome("Available", conditions.AS_EXPECTED, "; ".join(notes)), None
    words = [str(each) for each in slow] + [f"{each} is being deleted" for each in found.waits]
    message = "; ".join(words) or f"writing {listed(found.apply)}"
    old = kinds.conditions(status)
    since = statusconditions.since(old, "Progressing") or (
        "" if not statusconditions.holds(old, "Degraded") else kept_since(old, failing)
    )
    left = PATIENCE - (now - statusconditions.moment(since, now)).total_seconds()
    if slow and (left <= 0 or any(each.state.failed for each in slow)):
        return Outcome("Degraded", failing, "; ".join(words)), None
    # What pods say about their troubles is not watched.
    return Outcome("Progressing", coming, message), min(max(left, 1.0), GLANCE)


def kept_since(old: Iterable[Condition], reason: str) -> str:
    """A resource that is Degraded because its pods do not come stays so until they do."""
    same = any(each.type == "Degraded" and each.status == "True" and each.reason == reason for each in old)
    return "1970-01-01T00:00:00Z" if same else ""


MOST_LISTED: Final = 6


def listed(trees: Iterable[Tree]) -> str:
    names = [str(objects.key_of(tree)) for tree in trees]
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more


def misnamed(custom: Custom, name: str) -> Outcome | None:
    if name == custom.name:
        return None
    return Outcome(
        "Degraded",
        f"Incorrect{custom.kind}ResourceName",
        f"the only name of a {custom.kind} that is obeyed is {custom.name}, not {name}; delete this object",
    )


def is_paused(meta: ObjectMeta) -> bool:
    return meta.annotations.get(kinds.PAUSE) == kinds.ENABLED


def paused(meta: ObjectMeta) -> Extra:
    if is_paused(meta):
        return Extra(conditions.PAUSED, True, "Annotated", f"{kinds.PAUSE}: nothing is written until it is removed")
    return Extra(conditions.PAUSED, False, "NotAnnotated")


REPOSITORY: Final = re.compile(model.REPOSITORY)
TAG: Final = re.compile(model.TAG)
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")


class BadImage(Exception):
    """The image is refused, and why."""


def image(spec: str, usual: Image, options: PlanOptions) -> Image:
    """The image that imageSpec asks for, or the usual one. BadImage where the image policy refuses it."""
    if not spec or options.image_policy == "own":
        return usual
    found = parsed(spec, usual)
    if options.image_policy in ("digest", "trusted") and not found.digest:
        raise BadImage(f"spec.imageSpec: {spec} has no digest, which this operator requires; write IMAGE@sha256:...")
    if options.image_policy == "trusted" and found.digest not in options.trusted:
        raise BadImage(f"spec.imageSpec: the digest of {spec} is not one that this operator trusts")
    return found


def parsed(spec: str, usual: Image) -> Image:
    """The parts of an image reference, as container runtimes read them."""
    rest, _, digest = spec.partition("@")
    head, colon, tag = rest.rpartition(":")
    if not colon or "/" in tag:
        head, tag = rest, ""
    first, slash, others = head.partition("/")
    if not slash:
        registry, repository = "docker.io", f"library/{head}"
    elif "." in first or ":" in first or first == "localhost":
        registry, repository = first, others
    else:
        registry, repository = "docker.io", head
    if not (
        REPOSITORY.fullmatch(repository) and TAG.fullmatch(tag or "latest") and (not digest or DIGEST.fullmatch(digest))
    ):
        raise BadImage(
            f"spec.imageSpec: {errors.echo(spec)} is not an image reference; write REGISTRY/NAME:TAG or NAME@sha256:..."
        )
    return structs.replace(
        usual, registry=registry, repository=repository, tag="" if digest else tag or "latest", digest=digest
    )


def digests(written: str) -> frozenset[str]:
    """Those that the policy `trusted` accepts. BadObject for one that is none: it would never match an image."""
    found = frozenset(filter(None, (each.strip() for each in written.split(","))))
    for each in sorted(found):
        if not DIGEST.fullmatch(each):
            why = f"{errors.echo(each)} is not a digest; write sha256: and 64 hexadecimal digits"
            raise errors.BadObject("Option", "--trusted-digests", "", why)
    return found


def base_values(found: Values, agent_image: str, scheduler_image: str) -> Values:
    """The values that the custom resources are laid over. BadObject where they change names, which the operator's
    rights have."""
    for place, value in (
        ("nameOverride", found.name_override),
        ("fullnameOverride", found.fullname_override),
        ("namespaceOverride", found.namespace_override),
        ("agent.serviceAccount.name", found.agent.service_account.name),
        ("scheduler.serviceAccount.name", found.scheduler.service_account.name),
    ):
        if value:
            why = f"{errors.echo(value)} cannot be used by the operator: its rights are for fixed names; leave it out"
            raise errors.BadObject("Values", "", place, why)
    agent = structs.replace(found.agent, image=own_image(agent_image, found.agent.image))
    scheduler = structs.replace(found.scheduler, image=own_image(scheduler_image, found.scheduler.image))
    return structs.replace(found, agent=agent, scheduler=scheduler)


def own_image(written: str, usual: Image) -> Image:
    """The image of an option. BadObject where it is none."""
    try:
        return parsed(written, usual) if written else usual
    except BadImage as problem:
        raise errors.BadObject("Image", written, "", str(problem)) from None
