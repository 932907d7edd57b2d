"""Decoding errors and values in the words of Go's libraries, because the real server's messages quote them.

`json_error` explains why bytes are not JSON; callers use it only after msgspec failed to decode them. `decode_yaml`
decodes YAML with the error texts of the Go decoder. The other functions print values and types as Go does."""

import contextlib
import re
from typing import Any, Final

import msgspec

from numalign.api.decode import yamltext

END: Final = "unexpected end of JSON input"
SPACE: Final = re.compile(r"[ \t\r\n]*")
TEXT: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*')
WHOLE: Final = re.compile(r"-?(?:0|[1-9][0-9]*)")
HEXADECIMAL: Final = re.compile(r"u[0-9a-fA-F]*")
DIGITS: Final = re.compile(r"[0-9]*")
QUOTED: Final = {"'": r"'\''"}
LITERALS: Final = {"t": "true", "f": "false", "n": "null"}
ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
JSON_TYPES: Final[dict[type, str]] = {
    str: "string",
    bool: "bool",
    int: "number",
    float: "number",
    list: "array",
    dict: "object",
    type(None): "null",
}
KINDS: Final = {"number": "int64", "array": "slice", "object": "map"}


class JSONSyntaxError(Exception):
    """The message is the one of Go's decoder."""


def json_error(body: bytes) -> str:
    try:
        # Go's decoder reports bytes, not characters.
        _Scanner(body.decode("latin-1")).document()
    except JSONSyntaxError as found:
        return str(found)
    except RecursionError:
        return "exceeded max depth"
    return "invalid UTF-8"


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> None:
        self._value()
        self.at = self._end(SPACE)
        if self.at < len(self.text):
            raise self._odd("after top-level value")

    def _value(self) -> None:
        sign = self._next()
        if sign == "{":
            self._object()
        elif sign == "[":
            self._array()
        elif sign == '"':
            self._string()
        elif sign in LITERALS:
            self._literal(LITERALS[sign])
        elif sign in "-0123456789":
            self._number()
        else:
            raise self._odd("looking for beginning of value")

    def _object(self) -> None:
        self.at += 1
        more = self._next() != "}"
        self.at += not more
        while more:
            if self._next() != '"':
                raise self._odd("looking for beginning of object key string")
            self._string()
            if self._next() != ":":
                raise self._odd("after object key")
            self.at += 1
            self._value()
            more = self._has_more("}", "after object key:value pair")

    def _array(self) -> None:
        self.at += 1
        more = self._next() != "]"
        self.at += not more
        while more:
            self._value()
            more = self._has_more("]", "after array element")

    def _has_more(self, end: str, where: str) -> bool:
        sign = self._next()
        if sign not in (",", end):
            raise self._odd(where)
        self.at += 1
        return sign == ","

    def _string(self) -> None:
        self.at = self._end(TEXT)
        sign = self.text[self.at : self.at + 1]
        if sign == '"':
            self.at += 1
        elif not sign:
            raise JSONSyntaxError(END)
        elif sign != "\\":
            raise self._odd("in string literal")
        else:
            raise self._bad_escape()

    def _bad_escape(self) -> JSONSyntaxError:
        self.at += 1
        where = "in string escape code"
        if self.text[self.at : self.at + 1] == "u":
            where = r"in \u hexadecimal character escape"
            self.at = self._end(HEXADECIMAL)
        return self._odd(where)

    def _number(self) -> None:
        whole = WHOLE.match(self.text, self.at)
        if whole is None:
            self.at += 1
            raise self._odd("in numeric literal")
        self.at = whole.end()
        if self.text[self.at : self.at + 1] == ".":
            self.at += 1
            self._digits("after decimal point in numeric literal")
        if self.text[self.at : self.at + 1] in ("e", "E"):
            self.at += 2 if self.text[self.at + 1 : self.at + 2] in ("+", "-") else 1
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        end = self._end(DIGITS)
        if end == self.at:
            raise self._odd(where)
        self.at = end

    def _literal(self, word: str) -> None:
        for letter in word:
            if self.text[self.at : self.at + 1] != letter:
                raise self._odd(f"in literal {word} (expecting '{letter}')")
            self.at += 1

    def _next(self) -> str:
        self.at = self._end(SPACE)
        if self.at == len(self.text):
            raise JSONSyntaxError(END)
        return self.text[self.at]

    def _end(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self.text, self.at)
        return found.end() if found else self.at

    def _odd(self, where: str) -> JSONSyntaxError:
        """Go reports a blank past the end of the input."""
        sign = self.text[self.at : self.at + 1] or " "
        return JSONSyntaxError(f"invalid character {QUOTED.get(sign) or repr(sign)} {where}")


def go_value(shown: Any) -> str:
    """A value as `%v` prints it: `map[a:1 b:[x y]]`."""
    if isinstance(shown, dict):
        return "map[" + " ".join(f"{key}:{go_value(shown[key])}" for key in sorted(shown)) + "]"
    if isinstance(shown, list):
        return "[" + " ".join(map(go_value, shown)) + "]"
    if isinstance(shown, bool):
        return "true" if shown else "false"
    return "<nil>" if shown is None else str(shown)


def json_type(shown: Any) -> str:
    """The type of a decoded value, as Go's JSON decoder names it in errors."""
    return JSON_TYPES[type(shown)]


def go_type(shown: Any) -> str:
    names = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
    return "map[string]interface {}" if isinstance(shown, dict) else names.get(type(shown), "%!s(<nil>)")


def conversion_error(got: str, wanted: str) -> str:
    """Why a value of a JSON type cannot be converted to a Go type; empty if there is no such reason."""
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


def go_json(shown: Any) -> str:
    """JSON with sorted keys and HTML characters escaped, as Go's encoder writes it."""
    return msgspec.json.encode(shown, order="sorted").decode().translate(ESCAPES)


def decode_yaml(body: bytes) -> Any:
    if body[:1] == b"{":
        # Most bodies are JSON, which is also YAML and decodes a hundred times faster.
        with contextlib.suppress(msgspec.DecodeError):
            return msgspec.json.decode(body)
    try:
        # Go's decoder reads the first document and ignores the rest.
        found = yamltext.documents(body, "body", repeated_keys=True)
    except yamltext.BadYAML as problem:
        raise ValueError(f"yaml: {_yaml_line(problem)}{problem.problem}") from None
    return found[0].value if found else None


def _yaml_line(problem: yamltext.BadYAML) -> str:
    """The line number as Go's YAML decoder counts it: from 0, except for scanner errors."""
    if problem.line is None:
        return ""
    if problem.scanner:
        return f"line {problem.line + 1}: " if problem.line else ""
    return f"line {problem.line or 1}: "
