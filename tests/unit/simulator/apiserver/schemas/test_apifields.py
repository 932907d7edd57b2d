"""The tool that makes the table of built-in fields."""

import json
from pathlib import Path
from typing import Any

from tools import apifields

POD: dict[str, Any] = {
    "description": "prose",
    "type": "object",
    "properties": {
        "spec": {"description": "prose", "default": {}, "allOf": [{"$ref": "#/components/schemas/a.Spec"}]},
        "description": {"type": "string", "description": "prose"},
    },
    "x-kubernetes-group-version-kind": [
        {"group": "", "version": "v1", "kind": "Pod"},
        {"group": "", "version": "v0", "kind": "Pod"},
    ],
}
SPEC = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string", "x-other": 1}}}}


def test_only_facts_about_what_is_served_are_kept(tmp_path: Path) -> None:
    schemas = {"a.Pod": POD, "a.Spec": SPEC, "a.Unused": {"type": "object"}}
    (tmp_path / "api__v1.json").write_text(json.dumps({"components": {"schemas": schemas}}))
    assert apifields.table(tmp_path) == {
        "a.Pod": {
            "type": "object",
            "properties": {"spec": {"$ref": "a.Spec", "default": {}}, "description": {"type": "string"}},
            "x-kubernetes-group-version-kind": [["", "v1", "Pod"]],
        },
        "a.Spec": {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}},
    }
