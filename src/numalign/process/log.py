"""Logs of a process: one line per record, as text or JSON, with a level that can change at run time.

Modules log with `logging.getLogger(__name__)`. Structured fields come as `extra=about(pod=..., node=...)`, so that one
key finds all lines about one pod. Verbosity numbers are klog's (`-v 4` is debugging)."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final, Literal, TextIO

import msgspec

Form = Literal["text", "json"]
DEBUGGING: Final = 4
"""The verbosity from which debug lines are logged, as for klog."""
ROOT: Final = "numalign"


def start(form: Form = "text", verbosity: int = 2, stream: TextIO | None = None) -> None:
    """Call once, before the first line is logged."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(Lines(form))
    logger = logging.getLogger(ROOT)
    logger.handlers[:] = [handler]
    logger.propagate = False
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    logging.getLogger(ROOT).setLevel(logging.DEBUG if verbosity >= DEBUGGING else logging.INFO)


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
        pairs = "".join(f" {name}={_one_line(str(value))}" for name, value in fields.items())
        return f"{moment} {record.levelname[0]} {record.name}: {message}{pairs}" + (f"\n{trace}" if trace else "")


def _one_line(text: str) -> str:
    """Escapes line ends, so that foreign text cannot forge a log line."""
    return text if text.isprintable() else "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)
