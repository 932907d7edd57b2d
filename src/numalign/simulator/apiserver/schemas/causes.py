"""Field errors: one cause for each way in which a field of an object or of a query can be wrong.

Validation, schemas and the verbs build causes with these functions, whose sentences are those of the API machinery's
`field.Error`. `refusals.invalid` makes a 422 out of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from numalign.simulator.apiserver.schemas import formats
from numalign.simulator.apiserver.storage.errors import Cause

NO_NAME: Final = Cause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")


def required(path: str, why: str = "") -> Cause:
    return Cause(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def forbidden(path: str, why: str) -> Cause:
    return Cause(path, "FieldValueForbidden", f"Forbidden: {why}")


def invalid(path: str, value: Any, why: str) -> Cause:
    return Cause(path, "FieldValueInvalid", f"Invalid value: {formats.shown(value)}: {why}")


def unsupported(path: str, value: Any, known: Iterable[Any]) -> Cause:
    named = ", ".join(f'"{each}"' if isinstance(each, str) else f'"{formats.shown(each)}"' for each in known)
    return Cause(
        path, "FieldValueNotSupported", f"Unsupported value: {formats.shown(value)}: supported values: {named}"
    )


def duplicate(path: str, value: Any) -> Cause:
    return Cause(path, "FieldValueDuplicate", f"Duplicate value: {formats.shown(value)}")


def missing(path: str, value: Any) -> Cause:
    """The field refers to something that does not exist."""
    return Cause(path, "FieldValueNotFound", f"Not found: {formats.shown(value)}")


def too_long(path: str, most: int) -> Cause:
    return Cause(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")
