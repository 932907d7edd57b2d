"""Validates a value against the OpenAPI schema of a custom resource, with the real server's messages.

`structural.errors` calls `quick_check` first: functions compiled once per schema that say whether an object is
certainly valid. Thousands of nodes write valid objects all the time. For rare schema keywords the quick check says no,
and `errors` decides; a yes is always right. The messages, their order and the field paths are those of the real server,
including `<nil>` for problems without a path.

Only formats that are in use and cheap are checked; other formats are accepted, as the server accepts those that it does
not know. CEL rules are not run."""

import base64
import binascii
import ipaddress
import math
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from numalign.simulator.apiserver.schemas import fielderrors, patterns
from numalign.simulator.apiserver.storage.errors import StatusCause
from numalign.simulator.trees import Tree

WIDTHS: Final = {"int32": 31, "int64": 63}
DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
DURATION: Final = re.compile(
    r"-?(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|h|d|w|nanoseconds?|seconds?|minutes?|hours?|days?)\s*)+"
)
UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
HOSTNAME: Final = re.compile(rf"{LABEL}(\.{LABEL})*")
WRONG_TYPE: Final = "FieldValueTypeInvalid"
UNPLACED: Final = "<nil>"
TYPES: Final[dict[type, str]] = {float: "number", str: "string", list: "array", dict: "object"}
ValueCheck = Callable[[Any, Tree, str], Iterator[StatusCause]]
QuickCheck = Callable[[Any], bool]
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


def fits_format(form: str, text: str) -> bool:
    check = FORMATS.get(form)
    return check is None or check(text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _is_address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": lambda text: DATE_TIME.fullmatch(text) is not None,
    "date": lambda text: DATE.fullmatch(text) is not None,
    "duration": lambda text: DURATION.fullmatch(text) is not None,
    "uuid": lambda text: UUID.fullmatch(text) is not None,
    "hostname": lambda text: HOSTNAME.fullmatch(text) is not None,
    "byte": _is_base64,
    "ipv4": _is_address(ipaddress.IPv4Address),
    "ipv6": _is_address(ipaddress.IPv6Address),
    "cidr": _is_address(ipaddress.ip_network),
}


def number_text(value: float) -> str:
    """A number without a zero fraction."""
    return str(int(value)) if float(value).is_integer() else str(value)


def errors(value: Any, schema: Tree, path: str = "") -> Iterator[StatusCause]:
    """Every error of a value and of the values below it."""
    for check in CHECKS:
        yield from check(value, schema, path)


def invalid(path: str, value: Any, why: str) -> StatusCause:
    return fielderrors.invalid(path, value, f"{path} in body {why}")


def type_of(value: Any) -> str:
    """The JSON schema type; a number without fraction is an integer, however it was written."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    return TYPES[type(value)]


def _type_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    allowed = ["integer", "string"] if schema.get("x-kubernetes-int-or-string") else [schema.get("type") or ""]
    found = type_of(value)
    fits = found in allowed or (found == "integer" and "number" in allowed) or allowed == [""]
    if fits or (value is None and schema.get("nullable")):
        return
    yield wrong_type(path, found, ",".join(allowed), found)
    if found == "number" and "integer" in allowed and len(allowed) == 1:
        yield _unplaced(f"Checked value must be of type integer (default format) in {path}")


def wrong_type(path: str, value: Any, wanted: str, shown: str) -> StatusCause:
    why = f'{path} in body must be of type {wanted}: "{shown}"'
    return StatusCause(path or UNPLACED, WRONG_TYPE, f"Invalid value: {fielderrors.quoted(value)}: {why}")


def _unplaced(why: str) -> StatusCause:
    return fielderrors.invalid(UNPLACED, "", why)


def _combination_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    """anyOf and oneOf also report the errors of their first alternative, the likeliest one."""
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


def _text_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    if not isinstance(value, str):
        return
    longest, shortest, pattern = (schema.get(key) for key in ("maxLength", "minLength", "pattern"))
    if longest is not None and len(value) > longest:
        yield fielderrors.too_long(path, longest)
    elif shortest is not None and len(value) < shortest:
        yield invalid(path, value, f"should be at least {shortest} chars long")
    elif pattern and not patterns.matches(pattern, value):
        yield invalid(path, value, f"should match '{pattern}'")
    form = schema.get("format") or ""
    if not fits_format(form, value):
        yield wrong_type(path, value, form, value)


def _number_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    form = schema.get("format") or ""
    if form in WIDTHS and not -(2 ** WIDTHS[form]) <= value < 2 ** WIDTHS[form]:
        yield _unplaced(f"Checked value must be of type integer with format {form} in {path}")
        return
    step, most, least = (schema.get(key) for key in ("multipleOf", "maximum", "minimum"))
    if step and not math.isclose(value / step, round(value / step), abs_tol=1e-9):
        yield invalid(path, value, f"should be a multiple of {number_text(step)}")
    if most is not None and (value > most or (schema.get("exclusiveMaximum") and value == most)):
        words = "less than" if schema.get("exclusiveMaximum") else "less than or equal to"
        yield invalid(path, value, f"should be {words} {number_text(most)}")
    if least is not None and (value < least or (schema.get("exclusiveMinimum") and value == least)):
        words = "greater than" if schema.get("exclusiveMinimum") else "greater than or equal to"
        yield invalid(path, value, f"should be {words} {number_text(least)}")


def _list_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    if not isinstance(value, list):
        return
    for index, item in enumerate(value):
        yield from errors(item, schema.get("items") or {}, f"{path}[{index}]")
    yield from _count_errors(len(value), schema, path, ("minItems", "maxItems", "items"))


def _count_errors(count: int, schema: Tree, path: str, words: tuple[str, str, str]) -> Iterator[StatusCause]:
    fewest, most = schema.get(words[0]), schema.get(words[1])
    if fewest is not None and count < fewest:
        yield invalid(path, count, f"should have at least {fewest} {words[2]}")
    if most is not None and count > most:
        yield StatusCause(path, "FieldValueTooMany", f"Too many: {count}: must have at most {most} items")


def _enum_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    allowed = schema.get("enum")
    if not allowed or any(value == each and type_of(value) == type_of(each) for each in allowed):
        return
    yield fielderrors.unsupported(path, value, allowed)


def _object_errors(value: Any, schema: Tree, path: str) -> Iterator[StatusCause]:
    if not isinstance(value, dict):
        return
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    yield from _count_errors(len(value), schema, path, ("minProperties", "maxProperties", "properties"))
    for key in schema.get("required") or ():
        if key not in value:
            yield fielderrors.required(below(path, key))
    for key, child in value.items():
        found = properties.get(key, more if isinstance(more, dict) else None)
        if found is not None:
            yield from errors(child, found, below(path, key))


def below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


CHECKS: Final[tuple[ValueCheck, ...]] = (
    _type_errors,
    _combination_errors,
    _text_errors,
    _number_errors,
    _list_errors,
    _enum_errors,
    _object_errors,
)


def quick_check(schema: Tree) -> QuickCheck:
    """True only for a valid value."""
    is_either = bool(schema.get("x-kubernetes-int-or-string"))
    unclear = any(schema.get(word) for word in RARE)
    if unclear or schema.get("anyOf", EITHER) != EITHER or ("anyOf" in schema and not is_either):
        return _never
    if is_either:
        return _either(schema)
    return MAKERS.get(schema.get("type") or "", _anything)(schema)


def _never(value: Any) -> bool:
    return False


def _anything(schema: Tree) -> QuickCheck:
    # Without a type, only an object with declared fields can be invalid.
    return _never if schema.get("properties") or schema.get("pattern") or schema.get("items") else lambda value: True


def _either(schema: Tree) -> QuickCheck:
    is_text = _text(schema)
    return lambda value: is_text(value) if type(value) is str else type(value) is int


def _text(schema: Tree) -> QuickCheck:
    pattern, form = schema.get("pattern") or "", schema.get("format") or ""
    if not pattern and form not in FORMATS:
        return lambda value: type(value) is str
    return lambda value: (
        type(value) is str and fits_format(form, value) and (not pattern or patterns.matches(pattern, value))
    )


def _integer(schema: Tree) -> QuickCheck:
    limit = 2 ** WIDTHS.get(schema.get("format") or "", 63)
    return lambda value: type(value) is int and -limit <= value < limit


def _number(schema: Tree) -> QuickCheck:
    return lambda value: type(value) in (int, float)


def _boolean(schema: Tree) -> QuickCheck:
    return lambda value: type(value) is bool


def _list(schema: Tree) -> QuickCheck:
    if schema.get("x-kubernetes-list-type") in ("set", "map"):
        return _never
    fits = quick_check(schema.get("items") or {})
    return lambda value: type(value) is list and all(map(fits, value))


def _object(schema: Tree) -> QuickCheck:
    fields = {key: quick_check(sub) for key, sub in (schema.get("properties") or {}).items()}
    required = frozenset(schema.get("required") or ())
    more = schema.get("additionalProperties")
    other = quick_check(more) if isinstance(more, dict) else None

    def fits(value: Any) -> bool:
        if type(value) is not dict or not required <= value.keys():
            return False
        for key, child in value.items():
            rule = fields.get(key, other)
            if rule is not None and not rule(child):
                return False
        return True

    return fits


MAKERS: Final[dict[str, Callable[[Tree], QuickCheck]]] = {
    "string": _text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _list,
    "object": _object,
}
