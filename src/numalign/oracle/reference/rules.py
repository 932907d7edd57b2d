"""Which entry of the compatibility pages a difference belongs to, by rules on what was asked.

Two kinds: a defect of Filter or Score shows at one node of one step, and is recognised by the rules of the recorded
suites on the pod and the report of that moment. A habit or a stall of the cache shows in how a history goes on: it is
found by taking them away one by one, on the way from v0.34.7 to ours, and has to be possible in that history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.api import fingerprint, nrt, resourcenames, wire
from numalign.api.nrtwire import NodeResourceTopology
from numalign.api.pod import Pod
from numalign.oracle.reference import comparing, dialect, playing
from numalign.oracle.reference.dialect import Dialect, Habit
from numalign.oracle.reference.history import History, Step
from numalign.oracle.suites import filters, scores
from numalign.placement.reference import args
from numalign.placement.reference.args import ResyncMethod
from numalign.placement.reference.caches import podgroups
from numalign.placement.reference.caches.cache import Lookup
from numalign.placement.reference.caches.repairs import Repair

OF_FILTER: Final = (filters.ZONE_64, filters.ZONE_TWICE)
OF_SCORE: Final = (filters.ZONE_64, *scores.DELIBERATE)


class Histories(Struct, frozen=True):
    """One history in the two ways in which classes of pods are computed."""

    old: History
    new: History

    def spoken(self, manner: Dialect) -> History:
        return self.old if Habit.OLD_CLASSES in manner.habits else self.new


def of_node(step: Step, node: str, known: Lookup, config: Mapping[str, Any], answer: Mapping[str, Any]) -> str | None:
    """The entry that says why the plugin gave this answer for a node, where the product gives another one."""
    given = {
        "pod": msgspec.json.decode(wire.encode(step.pod)),
        "nrts": [] if known.nrt is None else [msgspec.json.decode(wire.encode(known.nrt))],
        "config": config,
    }
    case = {"input": given, "expect": _expectation(node, answer)}
    rules = OF_FILTER if step.op == "filter" else OF_SCORE
    return next((rule.anchor for rule in rules if rule.applies(given) and rule.shows(case)), None)


def _expectation(node: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    crash = {"referenceCrash": answer["panic"]} if "panic" in answer else {}
    return {**crash, "status": {"code": answer.get("code")}, "scores": {node: answer.get("score", 0)}}


class Shown(Struct, frozen=True):
    """An entry that shows in a history, and whether the history has what it takes."""

    entry: str
    possible: bool


def of_history(histories: Histories) -> Iterator[Shown]:
    """What cannot show is taken away together and first, and must not show."""
    possible = {change: POSSIBLE[change](histories) for change in (*Repair, *Habit)}
    impossible = [change for change in possible if not possible[change]]
    manner = _without(dialect.V0_34_7, impossible)
    before, after = (_answers(histories, each) for each in (dialect.V0_34_7, manner))
    if before != after:
        yield Shown(", ".join(ENTRIES[change] for change in impossible), possible=False)
    for change in filter(possible.__getitem__, possible):
        manner, before = _without(manner, [change]), after
        after = _answers(histories, manner)
        if before != after:
            yield Shown(ENTRIES[change], possible=True)


def _without(manner: Dialect, changes: Iterable[Repair | Habit]) -> Dialect:
    """A habit is given up, a repair is made."""
    return Dialect(manner.habits.difference(changes), manner.repairs.union(filter(_is_repair, changes)))


def _is_repair(change: Repair | Habit) -> TypeGuard[Repair]:
    return isinstance(change, Repair)


def _answers(histories: Histories, manner: Dialect) -> list[Any]:
    return [each.said for each in playing.play(histories.spoken(manner), manner)]


ENTRIES: Final[Mapping[Repair | Habit, str]] = {
    **{repair: f"cache-{repair}" for repair in Repair},
    Habit.EVERY_DEVICE: "difference 3",
    Habit.INIT_CONTAINERS: "difference 4",
    Habit.RESERVE_UNMARKS: "difference 5",
    Habit.OLD_CLASSES: "difference 7",
    Habit.DEFECTS: "defects",
}
"""Of docs/compatibility-caches.md, docs/oracle-reference.md and, all together, docs/compatibility.md."""


def _has(op: str) -> Callable[[History], bool]:
    return lambda history: any(step.op == op for step in history.steps)


def _pods(history: History) -> Iterator[Pod]:
    yield from history.pods
    yield from (step.pod for step in history.steps if step.op in ("pod_add", "pod_update"))


def _reports(history: History) -> Iterator[NodeResourceTopology]:
    yield from history.nrts
    yield from (step.nrt for step in history.steps if step.op == "nrt_update")


def _has_late_report(history: History) -> bool:
    known = {nrt.metadata.name for nrt in history.nrts}
    return any(step.op == "nrt_update" and step.nrt.metadata.name not in known for step in history.steps)


def _has_ended_pod(history: History) -> bool:
    return any(podgroups.has_ended(pod) for pod in _pods(history))


def _has_starting_pod(history: History) -> bool:
    return any(pod.status.phase != podgroups.RUNNING and not podgroups.has_ended(pod) for pod in _pods(history))


def _signs_exclusive(history: History) -> bool:
    """Some fingerprint may be of exclusive pods only."""
    method = args.resync_method(args.complete(history.args).cache)
    announced = (
        each.name == nrt.FINGERPRINT_METHOD and each.value == fingerprint.Method.EXCLUSIVE
        for report in _reports(history)
        for each in report.attributes
    )
    return method is ResyncMethod.ONLY_EXCLUSIVE or (method is ResyncMethod.AUTODETECT and any(announced))


def _has_devices(history: History) -> bool:
    containers = (each for pod in _pods(history) for each in pod.in_admission_order())
    return not all(resourcenames.is_native(name) for each in containers for name in each.resources.requests)


def _has_init_containers(history: History) -> bool:
    return any(not each.is_sidecar for pod in _pods(history) for each in pod.spec.init_containers)


def _never(_: History) -> bool:
    return False


def _always(_: History) -> bool:
    return True


POSSIBLE: Final[Mapping[Repair | Habit, Callable[[History], bool]]] = {
    Repair.LATE_REPORT: _has_late_report,
    Repair.REPORT_GONE: _has("nrt_delete"),
    Repair.MISSED_SETTINGS: _has("nrt_delete"),
    Repair.EMPTY_NODE: _has("resync"),
    Repair.ENDED_PODS: _has_ended_pod,
    Repair.STARTING_PODS: _has_starting_pod,
    Repair.PINNED_PODS: _signs_exclusive,
    Repair.UNREPORTED_POD: _has("reserve"),
    Repair.RESYNC_WINDOW: _never,
    Habit.EVERY_DEVICE: _has_devices,
    Habit.INIT_CONTAINERS: _has_init_containers,
    Habit.RESERVE_UNMARKS: _has("reserve"),
    Habit.OLD_CLASSES: _always,
    Habit.DEFECTS: _always,
}
