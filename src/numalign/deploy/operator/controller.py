"""Drives the reconciliation: watches, asks `agents` and `schedulers` for plans, performs them, and writes the status.

`main` builds and runs it, in real time or in virtual time. Every managed kind is watched, so drift is noticed at once;
every `RESYNC` seconds each custom resource is looked at again. All objects are written by server-side apply. A spec of
a custom resource is never written, and no finalizer is set: deleting a resource, or the operator, never waits for
it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api.objects import statusconditions
from numalign.deploy import podtroubles
from numalign.deploy.apply import ownership
from numalign.deploy.operator import agents, conditions, fields, kinds, objects, plan, reports, schedulers
from numalign.deploy.operator.conditions import Outcome
from numalign.deploy.operator.kinds import Resource, Status
from numalign.deploy.operator.metrics import Metrics
from numalign.deploy.operator.objects import Key, Live, Tree
from numalign.deploy.operator.plan import ObservedCluster, Owner, Plan, PlanOptions
from numalign.deploy.operator.workqueue import WorkQueue
from numalign.kube import errors, lists, resources
from numalign.kube.client import Client
from numalign.kube.events.events import Occurrence
from numalign.kube.events.recorder import Recorder
from numalign.kube.request import Selection
from numalign.kube.resources import DeleteOptions, ObjectReference, Preconditions
from numalign.kube.watch import informer
from numalign.kube.watch.informer import Informer
from numalign.kube.watch.store import Change
from numalign.process import tasks
from numalign.process.log import about

LOG: Final = logging.getLogger(__name__)
RESYNC: Final = 50.0
"""Seconds; drift is repaired within a minute, also where no watch shows it."""
PATIENCE: Final = 5
"""Failures in a row after which an API server that cannot be reached shows in the status."""
TRANSIENT: Final = (
    errors.Unreachable,
    errors.Conflict,
    errors.TooManyRequests,
    errors.ServerFailure,
    errors.Gone,
    errors.Unauthorized,
)
REPORTS_DEFINITION: Final = f"metadata.name={objects.REPORTS_DEFINITION}"
MANAGED: Final = f"{ownership.MANAGED_BY}={fields.MANAGER}"


class Written(Struct, frozen=True):
    """The last status that was written, and the versions of the resource before and after.

    A definition of another project prunes fields that only numalign has; they are not written again and again."""

    versions: tuple[str, str]
    status: Status


class Failure(Struct, frozen=True):
    what: str
    transient: bool


class Controller:
    def __init__(
        self,
        client: Client,
        options: PlanOptions,
        recorder: Recorder,
        metrics: Metrics,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client, self._clock = client, client.sender.clock
        self._options, self._recorder, self.metrics, self._leads = options, recorder, metrics, leads
        self.queue: WorkQueue[str] = WorkQueue(self._clock)
        self._settled: dict[Key, tuple[str, str]] = {}
        self._written: dict[str, Written] = {}
        self._operators = Informer(client, kinds.OPERATORS.everywhere(), self._resource_changed)
        self._schedulers = Informer(client, kinds.SCHEDULERS.everywhere(), self._resource_changed)
        self._nodes = Informer(client, objects.NODES.everywhere(), self._node_changed)
        self._managed = {kind: self._watching(kind) for kind in plan.kinds_of(options)}
        metrics.watch(self.queue, client.sender.metrics)

    def _watching(self, kind: str) -> Informer[Live]:
        found = objects.KINDS[kind]
        target = found.resource.everywhere() if found.everywhere else found.resource.within(self._options.namespace)
        # The definition of the reports may be anybody's.
        selection = Selection(fields=REPORTS_DEFINITION) if kind == plan.DEFINITION else Selection(MANAGED)
        options = informer.Options(selection=selection)
        return Informer(self._client, target, partial(self._object_changed, kind), options)

    @property
    def _informers(self) -> dict[str, Informer[Any]]:
        return {
            kinds.OPERATORS.plural: self._operators,
            kinds.SCHEDULERS.plural: self._schedulers,
            objects.NODES.plural: self._nodes,
            **self._managed,
        }

    @property
    def has_synced(self) -> bool:
        return all(each.has_synced for each in self._informers.values())

    def watches(self) -> dict[str, tasks.Part]:
        """The tasks that every replica runs."""
        return {f"watch-{name}": each.run() for name, each in self._informers.items()}

    async def synced(self) -> None:
        for each in self._informers.values():
            await each.synced()

    # What changed

    def _resource_changed(self, change: Change[Any]) -> None:
        found = change.new or change.old
        if found is not None:
            self.queue.add(_key(found))

    def _object_changed(self, kind: str, change: Change[Live]) -> None:
        for each in (change.old, change.new):
            owner = each.metadata.controller if each is not None else None
            if owner is not None and owner.kind == kinds.SCHEDULER.kind:
                self._all(self._schedulers)
            elif each is not None:
                self._all(self._operators)

    def _node_changed(self, change: Change[objects.Node]) -> None:
        """Nodes report every few seconds; only their labels count here."""
        old, new = change.old, change.new
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._all(self._operators)
            self._all(self._schedulers)

    def _all(self, watched: Informer[Any]) -> None:
        for each in watched.store:
            self.queue.add(_key(each))

    # The work of the leader

    async def run(self) -> None:
        """Reconciles until cancelled."""
        await self.synced()
        while True:
            key = await self.queue.get()
            await self.reconcile(key)

    async def reconcile(self, key: str) -> None:
        plural, _, name = key.partition("/")
        resource = (self._operators if plural == kinds.OPERATORS.plural else self._schedulers).store.get(name)
        if resource is None or resource.metadata.deletion_timestamp:
            self._forgotten(key)
            return
        started, planned = self._clock.now(), Plan()
        resource = self._with_own_status(key, resource)
        try:
            planned = self._plan(resource, await self._waiting(resource), await self._troubles(resource))
            failures = await self._performed(planned, key)
            await self._report(key, resource, planned, failures)
        except errors.KubeError as problem:
            failures = [_failure(problem)]
        self.metrics.reconciled(plural, started, self._clock.now(), bool(failures))
        if failures:
            LOG.warning("Failed to reconcile: %s", "; ".join(each.what for each in failures), extra=about(resource=key))
            self.queue.failed(key)
        else:
            self.queue.succeeded(key)
            self.queue.add(key, min(RESYNC, planned.again or RESYNC))

    def _forgotten(self, key: str) -> None:
        self.queue.succeeded(key)
        self._written.pop(key, None)
        self.metrics.forget(key)

    def _with_own_status(self, key: str, resource: Resource) -> Resource:
        """The watch may be behind our own last write, whose transition times count."""
        last = self._written.get(key)
        if last is not None and resource.metadata.resource_version in last.versions:
            return structs.replace(resource, status=last.status)
        return resource

    async def _waiting(self, resource: Resource) -> dict[str, tuple[str, ...]]:
        """Pods without a node that name a scheduler of which the resource has only the history."""
        if isinstance(resource, kinds.NUMAResourcesOperator):
            return {}
        found = {}
        for name in schedulers.former_names(resource):
            selection = Selection(fields=f"spec.schedulerName={name},spec.nodeName=,status.phase=Pending")
            pods = await self._client.every(objects.PODS.everywhere(), selection)
            found[name] = tuple(sorted(f"{each.metadata.namespace}/{each.metadata.name}" for each in pods))
        return found

    async def _troubles(self, resource: Resource) -> dict[Key, str]:
        """Of the workloads of a resource that are not ready. One page of pods tells enough."""
        owner = Owner(_kind(resource), resource.metadata)
        slow = {key: live for key, live in self._objects().items() if owner.has(live) and plan.is_slow(key, live)}
        return {key: await self._trouble(key, live) for key, live in slow.items()}

    async def _trouble(self, key: Key, live: Live) -> str:
        try:
            async for page in self._client.pages(
                podtroubles.PODS.within(key.namespace), podtroubles.its_pods(live.tree())
            ):
                return podtroubles.troubles(lists.readable(page.items))
        except errors.KubeError as problem:
            # Words for the status alone: what has to be repaired does not wait for them.
            LOG.info("Pods of %s cannot be read: %s", key, problem)
        return ""

    def _objects(self) -> dict[Key, Live]:
        return {
            Key(kind, each.metadata.name, each.metadata.namespace): each
            for kind, watched in self._managed.items()
            for each in watched.store
        }

    def _plan(self, resource: Resource, waiting: dict[str, tuple[str, ...]], troubles: dict[Key, str]) -> Plan:
        observed = ObservedCluster(
            objects=self._objects(),
            nodes=tuple(self._nodes.store),
            now=self._clock.wall(),
            waiting=waiting,
            troubles=troubles,
            settled=self._settled,
        )
        if isinstance(resource, kinds.NUMAResourcesOperator):
            return agents.plan_for(resource, observed, self._options)
        return schedulers.plan_for(resource, observed, self._options)

    # Writing

    async def _performed(self, planned: Plan, key: str) -> list[Failure]:
        """Performs as much of the plan as possible; one object that fails does not keep the others from being
        written."""
        failures = list[Failure]()

        async def tried(call: Any) -> None:
            try:
                await call
            except errors.KubeError as problem:
                failures.append(_failure(problem))
            except plan.Foreign as problem:
                failures.append(Failure(str(problem), transient=False))

        for tree in planned.apply:
            await tried(self._apply(tree))
        for each in planned.remove:
            await tried(self._remove(each))
        for deletion in planned.delete:
            await tried(self._delete(deletion))
        if planned.forget and self._may_write():
            await tried(reports.delete(self._client, planned.forget))
        return failures

    def _may_write(self) -> bool:
        """Checked right before every write: a replica that lost its lease writes nothing more."""
        return self._leads()

    async def _apply(self, tree: Tree) -> None:
        key = objects.key_of(tree)
        target = objects.target(key)
        if key not in self._objects():
            await self._require_ours(key)
        if not self._may_write():
            return
        answer = await self._client.apply(target, tree, manager=fields.MANAGER, force=True)
        self.metrics.wrote("apply", key.kind)
        LOG.info("Applied %s", key)
        if fields.difference(tree, answer).apply:
            self._settled[key] = fields.digest(tree), fields.digest(fields.content(answer))
        else:
            self._settled.pop(key, None)

    async def _require_ours(self, key: Key) -> None:
        """Foreign where an object of this name is there that another manager made."""
        try:
            found = await self._client.get(objects.target(key))
        except errors.NotFound:
            return
        if not plan.is_ours(found):
            raise plan.Foreign(plan.belongs(key, found))

    async def _remove(self, removal: plan.FieldRemoval) -> None:
        if not self._may_write():
            return
        try:
            await self._client.patch(objects.target(removal.key), "json", removal.patch)
        except errors.Invalid as problem:
            # The object changed meanwhile, so the test in the patch failed: the next look sees the new one.
            raise errors.Conflict(problem.verb, problem.words, problem.code, problem.status) from None
        self.metrics.wrote("patch", removal.key.kind)
        LOG.info("Removed fields of others from %s", removal.key)

    async def _delete(self, deletion: plan.Deletion) -> None:
        if not self._may_write():
            return
        # The DaemonSet is there until its pods are gone, so that no agent writes a report again that is deleted next.
        options = DeleteOptions(propagation_policy="Foreground", preconditions=Preconditions(uid=deletion.uid))
        try:
            await self._client.delete(objects.target(deletion.key), options)
        except errors.NotFound:
            return
        self.metrics.wrote("delete", deletion.key.kind)
        LOG.info("Deleted %s", deletion.key)

    # Status and Events

    async def _report(self, key: str, resource: Resource, planned: Plan, failures: Iterable[Failure]) -> None:
        outcome = _outcome(planned, list(failures), self.queue.failures(key))
        status = new_status(resource, planned, outcome, statusconditions.stamp(self._clock.wall()))
        self.metrics.state(key, status)
        if status == resource.status or not self._may_write():
            return
        # A merge patch: fields that are no longer there have to be named.
        changes = {name: None for name in resource.status if name not in status} | status
        target = _resource(resource).at(resource.metadata.name)
        try:
            answer = await self._client.patch(target.sub("status"), "merge", {"status": changes})
        except errors.NotFound:
            return
        self.metrics.wrote("patch", f"{_kind(resource)}/status")
        versions = resource.metadata.resource_version, answer.metadata.resource_version
        self._written[key] = Written(versions, status)
        for event in happened(resource, outcome, planned):
            self._recorder.record(event)


def _key(resource: Resource) -> str:
    return f"{_resource(resource).plural}/{resource.metadata.name}"


def _resource(resource: Resource) -> resources.Resource[Any]:
    return kinds.OPERATORS if isinstance(resource, kinds.NUMAResourcesOperator) else kinds.SCHEDULERS


def _kind(resource: Resource) -> str:
    return kinds.OPERATOR.kind if isinstance(resource, kinds.NUMAResourcesOperator) else kinds.SCHEDULER.kind


def _failure(problem: errors.KubeError) -> Failure:
    return Failure(str(problem), isinstance(problem, TRANSIENT))


def _outcome(planned: Plan, failures: list[Failure], before: int) -> Outcome | None:
    """What to say after failures. A server that cannot be reached for a moment says nothing about the operands."""
    lasting = [each.what for each in failures if not each.transient or before >= PATIENCE]
    if lasting and planned.outcome is not None and planned.outcome.state != "Degraded":
        return Outcome("Degraded", conditions.INTERNAL_ERROR, "; ".join(sorted(lasting)))
    return planned.outcome


def new_status(resource: Resource, planned: Plan, outcome: Outcome | None, now: str) -> Status:
    """The whole status. Without an outcome, as for a paused resource, the last one stays."""
    old, generation = kinds.conditions(resource.status), resource.metadata.generation
    if outcome is None:
        before = conditions.current(old)
        if before is None:
            fresh = conditions.extra_only(old, planned.extras, generation, now)
            return planned.status | {"conditions": conditions.trees(fresh)}
        kept = {"observedGeneration": resource.status.get("observedGeneration", generation), "reason": before.reason}
        return (
            planned.status
            | kept
            | {"conditions": conditions.trees(conditions.extra_only(old, planned.extras, generation, now))}
        )
    written = conditions.written(old, outcome, planned.extras, generation, now)
    return planned.status | {
        "observedGeneration": generation,
        "reason": outcome.reason,
        "conditions": conditions.trees(written),
    }


def happened(resource: Resource, outcome: Outcome | None, planned: Plan) -> list[Occurrence]:
    """Events about a change of the state, not about its details."""
    old = conditions.current(kinds.conditions(resource.status))
    same = old is not None and outcome is not None and (old.state, old.reason) == (outcome.state, outcome.reason)
    is_reported = (
        old is not None and outcome is not None and (old.message == outcome.message or outcome.state == "Progressing")
    )
    regarding = ObjectReference(
        api_version=kinds.API_VERSION,
        kind=_kind(resource),
        name=resource.metadata.name,
        uid=resource.metadata.uid,
    )
    flipped = [
        Occurrence(regarding=regarding, reason=each.reason, action="Reconciling", note=each.message, type="Warning")
        for each in planned.extras
        if each.type == schedulers.WAITING
        and each.holds
        and not statusconditions.holds(kinds.conditions(resource.status), each.type)
    ]
    if outcome is None or (same and is_reported):
        return flipped
    warns = outcome.state == "Degraded" or (outcome.state == "Available" and outcome.message)
    note = outcome.message or {"Available": "all operands are ready"}.get(outcome.state, outcome.reason)
    return [
        Occurrence(
            regarding=regarding,
            reason=outcome.state if outcome.reason == conditions.AS_EXPECTED else outcome.reason,
            action="Reconciling",
            note=note,
            type="Warning" if warns else "Normal",
        ),
        *flipped,
    ]
