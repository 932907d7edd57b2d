"""Files of recorded plugin cases: one document with `cases`, each of a named suite, and what they share.

`replay` of the command line finds out by `recognised` whether a file is of this kind or holds vectors of the kubelet;
`load` gives its cases in their order, every one of them, ready for `suites.judging`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.oracle import loading, publisherfiles
from numalign.oracle.loading import Found
from numalign.oracle.suites.suite import Case


class Recorded(Struct, frozen=True):
    """One case, where it was, and the suite that it belongs to."""

    where: str
    suite: str
    id: str
    case: Case


def recognised(value: Any) -> bool:
    return publisherfiles.recognised(value) or (isinstance(value, Mapping) and isinstance(value.get("cases"), list))


def load(path: Path) -> list[Recorded] | None:
    """The cases of the file; None if it is a file of another kind."""
    found = next(iter(loading.values(path)), None)
    return of(found) if found is not None and recognised(found.value) else None


def of(found: Found) -> list[Recorded]:
    if publisherfiles.recognised(found.value):
        return [Recorded(f"{found.where}, {name}", name, id, case) for name, id, case in publisherfiles.rows(found)]
    cases = found.value["cases"]
    if not cases:
        raise BadObject(loading.KIND, found.where, "cases", "holds no case; give a file with recorded cases")
    fixtures = found.value.get("fixtures", {})
    return [_recorded(case, f"{found.where}, case {place}", fixtures) for place, case in enumerate(cases, start=1)]


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
