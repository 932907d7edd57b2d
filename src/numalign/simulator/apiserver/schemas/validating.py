"""Whether a value fits the OpenAPI schema of a custom resource, and what the server says where it does not.

`structural.errors` calls `errors` with the schema's tree; the words, their order within one value and the field paths
are those of the real server, `<nil>` for problems it cannot place included. CEL rules are stored and never run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from numalign.simulator.apiserver.schemas import causes, formats
from numalign.simulator.apiserver.storage.errors import Cause
from numalign.simulator.trees import Tree

WRONG_TYPE: Final = "FieldValueTypeInvalid"
UNPLACED: Final = "<nil>"


def errors(value: Any, schema: Tree, path: str = "") -> Iterator[Cause]:
    """Every problem with a value and what is below it."""
    for check in CHECKS:
        yield from check(value, schema, path)


def invalid(path: str, value: Any, why: str) -> Cause:
    return causes.invalid(path, value, f"{path} in body {why}")


def type_of(value: Any) -> str:
    """As JSON schema names it; a number without fraction is an integer, however it was written."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return TYPES[type(value)]


TYPES: Final[dict[type, str]] = {float: "number", str: "string", list: "array", dict: "object"}


def _type_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    allowed = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type") or ""]
    found = type_of(value)
    fits = found in allowed or (found == "integer" and "number" in allowed) or allowed == [""]
    if fits or (value is None and schema.get("nullable")):
        return
    yield wrong_type(path, found, ",".join(allowed), found)
    if found == "number" and "integer" in allowed and len(allowed) == 1:
        yield _unplaced(f"Checked value must be of type integer (default format) in {path}")


def wrong_type(path: str, value: Any, wanted: str, shown: str) -> Cause:
    why = f'{path} in body must be of type {wanted}: "{shown}"'
    return Cause(path or UNPLACED, WRONG_TYPE, f"Invalid value: {formats.shown(value)}: {why}")


def _unplaced(why: str) -> Cause:
    return causes.invalid(UNPLACED, "", why)


def _combination_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    """anyOf and oneOf also tell the problems of their first alternative, as the likeliest one meant."""
    if schema.get("anyOf"):
        tried = [list(errors(value, each, path)) for each in schema["anyOf"]]
        if all(tried):
            yield _unplaced(f'"{path}" must validate at least one schema (anyOf)')
            yield from tried[0]
    if schema.get("oneOf"):
        tried = [list(errors(value, each, path)) for each in schema["oneOf"]]
        valid = sum(not each for each in tried)
        if valid != 1:
            count = f"Found {valid} valid alternatives" if valid else "Found none valid"
            yield _unplaced(f'"{path}" must validate one and only one schema (oneOf). {count}')
            yield from [] if valid else tried[0]
    if schema.get("allOf"):
        found = [cause for each in schema["allOf"] for cause in errors(value, each, path)]
        yield from found
        if found:
            yield _unplaced(f'"{path}" must validate all the schemas (allOf)')
    if schema.get("not") and not any(errors(value, schema["not"], path)):
        yield _unplaced(f'"{path}" must not validate the schema (not)')


def _text_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    if not isinstance(value, str):
        return
    longest, shortest, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if longest is not None and len(value) > longest:
        yield causes.too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"should be at least {shortest} chars long")
    elif pattern and not formats.matches(pattern, value):
        yield invalid(path, value, f"should match '{pattern}'")
    form = schema.get("format") or ""
    if not formats.fits(form, value):
        yield wrong_type(path, value, form, value)


def _number_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    form = schema.get("format") or ""
    if form in formats.WIDTHS and not -(2 ** formats.WIDTHS[form]) <= value < 2 ** formats.WIDTHS[form]:
        yield _unplaced(f"Checked value must be of type integer with format {form} in {path}")
        return
    step, most, least = (schema.get(key) for key in ("multipleOf", "maximum", "minimum"))
    if step and not math.isclose(value / step, round(value / step), abs_tol=1e-9):
        yield invalid(path, value, f"should be a multiple of {formats.number(step)}")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"should be {words} {formats.number(most)}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"should be {words} {formats.number(least)}")


def _list_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    if not isinstance(value, list):
        return
    for index, item in enumerate(value):
        yield from errors(item, schema.get("items") or {}, f"{path}[{index}]")
    yield from _count_errors(len(value), schema, path, ("minItems", "maxItems", "items"))


def _count_errors(count: int, schema: Tree, path: str, words: tuple[str, str, str]) -> Iterator[Cause]:
    fewest, most = schema.get(words[0]), schema.get(words[1])
    if fewest is not None and count < fewest:
        yield invalid(path, count, f"should have at least {fewest} {words[2]}")
    if most is not None and count > most:
        yield Cause(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def _enum_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if not allowed or any(value == each and type_of(value) == type_of(each) for each in allowed):
        return
    yield causes.unsupported(path, value, allowed)


def _object_errors(value: Any, schema: Tree, path: str) -> Iterator[Cause]:
    if not isinstance(value, dict):
        return
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    yield from _count_errors(len(value), schema, path, ("minProperties", "maxProperties", "properties"))
    for key in schema.get("required") or ():
        if key not in value:
            yield causes.required(below(path, key))
    for key, child in value.items():
        found = properties.get(key, more if isinstance(more, dict) else None)
        if found is not None:
            yield from errors(child, found, below(path, key))


def below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


Check = Callable[[Any, Tree, str], Iterator[Cause]]
CHECKS: Final[tuple[Check, ...]] = (
    _type_errors,
    _combination_errors,
    _text_errors,
    _number_errors,
    _list_errors,
    _enum_errors,
    _object_errors,
)
