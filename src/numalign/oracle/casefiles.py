"""Reads files of recorded cases of the scheduler plugin, of Koordinator and of topology publishers.

`numalign oracle replay` calls `load`, which returns None for a file of another kind (kubelet vectors). A file holds one
document with `cases` and what they share, or one case per line. Each case names its suite."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.oracle import loading, publisherfiles
from numalign.oracle.loading import Found
from numalign.oracle.plugin.suites.suite import Case


class Recorded(Struct, frozen=True):
    """One recorded case, its place in the file, and its suite."""

    where: str
    suite: str
    id: str
    case: Case


def load(path: Path) -> list[Recorded] | None:
    """The cases of the file, or None if the file is of another kind."""
    values = iter(loading.values(path))
    found = next(values, None)
    if found is None:
        return None
    match found.value:
        case document if publisherfiles.recognised(document):
            return _some(_of_publishers(found), found.where)
        case {"cases": list(cases), **shared}:
            fixtures = shared.get("fixtures", {})
            placed = ((f"{found.where}, case {place}", case) for place, case in enumerate(cases, start=1))
            return _some([_recorded(case, where, fixtures) for where, case in placed], f"{found.where}, cases")
        case {"input": _, "expect": _}:
            return [_recorded(each.value, each.where, {}) for each in (found, *values)]
    return None


def _of_publishers(found: Found) -> list[Recorded]:
    return [Recorded(f"{found.where}, {name}", name, id, case) for name, id, case in publisherfiles.rows(found)]


def _some(cases: list[Recorded], where: str) -> list[Recorded]:
    if not cases:
        raise BadObject(loading.KIND, where, "", "holds no case; give a file with recorded cases")
    return cases


def _recorded(case: Any, where: str, fixtures: Any) -> Recorded:
    if not isinstance(case, Mapping):
        raise BadObject(loading.KIND, where, "", f"is {errors.echo(case)}; a case is a JSON object")
    for field in ("id", "input", "expect"):
        if field not in case:
            raise BadObject(loading.KIND, where, field, "is missing; the case cannot be replayed without it")
    suite = case.get("suite", case.get("group"))
    if not isinstance(suite, str):
        raise BadObject(loading.KIND, where, "suite", "is missing; it says what the case was recorded from")
    return Recorded(where, suite, str(case["id"]), {**case, "fixtures": fixtures})
