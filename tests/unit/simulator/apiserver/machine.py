"""Random histories of one kind of object, judged against a model: the same machine for any server.

A server is a `Target`: the few verbs below, and watches. The model keeps every change; from it follows what a list
shows and what a watcher of any selection, begun at any moment, must see. `Histories` is the hypothesis machine; tests
make a subclass that says which target it plays on."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

NAMES = ("a", "a-b", "b", "c.d")
APPS = ("red", "blue")
CHANGES = st.one_of(
    st.fixed_dictionaries({"app": st.sampled_from(APPS)}),
    st.fixed_dictionaries({"value": st.integers(0, 3)}),
    st.fixed_dictionaries({"app": st.sampled_from(APPS), "value": st.integers(0, 3)}),
    st.just({"held": False}),
)


Change = dict[str, int | str | bool]


@dataclass(frozen=True)
class Thing:
    """An object, as far as the machine cares."""

    name: str
    app: str
    value: int
    held: bool = False
    """By a finalizer."""
    leaving: bool = False


@dataclass(frozen=True)
class Seen:
    kind: str
    name: str
    app: str
    value: int


class Following(Protocol):
    def seen(self, count: int) -> list[Seen]:
        """Everything so far, after waiting for that many."""

    def close(self) -> None: ...


class Written(NamedTuple):
    """200 and the version that was written, or the code of the refusal."""

    code: int
    version: str = ""


class Target(Protocol):
    """Versions are resourceVersions."""

    def create(self, thing: Thing) -> Written: ...

    def update(self, thing: Thing, version: str) -> Written: ...

    def patch(self, name: str, change: Change) -> Written:
        """Of `app`, `value` or `held`."""

    def delete(self, name: str) -> Written: ...

    def list(self, app: str) -> tuple[list[Thing], str]:
        """In the order of names, and the version of the list."""

    def watch(self, version: str, app: str) -> Following: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class Past:
    """One change: what was there before and after."""

    before: Thing | None
    after: Thing | None

    def seen_by(self, app: str) -> Seen | None:
        was = self.before if self.before and app in ("", self.before.app) else None
        now = self.after if self.after and app in ("", self.after.app) else None
        if now is not None:
            return Seen("MODIFIED" if was else "ADDED", now.name, now.app, now.value)
        return Seen("DELETED", was.name, was.app, was.value) if was else None


@dataclass
class Model:
    things: dict[str, Thing] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Of each object, where the last writer was told."""
    history: list[Past] = field(default_factory=list)

    def put(self, name: str, after: Thing | None, version: str) -> None:
        before = self.things.get(name)
        if version or before != after:
            self.versions[name] = version
        if before == after:
            return
        self.history.append(Past(before, after))
        if after is None:
            del self.things[name]
        else:
            self.things[name] = after

    def settle(self, thing: Thing, version: str = "") -> None:
        """As written, or gone where it was leaving and nobody holds it."""
        self.put(thing.name, None if thing.leaving and not thing.held else thing, version)


class Histories(RuleBasedStateMachine):
    @abstractmethod
    def target(self) -> Target:
        """A server without objects."""

    def __init__(self) -> None:
        super().__init__()
        self.server = self.target()
        self.model = Model()
        self.moments = [(self.server.list("")[1], 0)]
        self.watches: list[tuple[Following, str, int, list[Seen]]] = []
        self.known: dict[str, list[str]] = {}
        """Versions of each object that a writer may think are the latest."""

    def teardown(self) -> None:
        for following, *_ in self.watches:
            following.close()
        self.server.close()

    @rule(name=st.sampled_from(NAMES), app=st.sampled_from(APPS), value=st.integers(0, 3), held=st.booleans())
    def create(self, name: str, app: str, value: int, held: bool) -> None:
        thing = Thing(name, app, value, held)
        code, version = self.server.create(thing)
        assert code == (409 if name in self.model.things else 200)
        if code == 200:
            self.known.setdefault(name, []).append(version)
            self.model.put(name, thing, version)

    @rule(name=st.sampled_from(NAMES), app=st.sampled_from(APPS), value=st.integers(0, 3), back=st.integers(0, 2))
    def update(self, name: str, app: str, value: int, back: int) -> None:
        """From the latest version that the writer knows, or an older one: only the latest of all may win."""
        known, current = self.known.get(name), self.model.things.get(name)
        if not known:
            return
        version, latest = known[-1 - min(back, len(known) - 1)], self.model.versions[name]
        wanted = Thing(name, app, value, held=current is not None and current.held)
        code, new = self.server.update(wanted, version)
        assert code == (404 if current is None else 200 if version == latest else 409)
        if code == 200 and current is not None:
            known.append(new)
            self.model.settle(replace(wanted, leaving=current.leaving), new)

    @rule(name=st.sampled_from(NAMES), change=CHANGES)
    def patch(self, name: str, change: Change) -> None:
        current = self.model.things.get(name)
        code, version = self.server.patch(name, change)
        assert code == (404 if current is None else 200)
        if current is not None:
            self.known.setdefault(name, []).append(version)
            self.model.settle(replace(current, **change), version)  # type: ignore[arg-type]

    @rule(name=st.sampled_from(NAMES))
    def delete(self, name: str) -> None:
        current = self.model.things.get(name)
        assert self.server.delete(name).code == (404 if current is None else 200)
        if current is not None:
            self.model.settle(replace(current, leaving=True))

    @rule(back=st.integers(0, 20), app=st.sampled_from(("", *APPS)))
    def watch(self, back: int, app: str) -> None:
        """From now or a moment before."""
        version, index = self.moments[-1 - min(back, len(self.moments) - 1)]
        self.watches.append((self.server.watch(version, app), app, index, []))

    @rule(app=st.sampled_from(("", *APPS)))
    def watch_from_what_is_there(self, app: str) -> None:
        there = [self.model.things[name] for name in sorted(self.model.things)]
        first = [Seen("ADDED", thing.name, thing.app, thing.value) for thing in there if app in ("", thing.app)]
        self.watches.append((self.server.watch("", app), app, len(self.model.history), first))

    @invariant()
    def lists_show_what_was_written(self) -> None:
        things, version = self.server.list("")
        assert things == [self.model.things[name] for name in sorted(self.model.things)]
        self.moments.append((version, len(self.model.history)))

    @invariant()
    def selected_lists_show_the_selected(self) -> None:
        for app in APPS:
            expected = [thing for thing in self.model.things.values() if thing.app == app]
            assert self.server.list(app)[0] == sorted(expected, key=lambda thing: thing.name)

    @invariant()
    def every_watcher_sees_exactly_the_history(self) -> None:
        for following, app, index, first in self.watches:
            after = [past.seen_by(app) for past in self.model.history[index:]]
            expected = first + [seen for seen in after if seen is not None]
            assert following.seen(len(expected)) == expected
