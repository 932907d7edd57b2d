"""The machine's target inside the process: `Api` for the verbs, `Watch` for watches, no HTTP."""

from collections.abc import Callable
from dataclasses import dataclass, field

from numalign.simulator import trees
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import CONFIGMAPS
from numalign.simulator.apiserver.verbs.api import Api, Patch
from numalign.simulator.apiserver.verbs.list import predicate
from numalign.simulator.apiserver.verbs.watch import Watch, WatchEvent, WatchStart
from numalign.simulator.trees import Tree
from tests.unit.simulator.apiserver import doors
from tests.unit.simulator.apiserver.machine import Change, Seen, Thing, Written

FINALIZER = "example.com/held"


def tree_of(thing: Thing, namespace: str = "default") -> Tree:
    held = {"finalizers": [FINALIZER]} if thing.held else {}
    made = doors.named(thing.name, namespace, labels={"app": thing.app}, **held)
    return made | {"data": {"value": str(thing.value)}}


def thing_of(tree: Tree) -> Thing:
    metadata = tree["metadata"]
    return Thing(
        metadata["name"],
        metadata["labels"]["app"],
        int(tree["data"]["value"]),
        held="finalizers" in metadata,
        leaving="deletionTimestamp" in metadata,
    )


def seen_of(kind: str, tree: Tree) -> Seen:
    thing = thing_of(tree)
    return Seen(kind, thing.name, thing.app, thing.value)


def patch_of(change: Change) -> Tree:
    body: Tree = {"metadata": {}}
    if "app" in change:
        body["metadata"]["labels"] = {"app": change["app"]}
    if "held" in change:
        body["metadata"]["finalizers"] = None
    return body | ({"data": {"value": str(change["value"])}} if "value" in change else {})


@dataclass
class InProcess:
    api: Api = field(default_factory=doors.door)

    def create(self, thing: Thing) -> Written:
        return self._written(lambda: self.api.create(CONFIGMAPS, tree_of(thing)))

    def update(self, thing: Thing, version: str) -> Written:
        tree = tree_of(thing)
        tree["metadata"]["resourceVersion"] = version
        return self._written(lambda: self.api.update(CONFIGMAPS, tree))

    def patch(self, name: str, change: Change) -> Written:
        patch = Patch("merge", patch_of(change))
        return self._written(lambda: self.api.patch(CONFIGMAPS, name, "default", patch))

    def delete(self, name: str) -> Written:
        return self._written(lambda: self.api.delete(CONFIGMAPS, name, "default"))

    def list(self, app: str) -> tuple[list[Thing], str]:
        found = self.api.list(CONFIGMAPS, "default", labels=f"app={app}" if app else "")
        return [thing_of(tree) for tree in found.items], found.version

    def watch(self, version: str, app: str) -> "Collected":
        return Collected(self.api, version, app)

    def close(self) -> None:
        pass

    def _written(self, write: Callable[[], Tree]) -> Written:
        try:
            return Written(200, write()["metadata"]["resourceVersion"])
        except StatusError as problem:
            return Written(problem.code)


class Collected:
    def __init__(self, api: Api, version: str, app: str) -> None:
        chosen = predicate(CONFIGMAPS, "default", f"app={app}" if app else "")
        self._seen: list[Seen] = []
        self._watch = Watch(api.state.store, CONFIGMAPS, chosen, self._take)
        for seen in self._watch.begin(WatchStart(version)):
            self._take(seen)

    def seen(self, count: int) -> list[Seen]:
        return self._seen

    def close(self) -> None:
        self._watch.close()

    def _take(self, seen: WatchEvent) -> None:
        self._seen.append(seen_of(seen.kind, trees.decoded(seen.entry.data)))
