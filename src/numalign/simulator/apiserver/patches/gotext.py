"""Values as Go prints them, for messages of the real server that quote them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def value(shown: Any) -> str:
    """`map[a:1 b:[x y]]`."""
    if isinstance(shown, dict):
        return "map[" + " ".join(f"{key}:{value(shown[key])}" for key in sorted(shown)) + "]"
    if isinstance(shown, list):
        return "[" + " ".join(map(value, shown)) + "]"
    if isinstance(shown, bool):
        return "true" if shown else "false"
    return "<nil>" if shown is None else str(shown)


JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}


def json_type(shown: Any) -> str:
    """The type of a decoded value, as Go's JSON decoder names it in errors."""
    return JSON_TYPES[type(shown)]


def type_name(shown: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return "map[string]interface {}" if isinstance(shown, dict) else names.get(type(shown), "%!s(<nil>)")


KINDS: Final = {"number": "int64", "array": "slice", "object": "map"}


def unfit(got: str, wanted: str) -> str:
    """Why a value of one JSON type cannot become one of a Go type; nothing where that is not the matter."""
    kind = KINDS.get(got, got)
    if wanted.startswith("[]"):
        return f"cannot restore slice from {kind}"
    if wanted.startswith("map[") or wanted == "v1.ResourceList":
        return f"cannot restore map from {kind}"
    if wanted.startswith("v1."):
        return f"cannot restore struct from: {kind}"
    if (got, wanted) == ("number", "string"):
        return "cannot convert int64 to string"
    return f"unrecognized type: {wanted}" if wanted else ""


def json(shown: Any) -> str:
    """With sorted keys, and escapes for what could be mistaken for HTML."""
    return msgspec.json.encode(shown, order="sorted").decode().translate(ESCAPES)
