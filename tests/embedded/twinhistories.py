"""Random histories that are lived on two servers at once: the hypothesis machine, for one kind of object at a time.

Every rule is one call to both, which have to answer alike. Writers hold copies, as clients do, and write from old ones
too. Watchers begin at random moments with random selections and are read at the end: what they saw has to be exactly
what happened after their moment, on either server, and the same on both."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.embedded import historykinds, watchfold
from tests.embedded.historykinds import APPS, Kind
from tests.embedded.realserver import MEDIA
from tests.embedded.twins import Said, Side, Tree, Twins, Watcher, steady
from tests.embedded.watchfold import Selected, Since

NUMBERS = itertools.count()
NAMES = st.sampled_from(("a", "b", "c"))
APP = st.sampled_from(APPS)
VALUES = st.integers(0, 2)
BACK = st.sampled_from((0, 0, 0, 1, 2))
"""How old the copy is that a writer starts from: mostly it is the latest."""

Copy = tuple[Tree, Tree]
"""Of one object, as each of the two servers told it."""


class Watching(NamedTuple):
    selected: Selected
    began: tuple[Since, Since]
    both: tuple[Watcher, Watcher]


@dataclass
class Wrote:
    """An update that was granted: to the object of which version, and which it became."""

    name: str
    before: tuple[str, str]
    after: tuple[str, str]


class TwinHistories(RuleBasedStateMachine):
    kind: Kind

    @abstractmethod
    def servers(self) -> Twins: ...

    def __init__(self) -> None:
        super().__init__()
        self.twins = self.servers()
        self.run = f"run-{next(NUMBERS)}"
        self.copies: dict[str, list[Copy]] = {}
        self.updates: list[Wrote] = []
        self.moments = [self.listed()]
        self.watches = [self.opened(Selected(), self.moments[0], initial=False)]

    # Writes.

    @rule(name=NAMES, app=APP, value=VALUES, held=st.sampled_from((False, False, True)))
    def create(self, name: str, app: str, value: int, held: bool) -> None:
        tree = self.kind.made(self.named(name), {"run": self.run, "app": app}, value)
        if held:
            tree["metadata"]["finalizers"] = [historykinds.FINALIZER]
        self.keep(name, self.twins.call("POST", self.kind.path, tree))

    @rule(name=NAMES, app=APP, value=VALUES, back=BACK, versioned=st.sampled_from((True, True, False)))
    def update(self, name: str, app: str, value: int, back: int, versioned: bool) -> None:
        copy = self.copy(name, back)
        if copy is None:
            return
        changed = [self.kind.changed(tree, app, value) for tree in copy]
        if not versioned:
            for tree in changed:
                del tree["metadata"]["resourceVersion"]
                # An old copy's would be all that is new, where ours has none yet.
                tree["metadata"].pop("managedFields", None)
        said = self.twins.call("PUT", self.at(name), tuple(changed))
        if versioned and said[0].code == 200:
            self.updates.append(Wrote(name, versions(copy), (said[0].version, said[1].version)))
        self.keep(name, said)

    @rule(name=NAMES, app=APP, value=VALUES, way=st.sampled_from(("merge", "strategic", "json", "apply")))
    def patch(self, name: str, app: str, value: int, way: str) -> None:
        body: Any = self.kind.patch(app, value)
        if way == "json":
            body = [{"op": "replace", "path": "/metadata/labels/app", "value": app}]
        elif way == "apply":
            body = self.kind.made(self.named(name), {"run": self.run, "app": app}, value)
        query = "?fieldManager=ann&force=true" if way == "apply" else "?fieldManager=bob"
        self.keep(name, self.twins.call("PATCH", self.at(name) + query, body, MEDIA[way]))

    @rule(name=NAMES, app=APP, back=BACK)
    def patch_from_a_copy(self, name: str, app: str, back: int) -> None:
        """With the version in it, so that it fails where somebody wrote since."""
        copy = self.copy(name, back)
        if copy is None:
            return
        bodies = tuple({"metadata": {"labels": {"app": app}, "resourceVersion": each}} for each in versions(copy))
        self.keep(name, self.twins.call("PATCH", self.at(name), bodies, MEDIA["merge"]))

    @rule(name=NAMES)
    def let_go(self, name: str) -> None:
        body = {"metadata": {"finalizers": None}}
        self.keep(name, self.twins.call("PATCH", self.at(name), body, MEDIA["merge"]))

    @rule(name=NAMES, grace=st.sampled_from((None, None, 0, 0, 5)))
    def delete(self, name: str, grace: int | None) -> None:
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        self.keep(name, self.twins.call("DELETE", self.at(name), {"kind": "DeleteOptions", "apiVersion": "v1", **body}))

    @rule(name=NAMES, back=BACK, what=st.sampled_from(("uid", "resourceVersion")))
    def delete_a_certain_one(self, name: str, back: int, what: str) -> None:
        copy = self.copy(name, back)
        if copy is None:
            return
        bodies = tuple({"preconditions": {what: tree["metadata"][what]}} for tree in copy)
        self.keep(name, self.twins.call("DELETE", self.at(name), bodies))

    @rule(app=APP)
    def delete_selected(self, app: str) -> None:
        query = urlencode({"labelSelector": f"run={self.run},app={app}"})
        self.twins.call("DELETE", f"{self.kind.path}?{query}")

    @rule(name=NAMES, special=st.integers(0, 3), value=VALUES)
    def do_what_only_this_kind_knows(self, name: str, special: int, value: int) -> None:
        if not self.kind.specials:
            return
        verb, part, body, media = self.kind.specials[special % len(self.kind.specials)](self.named(name), value)
        self.keep(name, self.twins.call(verb, f"{self.at(name)}/{part}", body, media))

    # Looks.

    @rule(name=NAMES)
    def get(self, name: str) -> None:
        self.keep(name, self.twins.call("GET", self.at(name)))

    @rule(selected=st.integers(0, 4), limit=st.sampled_from(("1", "2", "100")))
    def list(self, selected: int, limit: str) -> None:
        """In pages, from now; the version of it is a moment to watch from."""
        query = {**self.query(self.selection(selected)), "limit": limit}
        (ours, since), (theirs, began) = (self.pages(side, query) for side in self.twins)
        assert ours == theirs
        self.moments.append((since, began))

    @rule(selected=st.integers(0, 4), back=st.integers(0, 9))
    def watch(self, selected: int, back: int) -> None:
        """From a moment before."""
        moment = self.moments[-1 - min(back, len(self.moments) - 1)]
        self.watches.append(self.opened(self.selection(selected), moment, initial=False))

    @rule(selected=st.integers(0, 4))
    def watch_what_is_there(self, selected: int) -> None:
        self.watches.append(self.opened(self.selection(selected), self.listed(), initial=True))

    def teardown(self) -> None:
        try:
            if not self.twins.disagreed:
                self.finish()
        finally:
            for watching in self.watches:
                for each in watching.both:
                    each.close()
            self.clear()

    def finish(self) -> None:
        """Judged at the end, when everything that can be seen has been sent."""
        for app in APPS:
            tree = self.kind.made(self.named(f"end-{app}"), {"run": self.run, "app": app}, 0, last=True)
            self.twins.call("POST", self.kind.path, tree)
        for number in (0, 1):
            self.judge(number)
        for watching in self.watches:
            for number, (one, other) in enumerate(itertools.zip_longest(*(each.events for each in watching.both))):
                ours, theirs = one and one.alike(), other and other.alike()
                assert ours == theirs, f"{watching.selected}, event {number}:\n ours   {ours}\n theirs {theirs}"

    def judge(self, number: int) -> None:
        """One server by itself: the first watcher saw everything, the others the part of it that was theirs."""
        everything = self.watches[0].both[number].until(self.named(f"end-{APPS[-1]}"))
        increasing = [int(seen.version) for seen in everything]
        assert increasing == sorted(set(increasing))
        for watching in self.watches[1:]:
            ends = self.named(f"end-{watching.selected.labels.removeprefix('app=') or APPS[-1]}")
            seen = [(each.kind, each.name, each.version) for each in watching.both[number].until(ends)]
            assert seen == watchfold.expected(everything, watching.selected, watching.began[number])
        for update in self.updates:
            came = [each.version for each in everything if each.name == self.named(update.name)]
            before, after = update.before[number], update.after[number]
            # Nobody wrote between what the writer had read and what it wrote.
            assert after == before or came.index(after) == came.index(before) + 1

    # Words.

    def named(self, name: str) -> str:
        return f"{name}-{self.run}"

    def at(self, name: str) -> str:
        return f"{self.kind.path}/{self.named(name)}"

    def keep(self, name: str, said: tuple[Said, Said]) -> None:
        if said[0].code < 300 and said[0].tree.get("kind") == self.kind.name:
            self.copies.setdefault(name, []).append((said[0].tree, said[1].tree))

    def copy(self, name: str, back: int) -> Copy | None:
        known = self.copies.get(name)
        return known[-1 - min(back, len(known) - 1)] if known else None

    def selection(self, number: int) -> Selected:
        found = [
            Selected(),
            *(Selected(f"app={app}") for app in APPS),
            *(Selected("", each) for each in self.kind.fields),
        ]
        return found[number % len(found)]

    def pages(self, side: Side, query: dict[str, str]) -> tuple[Any, str]:
        """All objects, and the version of the list. Where a page ends is up to the server, if there is a selector."""
        found, token = [], ""
        while True:
            page = side.call("GET", self.asked({**query, "continue": token})).tree
            found += [steady(tree) for tree in page["items"]]
            token = page["metadata"].get("continue", "")
            if not token:
                return found, page["metadata"]["resourceVersion"]

    def asked(self, query: dict[str, str]) -> str:
        return f"{self.kind.path}?{urlencode({name: value for name, value in query.items() if value})}"

    def query(self, selected: Selected) -> dict[str, str]:
        labels = ",".join(part for part in (f"run={self.run}", selected.labels) if part)
        return {"labelSelector": labels, "fieldSelector": selected.fields}

    def listed(self) -> tuple[str, str]:
        ours, theirs = (side.call("GET", self.kind.path + "?limit=1").tree for side in self.twins)
        return ours["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"]

    def opened(self, selected: Selected, moment: tuple[str, str], *, initial: bool) -> Watching:
        query = self.query(selected)
        ours, theirs = (
            side.watch(self.kind.path, {**query, "resourceVersion": "" if initial else version})
            for side, version in zip(self.twins, moment, strict=True)
        )
        return Watching(selected, (Since(moment[0], initial), Since(moment[1], initial)), (ours, theirs))

    def clear(self) -> None:
        for side in self.twins:
            for tree in side.call("GET", self.asked(self.query(Selected()))).tree["items"]:
                at = f"{self.kind.path}/{tree['metadata']['name']}"
                side.call("PATCH", at, {"metadata": {"finalizers": None}}, MEDIA["merge"])
                side.call("DELETE", at, {"gracePeriodSeconds": 0})


def versions(copy: Copy) -> tuple[str, str]:
    return copy[0]["metadata"]["resourceVersion"], copy[1]["metadata"]["resourceVersion"]
