"""Patches that are not what their kind is made of, in the words of a real server."""

from typing import Any

import pytest

from numalign.simulator.apiserver.patches import BadPatch, errors

OBJECT = "into Go value of type map[string]interface {}"
BAD: dict[str, tuple[str, Any, str]] = {
    "object for operations": (
        "json",
        {"op": "add"},
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
    ),
    "number for an operation": (
        "json",
        [5],
        "error decoding patch: json: cannot unmarshal number into Go value of type handlers.jsonPatchOp",
    ),
    "number for a name": (
        "json",
        [{"op": 5, "path": "/a"}],
        "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
    ),
    "list to merge": ("merge", [], f"error decoding patch: json: cannot unmarshal array {OBJECT}"),
    "null to merge": ("merge", None, "Invalid JSON Patch"),
    "boolean to merge by strategy": ("strategic", True, f"json: cannot unmarshal bool {OBJECT}"),
    "text to apply": (
        "apply",
        "x",
        f"error decoding patch: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string {OBJECT}",
    ),
}


@pytest.mark.parametrize("how, body, words", BAD.values(), ids=BAD)
def test_a_patch_of_the_wrong_form_is_refused(how: str, body: Any, words: str) -> None:
    with pytest.raises(BadPatch) as refused:
        errors.checked_body(how, body)
    assert (refused.value.code, refused.value.message) == (400, words)


GOOD: dict[str, tuple[str, Any, Any]] = {
    "operations": ("json", [{"op": "test", "path": ""}], [{"op": "test", "path": ""}]),
    "no operations": ("json", None, []),
    "an operation that will not apply": ("json", [None], [{}]),
    "merge": ("merge", {"a": None}, {"a": None}),
    "nothing to merge by strategy": ("strategic", None, {}),
    "nothing to apply": ("apply", None, {}),
}


@pytest.mark.parametrize("how, body, patch", GOOD.values(), ids=GOOD)
def test_a_patch_of_the_right_form_passes(how: str, body: Any, patch: Any) -> None:
    assert errors.checked_body(how, body) == patch
