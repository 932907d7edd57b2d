"""Text formats of schemas, patterns, and how values look in messages.

`validating` asks. Of the formats only those are checked that people use and that are cheap to check; any other is
taken as it comes, as the server does with formats it does not know."""

from __future__ import annotations

import base64
import binascii
import functools
import ipaddress
import json
import re
from collections.abc import Callable
from typing import Any, Final

WIDTHS: Final = {"int32": 31, "int64": 63}
DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
DURATION: Final = re.compile(
    r"-?(\d+(\.\d*)?\s*(ns|us|µs|ms|s|m|h|d|w|nanoseconds?|seconds?|minutes?|hours?|days?)\s*)+"
)
UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
LABEL: Final = r"[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?"
HOSTNAME: Final = re.compile(rf"{LABEL}(\.{LABEL})*")


def fits(form: str, text: str) -> bool:
    check = CHECKS.get(form)
    return check is None or check(text)


def matches(pattern: str, text: str) -> bool:
    compiled = _compiled(pattern)
    return compiled is None or compiled.search(text) is not None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    """None for what Go understands and Python does not; such a pattern is not enforced."""
    try:
        # In Go a bare dollar is the very end of the text, in Python also the place before a last newline.
        return re.compile(re.sub(r"(?<!\\)\$", r"\\Z", pattern), re.ASCII)
    except re.error:
        return None


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return bool(text)


def _is_address(kind: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            kind(text)
        except ValueError:
            return False
        return True

    return check


CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "date-time": lambda text: DATE_TIME.fullmatch(text) is not None,
    "date": lambda text: DATE.fullmatch(text) is not None,
    "duration": lambda text: DURATION.fullmatch(text) is not None,
    "uuid": lambda text: UUID.fullmatch(text) is not None,
    "hostname": lambda text: HOSTNAME.fullmatch(text) is not None,
    "byte": _is_base64,
    "ipv4": _is_address(ipaddress.IPv4Address),
    "ipv6": _is_address(ipaddress.IPv6Address),
    "cidr": _is_address(ipaddress.ip_network),
}


def shown(value: Any) -> str:
    """A value within a message."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def number(value: float) -> str:
    """Without a fraction that says nothing."""
    return str(int(value)) if float(value).is_integer() else str(value)
