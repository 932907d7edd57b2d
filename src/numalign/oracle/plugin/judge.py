"""Judges a history: numalign's reference flavour against the answers of the real plugin, v0.34.7.

`sources` passes `judge` to campaigns. A replay as v0.34.7 must give exactly the real answers. A replay as the product
may differ only where the compatibility pages have an entry. Answers are compared in a normal form: all panics are
equal, of an inconsistent-accounting error only the first reason counts (the second depends on the order of a Go map),
reports are compared as decoded, amounts by value."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode.structs import encode
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.oracle.harness import ask, divergence
from numalign.oracle.harness.ask import JudgedCase, Opinion
from numalign.oracle.harness.divergence import Case, Difference, Raw
from numalign.oracle.plugin import causes, defects, history, replay
from numalign.oracle.plugin.generate.histories import FAMILY
from numalign.oracle.plugin.history import History, HistoryStep
from numalign.oracle.plugin.replay import PANIC, PreparedHistory, StepAnswer
from numalign.oracle.plugin.suites import filters, objects, scores
from numalign.placement import referenceargs
from numalign.placement.reference.caches.cache import Lookup
from numalign.placement.referenceargs import NodeResourceTopologyMatchArgs

INCONSISTENT: Final = list(defects.INCONSISTENT.reasons)


def differences(expected: Sequence[Any], played: Sequence[StepAnswer]) -> tuple[Difference, ...]:
    """The differences between the answers of a recorded history's steps, in normal form, and replayed ones."""
    steps = enumerate(zip(expected, played, strict=True))
    return tuple(found for place, (real, answer) in steps for found in _of_step(place, real, one_form(answer.said)))


def _of_step(place: int, real: Any, ours: Any) -> list[Difference]:
    found = objects.by_amount(real, ours) if divergence.canonical(real) != divergence.canonical(ours) else ()
    return [structs.replace(each, path=f"steps[{place}].answer.{each.path}") for each in found]


def one_form(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return answer
    if "panic" in answer:
        return PANIC
    if answer.get("reasons", ())[:1] == INCONSISTENT:
        return {**answer, "reasons": INCONSISTENT}
    if answer.get("nrt") is not None:
        return {**answer, "nrt": _as_read(answer["nrt"])}
    return {key: one_form(value) for key, value in answer.items()}


def _as_read(raw: Raw) -> Any:
    nrt = decode.decode(NodeResourceTopology, msgspec.json.encode(raw))
    metadata = ObjectMeta(name=nrt.metadata.name, annotations=nrt.metadata.annotations)
    read = structs.replace(nrt, api_version="", kind="", metadata=metadata, zones=nrt.zones or ())
    return msgspec.to_builtins(read)


OF_FILTER: Final = (scores.ZONE_64, filters.ZONE_TWICE)
OF_SCORE: Final = scores.DELIBERATE


def defect_entry(
    step: HistoryStep, known: Lookup, settings: Mapping[str, Any], answer: Mapping[str, Any]
) -> str | None:
    if known.nrt is None:
        return None
    given = {
        "pod": msgspec.json.decode(encode(step.pod)),
        "nrts": [msgspec.json.decode(encode(known.nrt))],
        "config": settings,
    }
    case = {"input": given, "expect": _expectation(known.nrt.metadata.name, answer)}
    rules = OF_FILTER if step.op == "filter" else OF_SCORE
    return next((rule.anchor for rule in rules if rule.applies(given) and rule.shows(case)), None)


def _expectation(node: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    """The answer in the form of the recorded suites."""
    crash = {"referenceCrash": answer["panic"]} if "panic" in answer else {}
    scores = {"scores": {node: answer["score"]}} if "score" in answer else {}
    return {**crash, **scores, "status": {"code": answer.get("code")}}


UNREADABLE: Final = "cannot be read"
OLD_FIELDS: Final = frozenset(each.encode_name for each in structs.fields(NodeResourceTopologyMatchArgs)) - {
    "preemptionMode"
}


def judge(case: Case, answer: Case) -> JudgedCase:
    if (without := ask.without(FAMILY, case, answer)) is not None:
        return without
    return ask.judged(FAMILY, case, answer, ask.survived(opinion, answer))


def opinion(recorded: Case) -> Opinion:
    """The opinion on a history with its answers; entries are those of the compatibility pages."""
    if "panic" in recorded:
        return Opinion((Difference("", expected=recorded["panic"]),))
    refused, settings = recorded.get("init_error"), recorded.get("args") or {}
    reason = refusal(settings)
    if refused is not None or reason is not None:
        return _of_refusal(refused, reason, settings)
    read = history.read(recorded)
    new, old = replay.script(read), history.with_old_classes(read, recorded)
    expected = [one_form(step.get("answer")) for step in recorded["steps"]]
    return _of_plays(new if old is read else replay.script(old), new, expected)


def refusal(settings: Mapping[str, Any]) -> str | None:
    """Why v0.34.7 rejects these arguments at start."""
    try:
        given = decode.decode(NodeResourceTopologyMatchArgs, settings)
    except errors.BadObject:
        return UNREADABLE
    unknown = [f'unknown field "{name}"' for name in settings if name not in OLD_FIELDS]
    if unknown:
        return f"strict decoding error: {', '.join(unknown)}"
    return referenceargs.aggregated(referenceargs.problems(referenceargs.defaulted(given))) or None


def _of_refusal(refused: str | None, expected: str | None, settings: Mapping[str, Any]) -> Opinion:
    if refused is None or expected not in (refused, UNREADABLE):
        return Opinion((Difference("init_error", refused, expected),))
    try:
        referenceargs.complete(settings)
    except errors.BadObject:
        return Opinion()
    return Opinion(entries=frozenset({"difference 1" if "preemptionMode" in settings else "settings"}))


def _of_plays(old: PreparedHistory, new: PreparedHistory, expected: Sequence[Any]) -> Opinion:
    played = replay.play(old, replay.V0_34_7)
    if wrong := differences(expected, played):
        return Opinion(wrong)
    named = list(_of_nodes(old.history, expected, played))
    unnamed = tuple(each for each in named if isinstance(each, Difference))
    if unnamed or not differences(expected, replay.play(new, replay.OURS)):
        return Opinion(unnamed)
    found = list(causes.of(old, new))
    entries = {each for each in named if isinstance(each, str)} | {each.entry for each in found}
    if not entries or not all(each.possible for each in found):
        return Opinion((Difference("", answered=f"differs without an occasion: {', '.join(entries)}"),))
    return Opinion(entries=frozenset(entries))


def _of_nodes(read: History, expected: Sequence[Any], played: Sequence[StepAnswer]) -> Iterator[str | Difference]:
    """For every node of a Filter or Score with another answer: the entry, or the difference without one."""
    for place, (step, real, answer) in enumerate(zip(read.steps, expected, played, strict=True)):
        for node, own in answer.own.items():
            if real[node] != own:
                entry = defect_entry(step, answer.known[node], read.args, real[node])
                yield entry or Difference(f"steps[{place}].answer.{node}", real[node], own)
