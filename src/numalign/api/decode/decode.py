"""Decodes Kubernetes objects: JSON bytes or a parsed YAML mapping in, a typed struct out.

The client, the simulator and the command line call `decode`. It raises only `BadObject`, which names the object, the
field and the remedy. A null counts as an absent field, as in Kubernetes. A valid object takes one pass of msgspec; only
an invalid one is examined again. `merge_patch` is JSON merge patch (RFC 7386): the embedded API server patches with it,
and the agent merges a kubelet's drop-in files with it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, TypeVar

import msgspec

from numalign.api import errors
from numalign.api.decode import structs

T = TypeVar("T", bound=structs.Wire)

# The errors of hostile input: ValueError comes from msgspec and bad UTF-8, ArithmeticError from extreme numbers.
UNREADABLE: Final = (ValueError, TypeError, ArithmeticError, RecursionError)

LONGEST_PART: Final = 150
STEP: Final = re.compile(r"\.([A-Za-z0-9_]+)|\[([0-9]+|\.\.\.)\]")
SOME_KEY: Final = "..."
UNKNOWN_KEY: Final = "?"
WORDS: Final = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number with a fraction",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "decimal": "a number with a fraction",
}

PLAIN: Final = msgspec.json.Decoder(float_hook=Decimal)


class Identity(structs.Wire, frozen=True):
    name: str = ""
    namespace: str = ""


class Identified(structs.Wire, frozen=True):
    metadata: Identity = Identity()


def decode(kind: type[T], raw: bytes | str | Mapping[str, Any]) -> T:
    """The object in `raw`, or a BadObject that says what is wrong with it."""
    try:
        return _typed(kind, _normal(raw, {}) if isinstance(raw, Mapping) else raw)
    except UNREADABLE as problem:
        return _second_look(kind, raw, problem)


def _second_look(kind: type[T], raw: bytes | str | Mapping[str, Any], problem: Exception) -> T:
    try:
        plain = _normal(raw if isinstance(raw, Mapping) else PLAIN.decode(raw), {})
    except UNREADABLE:
        raise _explained(kind, raw, problem) from None
    try:
        return _typed(kind, plain)
    except UNREADABLE as remaining:
        raise _explained(kind, plain, remaining) from None


def _typed(kind: type[T], raw: Any) -> T:
    if isinstance(raw, bytes | str):
        typed: T = _decoder(kind).decode(raw)
        return typed
    # Numbers as keys are strings in JSON, and stay so in the plain values that are made of it.
    return msgspec.convert(raw, kind, dec_hook=structs.decoded, str_keys=True)


@lru_cache(maxsize=64)
def _decoder(kind: type) -> msgspec.json.Decoder[Any]:
    # Unquoted amounts are read from their text, so that 0.1 is exactly that and 1e3 keeps its notation.
    return msgspec.json.Decoder(kind, dec_hook=structs.decoded, float_hook=str)


def _normal(thing: Any, seen: dict[int, Any]) -> Any:
    """A copy without nulls in objects. `seen` keeps YAML aliases shared: a few can stand for billions of parts."""
    if isinstance(thing, str):
        return _unicode(thing)
    if not isinstance(thing, Mapping | list):
        return thing
    if id(thing) not in seen:
        seen[id(thing)] = (
            [_normal(item, seen) for item in thing]
            if isinstance(thing, list)
            else {_normal(key, seen): _normal(value, seen) for key, value in thing.items() if value is not None}
        )
    return seen[id(thing)]


def _unicode(text: str) -> str:
    # YAML can spell half a character, which JSON cannot carry; Go's JSON reader puts a replacement there too.
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _explained(kind: type[T], raw: Any, problem: Exception) -> errors.BadObject:
    path = str(problem).rpartition(" - at `")[2].partition("$")[2]
    steps = [int(index) if index.isdigit() else field or SOME_KEY for field, index in STEP.findall(path)]
    return errors.BadObject(kind.__name__, _name_in(raw), _field(kind, raw, steps), _why(problem))


def _why(problem: Exception) -> str:
    if isinstance(problem.__cause__, ValueError):
        return str(problem.__cause__)
    if isinstance(problem, RecursionError):
        return "nested too deeply; no object of this kind needs that"
    what, known, where = shortened(problem).rpartition(" - at `")
    if not known:
        return f"{_in_words(where)}; send one whole object, as JSON in UTF-8"
    subject = "every key: " if where.startswith("key") else ""
    return f"{subject}{_in_words(what)}; correct it or leave it out"


def shortened(problem: Exception) -> str:
    """msgspec's message without the middle of a long value: it repeats values of enumerations in full."""
    text = str(problem)
    return text if len(text) <= 2 * LONGEST_PART else f"{text[:LONGEST_PART]}...{text[-LONGEST_PART:]}"


def _in_words(message: str) -> str:
    """msgspec's "Expected `str`, got `int`" in the terms of JSON."""
    message = re.sub(r"`([^`]*)`", lambda match: _kind_in_words(match[1]), message)
    return message.replace("Expected", "expected", 1)


def _kind_in_words(kind: str) -> str:
    """Drops "or null": every field may be null."""
    plain = kind.removesuffix(" | null")
    return WORDS.get(plain, plain)


def _name_in(raw: Any) -> str:
    try:
        identity = _typed(Identified, raw).metadata
    except UNREADABLE:
        return ""
    return errors.clipped("/".join(filter(None, (identity.namespace, identity.name))))


def _field(kind: type[T], raw: Any, steps: Sequence[str | int]) -> str:
    """The path as people write it, with the key that msgspec leaves out: `resources.requests[cpu]`."""
    named, taken = "", list[str | int]()
    for step in steps:
        key = _misfit(kind, raw, taken) if step == SOME_KEY else step
        named += f".{key}" if key == step and isinstance(step, str) else f"[{errors.clipped(str(key))}]"
        taken.append(key)
    return named.removeprefix(".")


def _misfit(kind: type[T], raw: Any, steps: Sequence[str | int]) -> str:
    """The key of the first entry in the object at the end of `steps` that does not fit its type."""
    for key, value in _entries(raw, steps).items() if isinstance(raw, Mapping) else ():
        skeleton: Any = {key: value}
        for step in reversed(steps):
            skeleton = [skeleton] if isinstance(step, int) else {step: skeleton}
        try:
            _typed(kind, skeleton)
        except UNREADABLE:
            return str(key)
    return UNKNOWN_KEY


def _entries(raw: Any, steps: Sequence[str | int]) -> Mapping[str, Any]:
    here: Any = raw
    for step in steps:
        here = here[step] if isinstance(step, int) else here.get(step, {})
    return here if isinstance(here, Mapping) else {}


Tree = dict[str, Any]


def merge_patch(tree: Tree, patch: Tree) -> Tree:
    merged = dict(tree)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _value(merged.get(key), value)
    return merged


def _value(old: Any, new: Any) -> Any:
    if not isinstance(new, dict):
        return new
    return merge_patch(old if isinstance(old, dict) else {}, new)
