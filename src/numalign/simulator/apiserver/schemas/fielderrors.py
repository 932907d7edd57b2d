"""Field errors: one function for each way in which a field of an object or of a query can be wrong.

Validation, schemas and the verbs call these functions, whose sentences are those of the API machinery's `field.Error`.
`storage.errors.invalid` makes a 422 out of their results."""

import json
from collections.abc import Iterable
from typing import Any, Final

from numalign.simulator.apiserver.storage.errors import StatusCause

NO_NAME: Final = StatusCause("metadata.name", "FieldValueRequired", "Required value: name or generateName is required")


def quoted(value: Any) -> str:
    """A value as error messages show it: JSON."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def required(path: str, why: str = "") -> StatusCause:
    return StatusCause(path, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def forbidden(path: str, why: str) -> StatusCause:
    return StatusCause(path, "FieldValueForbidden", f"Forbidden: {why}")


def invalid(path: str, value: Any, why: str) -> StatusCause:
    return StatusCause(path, "FieldValueInvalid", f"Invalid value: {quoted(value)}: {why}")


def unsupported(path: str, value: Any, known: Iterable[Any]) -> StatusCause:
    named = ", ".join(f'"{each}"' if isinstance(each, str) else f'"{quoted(each)}"' for each in known)
    return StatusCause(path, "FieldValueNotSupported", f"Unsupported value: {quoted(value)}: supported values: {named}")


def duplicate(path: str, value: Any) -> StatusCause:
    return StatusCause(path, "FieldValueDuplicate", f"Duplicate value: {quoted(value)}")


def missing(path: str, value: Any) -> StatusCause:
    """The field refers to something that does not exist."""
    return StatusCause(path, "FieldValueNotFound", f"Not found: {quoted(value)}")


def too_long(path: str, most: int) -> StatusCause:
    return StatusCause(path, "FieldValueTooLong", f"Too long: may not be more than {most} bytes")
