"""The values of a parsed file, each with its path; and durations (15s, 1m30s, 500ms, 1.5h).

Readers of machine files and of kubelet and scheduler configurations use these functions instead of indexing YAML or
JSON, so that every error is a BadObject that names the file and the field. An absent key and a null are the same, as in
Kubernetes."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, TypeVar

from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import cpuset, quantity

INT32_MAX = 2**31 - 1

Choice = TypeVar("Choice", bound=str)


class Field(Struct, frozen=True):
    """One value: its path, its file, and the kind of the file."""

    value: object
    path: str
    kind: str
    source: str

    @property
    def given(self) -> bool:
        return self.value is not None

    def bad(self, why: str) -> errors.BadObject:
        return errors.BadObject(self.kind, self.source, self.path, why)

    def at(self, key: str) -> Field:
        """A field with a name of its own; its value is None where the file does not have it."""
        return Field(mapping(self).get(key), self.path_to(key), self.kind, self.source)

    def inside(self, key: str, value: object) -> Field:
        """An element of a list or of a mapping whose keys are the user's."""
        return Field(value, f"{self.path}[{_shown(key)}]", self.kind, self.source)

    def unknown(self, key: str, why: str) -> errors.BadObject:
        return errors.BadObject(self.kind, self.source, self.path_to(_shown(key)), why)

    def path_to(self, key: str) -> str:
        """The path of a field below this one; an empty key is this field."""
        return f"{self.path}.{key}" if self.path and key else self.path or key


def root(value: object, kind: str, source: str) -> Field:
    return Field(value, "", kind, source)


def mapping(field: Field) -> Mapping[object, object]:
    if not isinstance(field.value, Mapping):
        raise field.bad(f"{errors.echo(field.value)} is not a mapping of names to values")
    return field.value


def named(field: Field) -> dict[str, object]:
    """A mapping whose keys are text, as those of all Kubernetes objects are."""
    return {_key_text(field, key): value for key, value in mapping(field).items()}


def entries(field: Field) -> Iterator[tuple[str, Field]]:
    """Keys and values of a mapping whose keys are the user's; nothing where the file does not have it."""
    for key, value in mapping(field).items() if field.given else ():
        name = _key_text(field, key)
        yield name, field.inside(name, value)


def items(field: Field) -> Iterator[Field]:
    """The elements of a list; nothing where the file does not have it."""
    if field.given and not isinstance(field.value, list | tuple):
        raise field.bad(f"{errors.echo(field.value)} is not a list")
    for index, value in enumerate(field.value if isinstance(field.value, list | tuple) else ()):
        yield field.inside(str(index), value)


def only(field: Field, known: Collection[str]) -> None:
    """Refuses unknown keys: a misspelt one would silently have no effect."""
    for problem in unknown(field, known):
        raise problem


def unknown(field: Field, known: Collection[str]) -> Iterator[errors.BadObject]:
    for key in mapping(field):
        if key not in known:
            name = _key_text(field, key)
            yield field.unknown(name, f"no field of this name; {suggestion(name, known)}")


def of_kind(field: Field, api_version: str, kind: str) -> None:
    """Refuses a file of another kind or without a kind."""
    for key, expected in (("apiVersion", api_version), ("kind", kind)):
        written = field.at(key)
        if not written.given:
            raise written.bad(f'missing; add "{key}: {expected}"')
        if text(written) != expected:
            raise written.bad(f"{errors.echo(written.value)} is not {expected}, the only one that can be read")


def suggestion(name: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(name[: errors.ECHO_LIMIT], known, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def text(field: Field) -> str:
    """A string. As in Kubernetes, 1 is not accepted for "1", nor true for "true"."""
    if not field.given:
        raise field.bad("missing; a text is wanted here")
    if not isinstance(field.value, str):
        advice = "; put it in quotes" if isinstance(field.value, int | float) else ""
        raise field.bad(f"{errors.echo(field.value)} is not text{advice}")
    return field.value


def one_of(field: Field, choices: Collection[Choice], default: Choice) -> Choice:
    written = text(field) if field.given else ""
    chosen = next((choice for choice in choices if choice == (written or default)), None)
    if chosen is None:
        raise field.bad(f"{errors.echo(written)} is not one of {', '.join(choices)}")
    return chosen


def integer(field: Field, low: int, high: int) -> int:
    if not isinstance(field.value, int) or isinstance(field.value, bool):
        raise field.bad(f"{errors.echo(field.value)} is not a whole number; write one from {low} to {high}")
    if not low <= field.value <= high:
        raise field.bad(f"{errors.echo(field.value)} is not between {low} and {high}")
    return field.value


def boolean(field: Field) -> bool:
    if not isinstance(field.value, bool):
        raise field.bad(f"{errors.echo(field.value)} is neither true nor false")
    return field.value


def amount(field: Field) -> quantity.Quantity:
    if not isinstance(field.value, str | int | float):
        raise field.bad(f"{errors.echo(field.value)} is not a quantity; {quantity.HELP}")
    try:
        return quantity.parse(field.value)
    except quantity.QuantityError as error:
        raise field.bad(str(error)) from None


def whole_bytes(field: Field) -> int:
    size = amount(field)
    if not quantity.ZERO <= size <= quantity.of(quantity.INT64_MAX) or not size.is_whole:
        raise field.bad(f'{errors.echo(field.value)} is not a number of bytes; write one like "64Gi"')
    return size.value


def cpus(field: Field) -> int:
    """A CPU set in list format; a single CPU may be a bare number, which is what YAML makes of it."""
    written = field.value
    if isinstance(written, int) and not isinstance(written, bool):
        return 1 << integer(field, 0, cpuset.MAX_CPU)
    try:
        return cpuset.parse(text(field))
    except cpuset.CPUSetError as error:
        raise field.bad(str(error)) from None


def _key_text(field: Field, key: object) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, int) and not isinstance(key, bool):
        return errors.echo(key)
    raise field.unknown(errors.echo(key), "the key is not text; put it in quotes")


def _shown(key: str) -> str:
    return (key if key and key.isprintable() else ascii(key))[: errors.ECHO_LIMIT]


SECONDS_PER_UNIT: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
DURATION_PART: Final = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?|\.[0-9]{1,18})(ns|us|µs|μs|ms|s|m|h)")
DURATION: Final = re.compile(rf"[+-]?(?:0|(?:{DURATION_PART.pattern})+)")
LONGEST_DURATION: Final = 9.0e9
"""Close to what 64 bits of nanoseconds can hold."""


def duration(field: Field, default: float) -> float:
    """Seconds; the default where the field is absent or 0."""
    return (duration_seconds(field) if field.given else 0.0) or default


def duration_seconds(field: Field) -> float:
    written = text(field)
    total = seconds(written)
    if total is None:
        raise field.bad(f"{errors.echo(written)} is not a length of time; write one like 15s, 1m30s or 500ms")
    if abs(total) > LONGEST_DURATION:
        raise field.bad(f"{errors.echo(written)} is longer than can be counted")
    return total


def seconds(written: str) -> float | None:
    """The seconds of a length of time, as Go writes it; None: it is none."""
    if not DURATION.fullmatch(written):
        return None
    total = sum(float(count) * SECONDS_PER_UNIT[unit] for count, unit in DURATION_PART.findall(written))
    return -total if written.startswith("-") else total


def duration_text(seconds: float) -> str:
    """As it would be written: 90 is 1m30s."""
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    parts = [(hours, "h"), (minutes, "m"), (rest, "s")]
    return "".join(f"{count:g}{unit}" for count, unit in parts if count) or "0s"
