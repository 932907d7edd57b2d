"""Draws what the deployer did or would do: changes of objects, their state, and findings.

The commands of `numalign deploy` call it for text; JSON and YAML print the same structs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from numalign.cli.display.formats import Page
from numalign.deploy.apply.applying import Change, without_values
from numalign.deploy.apply.differences import FieldChange
from numalign.deploy.apply.waiting import Standing

SIGNS: Final = {"created": "+", "configured": "~", "pruned": "-", "skipped": " ", "kept": " "}
LONGEST: Final = 300
"""Characters of a value that are printed."""


def plain_change(change: Change) -> dict[str, Any]:
    """For JSON and YAML; values of Secrets are left out."""
    hidden = without_values(change)
    return {
        "action": hidden.action,
        **object_of(hidden),
        "why": hidden.why,
        "fields": [
            {"field": each.field, "change": each.kind, "old": each.old, "new": each.new} for each in hidden.fields
        ],
    }


def object_of(change: Any) -> dict[str, Any]:
    found = change.object
    return {"apiVersion": found.api_version, "kind": found.kind, "namespace": found.namespace, "name": found.name}


def diff_text(changes: Iterable[Change]) -> str:
    """One line per object that would change, and below it its fields."""
    lines: list[str] = []
    for change in map(without_values, changes):
        if change.action == "unchanged":
            continue
        lines.append(f"{SIGNS[change.action]} {change.object}" + (f" ({change.why})" if change.why else ""))
        for each in change.fields:
            lines += field_lines(each)
    return "\n".join(lines)


def field_lines(change: FieldChange) -> Sequence[str]:
    old, new = change.old, change.new
    if isinstance(old, str) and isinstance(new, str) and "\n" in old + new:
        # The heads of the unified form name files, and there are none.
        difference = list(difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1))[2:]
        return [f"    {change.field}:", *(f"      {line}" for line in difference)]
    words = {"changed": f"{_value(old)} -> {_value(new)}", "added": f"+ {_value(new)}", "removed": f"- {_value(old)}"}
    return [f"    {change.field}: {words[change.kind]}"]


def _value(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def standing_text(found: Sequence[Standing]) -> str:
    page = Page()
    table = page.table("OBJECT", "READY", "STATE")
    for each in found:
        table.add_row(each.object, "yes" if each.ready else "no", each.words)
    page.add(table)
    return page.text()


def summary_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {action}" for action, count in counts.items()) or "nothing to do"
