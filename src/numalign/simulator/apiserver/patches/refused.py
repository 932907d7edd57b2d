"""Why a patch is not applied; the API server makes a Status out of it.

A patch that cannot be read or does not fit is `BadPatch`, with the code and the words the real server has for it; an
apply that would take fields away from another manager is `ApplyConflict`, with one cause per field."""

from __future__ import annotations

from typing import Final, NamedTuple

# What the real server says of every JSON patch that does not apply; the reason stays in its log.
REJECTED: Final = "the server rejected our request due to an error in our request"


class FieldConflict(NamedTuple):
    """A field, and who holds it in the words of the message: `"x" using apps/v1`."""

    manager: str
    field: str


class BadPatch(Exception):
    def __init__(self, message: str, code: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class ApplyConflict(Exception):
    """409 Conflict; `causes` have the reason FieldManagerConflict and the message `conflict with <manager>`."""

    def __init__(self, causes: list[FieldConflict]) -> None:
        self.causes = causes
        self.message = _message(causes)
        super().__init__(self.message)


def _message(causes: list[FieldConflict]) -> str:
    if len(causes) == 1:
        return f"Apply failed with 1 conflict: conflict with {causes[0].manager}: {causes[0].field}"
    lines = []
    for manager in dict.fromkeys(cause.manager for cause in causes):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {cause.field}" for cause in causes if cause.manager == manager]
    return f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
