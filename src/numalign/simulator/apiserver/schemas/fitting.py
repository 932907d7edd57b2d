"""Whether a value fits a schema, answered by functions that are made once per schema.

Twin of `validating` and of the checks of identity in `structural`, which say what is wrong: nearly every object of a
custom resource is right, and thousands of nodes write theirs all the time. What is rare in schemas makes a check say
no, so that the slow twin decides; a yes is always right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numalign.simulator.apiserver.schemas import formats
from numalign.simulator.trees import Tree

Check = Callable[[Any], bool]
EITHER: Final = [{"type": "integer"}, {"type": "string"}]
RARE: Final = (
    "allOf",
    "oneOf",
    "not",
    "enum",
    "multipleOf",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "x-kubernetes-embedded-resource",
)


def check(schema: Tree) -> Check:
    """True only for what has no errors."""
    is_either = bool(schema.get("x-kubernetes-int-or-string"))
    unclear = any(schema.get(word) for word in RARE)
    if unclear or schema.get("anyOf", EITHER) != EITHER or ("anyOf" in schema and not is_either):
        return _never
    if is_either:
        return _either(schema)
    return MAKERS.get(schema.get("type") or "", _anything)(schema)


def _never(value: Any) -> bool:
    return False


def _anything(schema: Tree) -> Check:
    # Without a type only an object with described fields can be wrong.
    return _never if schema.get("properties") or schema.get("pattern") or schema.get("items") else lambda value: True


def _either(schema: Tree) -> Check:
    is_text = _text(schema)
    return lambda value: is_text(value) if type(value) is str else type(value) is int


def _text(schema: Tree) -> Check:
    pattern, form = schema.get("pattern") or "", schema.get("format") or ""
    if not pattern and form not in formats.CHECKS:
        return lambda value: type(value) is str
    return lambda value: (
        type(value) is str and formats.fits(form, value) and (not pattern or formats.matches(pattern, value))
    )


def _integer(schema: Tree) -> Check:
    limit = 2 ** formats.WIDTHS.get(schema.get("format") or "", 63)
    return lambda value: type(value) is int and -limit <= value < limit


def _number(schema: Tree) -> Check:
    return lambda value: type(value) in (int, float)


def _boolean(schema: Tree) -> Check:
    return lambda value: type(value) is bool


def _list(schema: Tree) -> Check:
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        return _never
    fits = check(schema.get("items") or {})
    return lambda value: type(value) is list and all(map(fits, value))


def _object(schema: Tree) -> Check:
    fields = {key: check(sub) for key, sub in (schema.get("properties") or {}).items()}
    required = frozenset(schema.get("required") or ())
    more = schema.get("additionalProperties")
    other = check(more) if isinstance(more, dict) else None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for key, child in value.items():
            rule = fields.get(key, other)
            if rule is not None and not rule(child):
                return False
        return True

    return fits


MAKERS: Final[dict[str, Callable[[Tree], Check]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _list,
    "object": _object,
}
