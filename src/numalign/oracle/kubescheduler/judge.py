"""Judges a case: numalign's rules against the plugins of kube-scheduler v1.37.1.

`sources` passes `judge` to campaigns. Every status, reason and score must be the same. A deliberate difference has an
entry in docs/develop/oracle-scheduler.md. Its rule looks at the case and the real answer, never at ours, so that it
cannot hide an error of ours."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.oracle.harness import ask, divergence
from numalign.oracle.harness.ask import JudgedCase, Opinion
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.kubescheduler import answer as answering
from numalign.oracle.kubescheduler.generate.cases import FAMILY
from numalign.placement.rules import nodestate

WHAT_IF: Final = re.compile(r"what_if\[(\d+)\]\.(\w+)")
NOT_OWNED: Final = re.compile(r"PVC \S+ was not created for pod \S+ \(pod is not owner\)")


class DeliberateEntry(Struct, frozen=True):
    """One entry: the places of an answer that it concerns, and the rule that decides whether it applies."""

    anchor: str
    places: re.Pattern[str]
    applies: Callable[[Raw, Raw, Difference], bool]


def deliberate_entry(case: Raw, question: Raw, difference: Difference) -> str | None:
    """The entry for a difference in the answer to this question."""
    for each in ENTRIES:
        if each.places.match(difference.path) and each.applies(case, question, difference):
            return each.anchor
    return None


def _shares_a_port(case: Raw, question: Raw, difference: Difference) -> bool:
    """Two pods of the node have the same host port, and one of them is removed."""
    asked = WHAT_IF.match(difference.path)
    assert asked is not None, "the place is one of what_if"
    change = question["what_if"][int(asked[1])]
    ports = {pod["metadata"]["uid"]: _ports(pod) for pod in _on(case, change["node"])}
    held = Counter(port for of_pod in ports.values() for port in of_pod)
    return any(held[port] > 1 for uid in change.get("removed") or () for port in ports[uid])


def _on(case: Raw, node: str) -> Iterator[Raw]:
    return (pod for pod in case["snapshot"].get("pods") or () if pod["spec"].get("nodeName") == node)


def _ports(pod: Raw) -> frozenset[nodestate.HostPort]:
    return frozenset(nodestate.wanted(decode.decode(Pod, pod)))


def _cannot_count(case: Raw, question: Raw, difference: Difference) -> bool:
    """NodeVolumeLimits failed on a node, because a claim has the name of an ephemeral volume's claim and another
    owner."""
    statuses = (said.get("NodeVolumeLimits") for said in question["answer"]["filters"].values())
    return any(
        status is not None and status["code"] == "Error" and NOT_OWNED.fullmatch(status["reasons"][0])
        for status in statuses
    )


def _has_claims(case: Raw, question: Raw, difference: Difference) -> bool:
    return bool(question["pod"]["spec"].get("resourceClaims"))


def _asks_for_devices(case: Raw, question: Raw, difference: Difference) -> bool:
    """A container requests an extended resource that a DeviceClass provides."""
    classes = case["snapshot"].get("deviceClasses") or ()
    spec = question["pod"]["spec"]
    containers = (*spec["containers"], *(spec.get("initContainers") or ()))
    asked = {name for each in containers for name in each.get("resources", {}).get("requests", {})}
    return any(each["spec"].get("extendedResourceName") in asked for each in classes)


ANYWHERE: Final = re.compile("")

ENTRIES: Final = (
    DeliberateEntry("resource-claims", ANYWHERE, _has_claims),
    DeliberateEntry("device-classes", ANYWHERE, _asks_for_devices),
    DeliberateEntry("ports-twice", re.compile(r"what_if\[\d+\]\.NodePorts"), _shares_a_port),
    DeliberateEntry(
        "claim-not-owned",
        re.compile(r"(filters\.\w+|what_if\[\d+\])\.NodeVolumeLimits|verdicts\.|scores"),
        _cannot_count,
    ),
)


NO_ANSWER: Final[Raw] = {}
"""No plugin refuses a node."""


def judge(case: Case, answer: Case) -> JudgedCase:
    if (without := ask.without(FAMILY, case, answer)) is not None:
        return without
    found = ask.survived(opinion, answer)
    return ask.judged(FAMILY, _narrowed(case, found.questions), answer, found, len(case["questions"]))


def _narrowed(case: Case, questions: frozenset[int]) -> Case:
    """The case with these questions only, so that an unstable answer to another question does not hide them."""
    kept = [each for place, each in enumerate(case["questions"]) if place in questions]
    return {**case, "questions": kept} if kept else case


def opinion(recorded: Case) -> Opinion:
    """The opinion on a case with its answers."""
    if "panic" in recorded or "init_error" in recorded:
        return Opinion((Difference("", expected=recorded.get("panic") or recorded["init_error"]),))
    stage = answering.build(recorded)
    differences: list[Difference] = []
    entries: set[str] = set()
    wrong: set[int] = set()
    for place, question in enumerate(recorded["questions"]):
        for each in between(question["answer"], answering.answer(stage, question)):
            entry = deliberate_entry(recorded, question, each)
            if entry is None:
                wrong.add(place)
                differences.append(structs.replace(each, path=f"questions[{place}].answer.{each.path}"))
            else:
                entries.add(entry)
    return Opinion(tuple(differences), frozenset(entries), frozenset(wrong))


def between(real: Raw, ours: Raw) -> tuple[Difference, ...]:
    expected, answered = _comparable(real), _comparable(ours)
    nodes = dict.fromkeys((*real["filters"], *ours["filters"]), NO_ANSWER)
    for each in (expected, answered):
        each["filters"] = nodes | each["filters"]
    return divergence.between(divergence.canonical(expected), divergence.canonical(answered))


def _comparable(answer: Raw) -> dict[str, Any]:
    """Normal form: a plugin that skips a pod is equal to one that refuses no node and scores nothing."""
    made = {key: value for key, value in answer.items() if key not in ("skipped", "scores")}
    if "scores" in answer:
        made["scores"] = _scores(answer["scores"])
    return made


def _scores(scores: Raw) -> dict[str, Any]:
    if "error" in scores:
        return {"error": scores["error"]}
    return {
        "totals": scores["totals"],
        "raw": _of_something(scores["raw"]),
        "normalized": _of_something(scores["normalized"]),
    }


def _of_something(by_plugin: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    return {plugin: scores for plugin, scores in by_plugin.items() if any(scores.values())}
