"""Why a patch is rejected; the patch verb makes a Status of it.

`BadPatch` is a patch that cannot be decoded or does not apply, with the code and message of the real server.
`ApplyConflict` is an apply that would change fields of other managers, with one cause per field. `checked_body` rejects
a decoded body that does not have the form of its patch type."""

from typing import Any, Final, NamedTuple

from numalign.simulator.apiserver.schemas import gotext

SERVER_ERROR: Final = 500
# The message for every JSON patch that does not apply; the real server logs the reason.
REJECTED: Final = "the server rejected our request due to an error in our request"
UNREADABLE: Final = "invalid JSON patch"
OPERATION: Final = "handlers.jsonPatchOp"
OBJECT: Final = "map[string]interface {}"
DECODING: Final = {
    "json": "error decoding patch: ",
    "merge": "error decoding patch: ",
    "strategic": "",
    "apply": "error decoding patch: error unmarshaling JSON: while decoding JSON: ",
}


class FieldConflict(NamedTuple):
    """A field and its manager, as the message names it: `"x" using apps/v1`."""

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


def checked_body(how: str, body: Any) -> Any:
    """The patch; null means an empty one. Raises BadPatch for a body of the wrong form."""
    if how == "json":
        return _operations(body)
    if body is None and how == "merge":
        raise BadPatch("Invalid JSON Patch")
    if not isinstance(body, dict | None):
        raise _misread(how, body, f"value of type {OBJECT}")
    return body or {}


def _operations(body: Any) -> list[Any]:
    if not isinstance(body, list | None):
        raise _misread("json", body, f"value of type []{OPERATION}")
    operations = [{} if each is None else each for each in body or ()]
    for operation in operations:
        if not isinstance(operation, dict):
            raise _misread("json", operation, f"value of type {OPERATION}")
        for key in ("op", "from", "path"):
            if not isinstance(operation.get(key), str | None):
                raise _misread("json", operation[key], f"struct field jsonPatchOp.{key} of type string")
    return operations


def _misread(how: str, found: Any, wanted: str) -> BadPatch:
    return BadPatch(f"{DECODING[how]}json: cannot unmarshal {gotext.json_type(found)} into Go {wanted}")
