"""A scheduler that has lived for long, held against one that has just been told everything: is there a difference?

`made` hands all that a live scheduler watches to a new one, through the same handlers. `differences` are places where
they would see the cluster differently. `ghosts` and `footprint` tell what the old one holds on to. Looks at parts from
the inside, and changes nothing."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from numalign.api.caches import BoundedCache
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.events.events import Correlator
from numalign.kube.watch.store import Change
from numalign.placement.columns.shapes import Shape, Shapes
from numalign.placement.explain import nodeview
from numalign.placement.ledger.ledger import Revision
from numalign.placement.ledger.podrecord import EndedPods
from numalign.placement.verdicts.verdicts import VerdictTable
from numalign.scheduler.choose import filtering, scoring
from numalign.scheduler.choose.decisionlog import DecisionLog
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.events.podhistory import PodHistories
from numalign.scheduler.main import Scheduler, Setup
from tests.placing import views

OURS = ("numalign.scheduler", "numalign.placement", "numalign.kube", "numalign.api.caches")
CONTAINERS = (list, tuple, set, frozenset, deque)
MEMORIES = frozenset(
    each.__name__ for each in (PodHistories, DecisionLog, Revision, EndedPods, Correlator, Shape, Shapes, VerdictTable)
)
"""Of what was lately, each of a size or an age of its own; a shape has one pod as its example."""


def made(live: Scheduler, client: Client) -> Scheduler:
    new = Scheduler(Setup(config=live.config), client)
    for name, informer in live.watched.informers.items():
        for thing in informer.store:
            new.watched.informers[name]._handler(Change(None, thing))
    return new


def differences(live: Scheduler, new: Scheduler, probes: Iterable[Pod]) -> Iterator[str]:
    yield from _different("columns", _columns(live), _columns(new))
    yield from _different("ledger", _ledger(live), _ledger(new))
    yield from _different("waiting", _waiting(live), _waiting(new))
    yield from _different("assumed", sorted(live.cluster.assumed), [])
    yield from _different("in flight", live.queue.flights.uids(), ())
    for probe in probes:
        yield from _different(f"verdicts on {probe.metadata.name}", _verdicts(live, probe), _verdicts(new, probe))
        yield from _different(f"scores of {probe.metadata.name}", _scores(live, probe), _scores(new, probe))


def ghosts(live: Scheduler, gone: Container[str]) -> Counter[str]:
    """Parts that still hold pods which are gone, as objects or by uid, and how many of them."""
    held = {(part, _uid(thing)) for part, thing in things(live, MEMORIES)}
    return Counter(part for part, uid in held if uid in gone)


def footprint(live: Scheduler) -> Counter[str]:
    """How many things every part of ours holds, by class and attribute. Caches have a bound of their own."""
    found: Counter[str] = Counter()
    for part, thing in things(live):
        if isinstance(thing, BoundedCache):
            continue
        if isinstance(thing, (dict, *CONTAINERS)):
            found[part] += len(thing)
        elif isinstance(thing, np.ndarray):
            found[part] += thing.size
    return found


def things(root: object, without: Container[str] = ()) -> Iterator[tuple[str, object]]:
    """Everything that can be reached from the root through parts of ours, each once, with where it was found; not
    through parts of these classes."""
    seen: set[int] = set()
    waiting: list[tuple[str, object]] = [("", root)]
    while waiting:
        part, thing = waiting.pop()
        if (id(thing) in seen and not isinstance(thing, str)) or type(thing).__name__ in without:
            continue
        seen.add(id(thing))
        yield part, thing
        waiting += _inside(part, thing)


def _inside(part: str, thing: object) -> Iterator[tuple[str, object]]:
    if isinstance(thing, dict):
        yield from ((part, each) for pair in thing.items() for each in pair)
    elif isinstance(thing, CONTAINERS):
        yield from ((part, each) for each in thing)
    elif type(thing).__module__.startswith(OURS):
        name = type(thing).__name__
        yield from ((f"{name}.{each}", getattr(thing, each)) for each in _attributes(thing) if hasattr(thing, each))


def _uid(thing: object) -> str:
    if isinstance(thing, str):
        return thing
    return thing.metadata.uid if isinstance(thing, Pod) else ""


def _attributes(thing: object) -> Iterable[str]:
    if isinstance(thing, msgspec.Struct):
        return thing.__struct_fields__
    slots = (each for kind in type(thing).__mro__ for each in getattr(kind, "__slots__", ()))
    return (*getattr(thing, "__dict__", {}), *slots)


def _columns(scheduler: Scheduler) -> dict[str, object]:
    return {each.name: each for each in views(scheduler.cluster.engine)}


def _ledger(scheduler: Scheduler) -> dict[str, object]:
    engine = scheduler.cluster.engine
    return {
        f"{name}/{tenant.uid}": (tenant.containers, sorted(tenant.charges, key=repr), tenant.is_leaving)
        for name in engine.columns.rows
        for tenant in getattr(nodeview.of(engine, name), "tenants", ())
    }


def _waiting(scheduler: Scheduler) -> list[str]:
    return sorted(queued.uid for pool in scheduler.queue.pending().values() for queued in pool)


def _verdicts(scheduler: Scheduler, pod: Pod) -> dict[str, object]:
    """By node: who refuses the pod and with which words, and what the engine says."""
    world, engine = scheduler.cluster.world, scheduler.cluster.engine
    found = filtering.filtered(pod, _profile(scheduler).filters, world)
    if isinstance(found, Refused):
        return {"": found}
    said: dict[str, object] = {}
    codes = engine.survey(engine.shape(pod))
    for plugin, refusal, rows in found.tallies():
        said |= {world.names[row]: (plugin, refusal.reasons) for row in rows.tolist()}
    return said | {world.names[row]: int(codes[row]) for row in found.fitting.tolist()}


def _scores(scheduler: Scheduler, pod: Pod) -> dict[str, int]:
    world, profile = scheduler.cluster.world, _profile(scheduler)
    found = filtering.filtered(pod, profile.filters, world)
    if isinstance(found, Refused) or len(found.fitting) < 2:
        return {}
    totals = scoring.totals(pod, profile.scores, world, found.fitting)
    return {world.names[row]: int(total) for row, total in zip(found.fitting.tolist(), totals, strict=True)}


def _profile(scheduler: Scheduler) -> Any:
    return next(iter(scheduler.cycle._profiles.values()))


def _different(what: str, old: Any, new: Any) -> Iterator[str]:
    if old == new:
        return
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        yield f"{what}: {old} instead of {new}"
        return
    for key in [key for key in OrderedDict.fromkeys((*old, *new)) if old.get(key) != new.get(key)][:3]:
        yield f"{what}, {key}: {old.get(key)} instead of {new.get(key)}"
