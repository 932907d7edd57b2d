"""The words around what is wrong with a field, common to all checks of schemas and definitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numalign.simulator.apiserver.schemas import formats
from numalign.simulator.apiserver.storage.errors import Cause


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
