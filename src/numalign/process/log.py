"""Logs of a process: one line per record, as text or JSON, with a verbosity that can change at run time.

Modules log with `logging.getLogger(__name__)`. Structured fields come as `extra=about(pod=..., uid=..., node=...)`, so
that one key finds all lines about one pod. Verbosity numbers are klog's (`-v 4` is debugging). `set_verbosity` sets the
verbosity of the process; `add_rule` sets another one for one pod, one node or one component, until it expires. The
scheduler's page /debug/flags/v and `numalign scheduler log set` call both; SIGUSR1 has any process log debug lines."""

from __future__ import annotations

import logging
import re
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, TextIO

import msgspec
from msgspec import Struct

Form = Literal["text", "json"]
DEBUGGING: Final = 4
"""The verbosity from which debug lines are logged, as for klog."""
ROOT: Final = "numalign"
COMPONENT: Final = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")
MOST_RULES: Final = 64
DEBUG_SECONDS: Final = 600.0
LOG: Final = logging.getLogger(__name__)


class VerbosityRule(Struct, frozen=True, kw_only=True):
    """The verbosity of the records that match all given fields; without fields, of all records."""

    verbosity: int
    component: str = ""
    """A package or module below `numalign`, such as scheduler.bind."""
    pod: str = ""
    """NAMESPACE/NAME, or a uid."""
    node: str = ""
    until: float = float("inf")
    """Monotonic seconds."""

    @property
    def selector(self) -> tuple[str, str, str]:
        return self.component, self.pod, self.node

    def matches(self, record: logging.LogRecord) -> bool:
        fields: dict[str, object] = getattr(record, "about", {})
        return (
            (not self.component or f"{record.name}.".startswith(f"{ROOT}.{self.component}."))
            and (not self.pod or self.pod in (fields.get("pod"), fields.get("uid")))
            and (not self.node or self.node == fields.get("node"))
        )


def is_component(name: str) -> bool:
    """Whether there is such a package or module below `numalign`. Nothing is imported: the name may be a stranger's."""
    if not COMPONENT.fullmatch(name):
        return False
    *packages, last = name.split(".")
    place = Path(__file__).parents[1].joinpath(*packages)
    return (place / last).is_dir() or (place / f"{last}.py").is_file()


class TooManyRules(ValueError):
    """More rules than anyone can follow."""


class Verbosity(logging.Filter):
    """Decides which records are logged. The newest rule that matches a record counts, else the verbosity of the
    process. Debug records are made only while the process or a rule asks for them."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self.base = 2
        self._rules: list[VerbosityRule] = []

    def set(self, verbosity: int) -> None:
        self.base = verbosity
        self._apply()

    def rule(self, verbosity: int, seconds: float, **fields: str) -> VerbosityRule:
        """A rule that ends after so many seconds; not in force yet."""
        return VerbosityRule(verbosity=verbosity, until=self._now() + seconds, **fields)

    def add(self, rule: VerbosityRule) -> None:
        """Replaces an earlier rule with the same fields."""
        others = [each for each in self.rules() if each.selector != rule.selector]
        if len(others) >= MOST_RULES:
            raise TooManyRules(f"{MOST_RULES} rules are set already; wait until one expires, or end one")
        self._rules = [*others, rule]
        self._apply()

    def remove(self, selector: tuple[str, str, str]) -> bool:
        """Whether a rule had these fields."""
        before = self.rules()
        self._rules = [each for each in before if each.selector != selector]
        self._apply()
        return len(self._rules) < len(before)

    def rules(self) -> list[VerbosityRule]:
        """The rules in force, the oldest first."""
        now = self._now()
        if any(each.until <= now for each in self._rules):
            self._rules = [each for each in self._rules if each.until > now]
            self._apply()
        return self._rules

    def filter(self, record: logging.LogRecord) -> bool:
        verbosity = next((each.verbosity for each in reversed(self.rules()) if each.matches(record)), self.base)
        return record.levelno >= _level(verbosity)

    def _apply(self) -> None:
        most = max((self.base, *(each.verbosity for each in self._rules)))
        logging.getLogger(ROOT).setLevel(_level(most))


VERBOSITY: Final = Verbosity()


def start(form: Form = "text", verbosity: int = 2, stream: TextIO | None = None) -> None:
    """Call once, before the first line is logged."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form))
    handler.addFilter(VERBOSITY)
    logger = logging.getLogger(ROOT)
    logger.handlers[:] = [handler]
    logger.propagate = False
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    VERBOSITY.set(verbosity)


def toggle_debugging() -> None:
    """Logs debug lines for ten minutes; ends that where it is so already. Processes call it on SIGUSR1, for those that
    have no page to set the verbosity by."""
    rule = VERBOSITY.rule(DEBUGGING, DEBUG_SECONDS)
    if VERBOSITY.remove(rule.selector):
        LOG.info("Debug lines are not logged any more")
    else:
        VERBOSITY.add(rule)
        LOG.info("Debug lines are logged for %d s; another SIGUSR1 ends that", DEBUG_SECONDS)


def about(**fields: object) -> dict[str, Any]:
    """As `extra` of a line: LOG.info("bound", extra=about(pod="default/web", node="worker-7"))."""
    return {"about": fields}


class Lines(logging.Formatter):
    def __init__(self, form: Form) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        fields: dict[str, object] = getattr(record, "about", {})
        message = _one_line(record.getMessage())
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._form == "json":
            line = {"time": moment, "level": record.levelname.lower(), "logger": record.name, "message": message}
            return msgspec.json.encode(line | fields | ({"trace": trace} if trace else {}), enc_hook=str).decode()
        pairs = "".join(f" {name}={_value(value)}" for name, value in fields.items())
        return f"{moment} {record.levelname[0]} {record.name}: {message}{pairs}" + (f"\n{trace}" if trace else "")


def _level(verbosity: int) -> int:
    return logging.DEBUG if verbosity >= DEBUGGING else logging.INFO


def _value(value: object) -> str:
    """Quoted where it has blanks, so that it does not run into the next field."""
    text = _one_line(str(value))
    return f'"{text}"' if " " in text else text


def _one_line(text: str) -> str:
    """Escapes line ends, so that foreign text cannot forge a log line."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
