"""Judges a history: numalign's reference flavour against the answers of the real plugin, v0.34.7.

`sources` passes `judge` to campaigns. A replay as v0.34.7 must give exactly the real answers. A replay as the product
may differ only where the compatibility pages have an entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import structs

from numalign.api import errors
from numalign.api.decode import decode
from numalign.oracle import opinions
from numalign.oracle.ask import Case, Judged
from numalign.oracle.divergence import Difference
from numalign.oracle.generate.histories import FAMILY
from numalign.oracle.opinions import Opinion
from numalign.oracle.plugin import causes, comparing, defectrules, dialect, history, playing
from numalign.oracle.plugin.history import History
from numalign.oracle.plugin.playing import Answer, Script
from numalign.placement.reference import args
from numalign.placement.reference.args import NodeResourceTopologyMatchArgs

UNREADABLE: Final = "cannot be read"
OLD_FIELDS: Final = frozenset(each.encode_name for each in structs.fields(NodeResourceTopologyMatchArgs)) - {
    "preemptionMode"
}


def judge(case: Case, answer: Case) -> Judged:
    if (without := opinions.without(FAMILY, case, answer)) is not None:
        return without
    return opinions.judged(FAMILY, case, answer, opinions.survived(opinion, answer))


def opinion(recorded: Case) -> Opinion:
    """The opinion on a history with its answers; entries are those of the compatibility pages."""
    if "panic" in recorded:
        return Opinion((Difference("", expected=recorded["panic"]),))
    refused, settings = recorded.get("init_error"), recorded.get("args") or {}
    reason = refusal(settings)
    if refused is not None or reason is not None:
        return _of_refusal(refused, reason, settings)
    told = history.read(recorded)
    new, old = playing.script(told), history.with_old_classes(told, recorded)
    expected = [comparing.one_form(step.get("answer")) for step in recorded["steps"]]
    return _of_plays(new if old is told else playing.script(old), new, expected)


def refusal(settings: Mapping[str, Any]) -> str | None:
    """Why v0.34.7 rejects these arguments at start."""
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
    return Opinion(entries=frozenset({"difference 1" if "preemptionMode" in settings else "settings"}))


def _of_plays(old: Script, new: Script, expected: Sequence[Any]) -> Opinion:
    played = playing.play(old, dialect.V0_34_7)
    if wrong := comparing.differences(expected, played):
        return Opinion(wrong)
    named = list(_of_nodes(old.history, expected, played))
    unnamed = tuple(each for each in named if isinstance(each, Difference))
    if unnamed or not comparing.differences(expected, playing.play(new, dialect.OURS)):
        return Opinion(unnamed)
    found = list(causes.of(old, new))
    entries = {each for each in named if isinstance(each, str)} | {each.entry for each in found}
    if not entries or not all(each.possible for each in found):
        return Opinion((Difference("", answered=f"differs without an occasion: {', '.join(entries)}"),))
    return Opinion(entries=frozenset(entries))


def _of_nodes(told: History, expected: Sequence[Any], played: Sequence[Answer]) -> Iterator[str | Difference]:
    """For every node of a Filter or Score with another answer: the entry, or the difference without one."""
    for place, (step, real, answer) in enumerate(zip(told.steps, expected, played, strict=True)):
        for node, own in answer.own.items():
            if real[node] != own:
                entry = defectrules.entry(step, answer.known[node], told.args, real[node])
                yield entry or Difference(f"steps[{place}].answer.{node}", real[node], own)
