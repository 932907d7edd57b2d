"""Compares pinned requirements with a database of known vulnerabilities that is a file, where there is no network.

`make audit AUDIT_DB=all.zip` runs it; the file is OSV's export for PyPI: a zip of records in the OSV format. A record
concerns a pin if it lists the version, or a range from `introduced` to before `fixed` (or to `last_affected`) that
holds it. Exit code: 0, 1 if a pin is concerned, 2 if the database has no records."""

import json
import re
import sys
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
Pins = dict[str, set[Version]]


def pins(files: Iterable[Path]) -> Pins:
    found: Pins = {}
    for file in files:
        for name, version in PIN.findall(file.read_text()):
            found.setdefault(canonicalize_name(name), set()).add(Version(version))
    return found


def records(database: Path) -> Iterator[dict[str, Any]]:
    with zipfile.ZipFile(database) as archive:
        for name in archive.namelist():
            if name.endswith(".json"):
                yield json.loads(archive.read(name))


def concerned(record: dict[str, Any], pinned: Pins) -> Iterator[str]:
    """The pins that the record is about."""
    if record.get("withdrawn"):
        return
    for affected in record.get("affected", ()):
        package = affected.get("package", {})
        if package.get("ecosystem") != "PyPI":
            continue
        name = canonicalize_name(package.get("name", ""))
        for version in pinned.get(name, ()):
            if is_affected(affected, version):
                yield f"{name}=={version}"


def is_affected(affected: dict[str, Any], version: Version) -> bool:
    listed = {read for each in affected.get("versions", ()) if (read := parsed(each)) is not None}
    ranges = (each for each in affected.get("ranges", ()) if each.get("type") == "ECOSYSTEM")
    return version in listed or any(is_inside(each.get("events", ()), version) for each in ranges)


def is_inside(events: Iterable[dict[str, str]], version: Version) -> bool:
    """Whether the last event up to the version leaves it affected."""
    inside = False
    for event, written in sorted(
        ((kind, read) for each in events for kind, text in each.items() if (read := parsed(text)) is not None),
        key=lambda pair: (pair[1], pair[0] == "last_affected"),
    ):
        if event == "introduced" and written <= version:
            inside = True
        elif (event == "fixed" and written <= version) or (event == "last_affected" and written < version):
            inside = False
    return inside


def parsed(text: str) -> Version | None:
    try:
        return Version(text)
    except InvalidVersion:
        return None


def main(database: Path, files: Iterable[Path]) -> int:
    pinned, seen, found = pins(files), 0, False
    for record in records(database):
        seen += 1
        for pin in sorted(set(concerned(record, pinned))):
            found = True
            print(f"{pin}: {record['id']} {record.get('summary', '')}".rstrip())
    if not seen:
        print(f"{database} has no records; is it OSV's export for PyPI?", file=sys.stderr)
        return 2
    print(f"{sum(map(len, pinned.values()))} pins, {seen} records: {'see above' if found else 'none concerned'}")
    return int(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), map(Path, sys.argv[2:])))
