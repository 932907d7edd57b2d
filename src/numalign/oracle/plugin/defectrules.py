"""Finds the entry of docs/compatibility/plugin.md that explains an answer of Filter or Score that differs from the
plugin's.

`judging` calls it for one node of one step. The rules are those of the recorded suites, applied to the pod and the
cached report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from numalign.api.decode import structs
from numalign.oracle.plugin.history import Step
from numalign.oracle.plugin.suites import filters, reportedzones, scores
from numalign.placement.reference.caches.cache import Lookup

OF_FILTER: Final = (reportedzones.ZONE_64, filters.ZONE_TWICE)
OF_SCORE: Final = scores.DELIBERATE


def entry(step: Step, known: Lookup, settings: Mapping[str, Any], answer: Mapping[str, Any]) -> str | None:
    if known.nrt is None:
        return None
    given = {
        "pod": msgspec.json.decode(structs.encode(step.pod)),
        "nrts": [msgspec.json.decode(structs.encode(known.nrt))],
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
