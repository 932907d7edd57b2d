"""What a watcher has to see of a history: of everything that happened, the part that its selection and moment leave."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.embedded.twins import Seen, Tree

Told = tuple[str, str, str]
"""Kind of event, name and version."""


class Selected(NamedTuple):
    labels: str = ""
    fields: str = ""

    def holds(self, tree: Tree) -> bool:
        """Selectors of one equality each."""
        name, _, value = self.labels.partition("=")
        if name and tree["metadata"]["labels"].get(name) != value:
            return False
        path, _, wanted = self.fields.partition("=")
        return not path or _field(tree, path) == wanted


class Since(NamedTuple):
    version: str
    initial: bool
    """What was there at that moment comes first."""


def expected(everything: list[Seen], selected: Selected, since: Since) -> list[Told]:
    known: dict[str, Tree] = {}
    told: list[Told] = []
    for seen in everything:
        if since.initial and int(seen.version) > int(since.version):
            # The moment has come: what is there is told before what happens next.
            told, since = _present(known, selected), since._replace(initial=False)
        change = _change(known.get(seen.name), seen, selected)
        if change and int(seen.version) > int(since.version):
            told.append((change, seen.name, seen.version))
        known[seen.name] = seen.tree
        if seen.kind == "DELETED":
            del known[seen.name]
    return told


def _present(known: dict[str, Tree], selected: Selected) -> list[Told]:
    there = [known[name] for name in sorted(known) if selected.holds(known[name])]
    return [("ADDED", tree["metadata"]["name"], tree["metadata"]["resourceVersion"]) for tree in there]


def _change(before: Tree | None, seen: Seen, selected: Selected) -> str:
    was = before is not None and selected.holds(before)
    now = seen.kind != "DELETED" and selected.holds(seen.tree)
    if now:
        return "MODIFIED" if was else "ADDED"
    return "DELETED" if was else ""


def _field(tree: Tree, path: str) -> str:
    found: Any = tree
    for name in path.split("."):
        found = found.get(name, {})
    if found == {}:
        return "false" if path == "spec.unschedulable" else ""
    return str(found).lower() if isinstance(found, bool) else str(found)
