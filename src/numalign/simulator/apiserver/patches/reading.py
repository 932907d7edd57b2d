"""Whether a decoded patch is of the form its kind asks for.

The API server calls `checked` between decoding a body and applying it; JSON that cannot be decoded at all is
`UNREADABLE` for it. The words are those of the real server, which names its own Go types."""

from __future__ import annotations

from typing import Any, Final

from numalign.simulator.apiserver.patches import gotext
from numalign.simulator.apiserver.patches.refused import BadPatch

UNREADABLE: Final = "invalid JSON patch"
OPERATION: Final = "handlers.jsonPatchOp"
OBJECT: Final = "map[string]interface {}"
DECODING: Final = {
    "json": "error decoding patch: ",
    "merge": "error decoding patch: ",
    "strategic": "",
    "apply": "error decoding patch: error unmarshaling JSON: while decoding JSON: ",
}


def checked(how: str, body: Any) -> Any:
    """The patch, where null means nothing to do; BadPatch if it is something else than its kind is made of."""
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
