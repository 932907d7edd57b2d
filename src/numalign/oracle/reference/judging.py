"""Judging a history: our reference flavour beside the answers of the real plugin, v0.34.7.

`judge` is given to campaigns by `sources`. First the history is played as that release would, which has to give its
answers, all of them; then as the product is, and whatever differs has to be an entry of the compatibility pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, structs

from numalign.api import decode, errors
from numalign.oracle import asking
from numalign.oracle.asking import Case, Judged
from numalign.oracle.divergence import Difference
from numalign.oracle.generating.histories import FAMILY
from numalign.oracle.reference import comparing, dialect, history, playing, rules
from numalign.oracle.reference.history import History
from numalign.oracle.reference.playing import Answer
from numalign.oracle.reference.rules import Histories
from numalign.placement.reference import args
from numalign.placement.reference.args import NodeResourceTopologyMatchArgs

UNREADABLE: Final = "cannot be read"
OLD_FIELDS: Final = frozenset(each.encode_name for each in structs.fields(NodeResourceTopologyMatchArgs)) - {
    "preemptionMode"
}


class Opinion(Struct, frozen=True):
    """What nobody can explain, and the entries of the compatibility pages for what differs on purpose."""

    differences: tuple[Difference, ...] = ()
    entries: frozenset[str] = frozenset()


def judge(case: Case, answer: Case) -> Judged:
    if (without := asking.judged_without_answer(FAMILY, case, answer)) is not None:
        return without
    if "timeout" in answer:
        return Judged(FAMILY, case, answer, "unanswered")
    found = opinion(answer) if "panic" not in answer else Opinion((Difference("", expected=answer["panic"]),))
    if found.differences:
        return Judged(FAMILY, case, answer, "differs", found.differences)
    return Judged(FAMILY, case, answer, "deliberate" if found.entries else "agreed")


def opinion(recorded: Case) -> Opinion:
    """Of a history with its answers."""
    refused, settings = recorded.get("init_error"), recorded.get("args") or {}
    expected = refusal(settings)
    if refused is not None or expected is not None:
        return _of_refusal(refused, expected, settings)
    new = history.read(recorded)
    return _of_plays(Histories(history.with_old_classes(new, recorded), new), recorded["steps"])


def refusal(settings: Mapping[str, Any]) -> str | None:
    """Why v0.34.7 would not start with these arguments."""
    try:
        given = decode.decode(NodeResourceTopologyMatchArgs, settings)
    except errors.BadObject:
        return UNREADABLE
    unknown = [f'unknown field "{name}"' for name in settings if name not in OLD_FIELDS]
    if unknown:
        return f"strict decoding error: {', '.join(unknown)}"
    return args.aggregated(args.problems(args.defaulted(given))) or None


def _of_refusal(refused: str | None, expected: str | None, settings: Mapping[str, Any]) -> Opinion:
    if refused is None or expected not in (refused, UNREADABLE):
        return Opinion((Difference("init_error", refused, expected),))
    try:
        args.complete(settings)
    except errors.BadObject:
        return Opinion()
    return Opinion(entries=frozenset({"settings"}))


def _of_plays(histories: Histories, recorded: Sequence[Mapping[str, Any]]) -> Opinion:
    played = playing.play(histories.old, dialect.V0_34_7)
    if wrong := comparing.differences(recorded, played):
        return Opinion(wrong)
    named = list(_of_nodes(histories.old, recorded, played))
    unnamed = tuple(each for each in named if isinstance(each, Difference))
    if unnamed or not comparing.differences(recorded, playing.play(histories.new, dialect.OURS)):
        return Opinion(unnamed)
    shown = list(rules.of_history(histories))
    impossible = tuple(Difference("", answered=f"{each.entry} cannot show") for each in shown if not each.possible)
    entries = {each for each in named if isinstance(each, str)} | {each.entry for each in shown}
    return Opinion(impossible, frozenset(entries))


def _of_nodes(
    told: History, recorded: Sequence[Mapping[str, Any]], played: Sequence[Answer]
) -> Iterator[str | Difference]:
    """For every node of a Filter or Score that the product answers otherwise: the entry, or what has none."""
    for place, (step, raw, answer) in enumerate(zip(told.steps, recorded, played, strict=True)):
        for node, own in answer.own.items():
            expected = raw["answer"][node]
            if comparing.one_form(expected) == own:
                continue
            entry = rules.of_node(step, node, answer.known[node], told.args, expected)
            yield entry or Difference(f"steps[{place}].answer.{node}", expected, own)
