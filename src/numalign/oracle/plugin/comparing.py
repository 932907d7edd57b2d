"""Compares the plugin's answers with replayed ones in a normal form.

All panics are equal. Of an inconsistent-accounting error only the first reason counts, because the second depends on
the order of a Go map. Reports are compared as decoded, amounts by value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.meta import ObjectMeta
from numalign.oracle import divergence
from numalign.oracle.divergence import Difference
from numalign.oracle.plugin import defects
from numalign.oracle.plugin.playing import PANIC, Answer
from numalign.oracle.plugin.suites import objects

Raw = Mapping[str, Any]

INCONSISTENT: Final = list(defects.INCONSISTENT.reasons)


def differences(expected: Sequence[Any], played: Sequence[Answer]) -> tuple[Difference, ...]:
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
