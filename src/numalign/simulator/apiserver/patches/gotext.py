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


def type_name(shown: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return "map[string]interface {}" if isinstance(shown, dict) else names.get(type(shown), "%!s(<nil>)")


def json(shown: Any) -> str:
    """With sorted keys, and escapes for what could be mistaken for HTML."""
    return msgspec.json.encode(shown, order="sorted").decode().translate(ESCAPES)
