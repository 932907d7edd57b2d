"""Recorded actions of the publishers: triggers, writes, and garbage collection.

Each is compared with the agent's module for it, on real files and an embedded API server."""

import asyncio
import random
import tempfile
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from numalign.agent.publish.publish import Manner, Publisher
from numalign.agent.sources import checkpoints, podresources
from numalign.agent.sources.filewatch import Watch
from numalign.agent.triggers import triggers
from numalign.api import errors
from numalign.api.nrt import publishers
from numalign.api.objects.meta import ObjectMeta
from numalign.kube.client import Client
from numalign.kubelet import start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import report
from numalign.kubelet.settings import Settings
from numalign.oracle.harness.divergence import Raw
from numalign.oracle.harness.suite import DeliberateDifference, Suite
from numalign.oracle.publishers.reports import made
from numalign.simulator import cluster, virtualtime

LONG_AGO: Final = "2020-01-01T00:00:00Z"
WRITES: Final = ("create", "update", "patch")


def _swept(row: Raw) -> object:
    """A sweep at the start and with every tick; a deleted node's report is removed at once."""
    nodes, reports = list(row.get("nodes") or ()), list(row.get("nrts") or ())
    left = _left(nodes, reports)
    for event in row.get("events") or ():
        what, _, name = event.partition(":")
        match what:
            case "delete-node":
                nodes = [each for each in nodes if each != name]
                left = [each for each in left if each != name or each in _left(nodes, [name])]
            case "create-node":
                nodes.append(name)
            case "create-nrt":
                left.append(name)
            case "delete-nrt":
                left = [each for each in left if each != name]
            case "tick":
                left = _left(nodes, left)
    return {"left": left}


def _left(nodes: Iterable[str], reports: Iterable[str]) -> list[str]:
    objects = [ObjectMeta(name=each, creation_timestamp=LONG_AGO) for each in reports]
    stale = publishers.orphans(nodes, objects, datetime.now(UTC))
    return [each.name for each in objects if each not in stale]


KUBELET: Final = Path("kubelet")
PLUGINS: Final = KUBELET / "device-plugins"
STATE: Final = (KUBELET / checkpoints.CPU, KUBELET / checkpoints.MEMORY, PLUGINS / checkpoints.DEVICES)
"""The checkpoints, each in the folder where kubelets write it."""


def _triggers(row: Raw) -> object:
    return {"triggers": Path(row["path"]) in triggers.of_kubelet(KUBELET, PLUGINS)}


def _is_elsewhere(path: Path) -> bool:
    """The file has the name of a checkpoint and is in the folder of another one. The updater matches the name only."""
    folders, names = {each.parent for each in STATE}, {each.name for each in STATE}
    return path.parent in folders and path.name in names and path not in STATE


CONTENTS: Final[Mapping[str | None, Callable[[Path], object]]] = {
    None: lambda file: None,
    "empty": lambda file: file.touch(),
    "non-empty": lambda file: file.write_text("full"),
    "symlink": lambda file: file.symlink_to(_full(file.with_name("target"))),
    "symlink-empty": lambda file: file.symlink_to(_empty(file.with_name("target"))),
    "directory": lambda file: file.mkdir(),
}


def _full(file: Path) -> Path:
    file.write_text("full")
    return file


def _empty(file: Path) -> Path:
    file.touch()
    return file


def _notification(row: Raw) -> object:
    """Touching the file requests a scan, whether it existed or not."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "notify")
        CONTENTS[row.get("existing")](file)
        try:
            triggers.notification(str(file))
        except errors.BadObject:
            return {"ok": False}
        return {"ok": asyncio.run(_asks(file, lambda: file.write_text("now")))}


OPERATIONS: Final[Mapping[str, Callable[[Path], object]]] = {
    "write": lambda file: file.write_text("now"),
    "attrib": lambda file: file.chmod(0o600),
    "create": lambda file: _renewed(file),
    "remove": lambda file: file.unlink(),
    "rename": lambda file: file.rename(file.with_name("renamed")),
}


def _renewed(file: Path) -> None:
    file.unlink()
    file.touch()


def _notified(row: Raw) -> object:
    with tempfile.TemporaryDirectory() as folder:
        watched, other = Path(folder, "notify"), Path(folder, "other")
        for file in (watched, other):
            file.touch()
        touched = watched if row["same_file"] else other
        return {"triggers": asyncio.run(_asks(watched, lambda: OPERATIONS[row["op"]](touched)))}


async def _asks(file: Path, act: Callable[[], object]) -> bool:
    reasons: list[str] = []
    watch = Watch(triggers.of_kubelet(file.parent / KUBELET, file.parent / PLUGINS, file), reasons.append)
    watch.open()
    try:
        act()
        await asyncio.sleep(0.01)
        watch.look()
    finally:
        watch.close()
    return bool(reasons)


def _verbs(row: Raw) -> object:
    return {"steps": virtualtime.run(_played())}


async def _played() -> list[list[str]]:
    """The calls for two different reports."""
    clock, steps = virtualtime.clock(random.Random(1)), list[list[str]]()
    async with (
        cluster.running((), clock, random.Random(1)) as embedded,
        Client(embedded.access(), clock=clock) as client,
    ):
        publisher, counted = Publisher(client, "recorded", Manner(instance="recorded")), client.sender.metrics.requests
        for policy in ("none", "restricted"):
            before = counted.copy()
            kubelet = start.start(presets.machine("2x16"), Settings(topology_policy=policy))
            await publisher.publish(report.of("recorded", kubelet, kubelet.initial()), None, check=True)
            steps.append([verb.lower() for verb, _ in counted - before])
    return steps


WATCHED_FOLDER = DeliberateDifference(
    "new-files-count",
    "the folder is watched, so that a file which was replaced or removed counts too (D-15)",
    lambda row: row["same_file"] and row["op"] in ("create", "remove", "rename"),
    lambda case: case["expect"] == {"triggers": False},
)
OWN_FILES = DeliberateDifference(
    "the-kubelets-own-files",
    "checkpoints count where kubelets write them, and so does the socket, which is new when a kubelet starts",
    lambda row: _is_elsewhere(Path(row["path"])) or Path(row["path"]) == KUBELET / podresources.SOCKET,
    lambda case: case["expect"] == {"triggers": _is_elsewhere(Path(case["input"]["path"]))},
)
ANY_CONTENT = DeliberateDifference(
    "any-notification-file",
    "what is in the file does not matter",
    lambda row: row.get("existing") in ("non-empty", "symlink"),
    lambda case: case["expect"] == {"ok": False},
)
APPLIED = DeliberateDifference(
    "server-side-apply",
    "one look at what is there and one apply, which makes or changes it, instead of creating, updating and patching",
    lambda row: row["mode"] in ("patch", "update"),
    lambda case: all(set(step) <= {"get", *WRITES} and step[-1] in WRITES for step in case["expect"]["steps"]),
)

SUITES: tuple[Suite, ...] = (
    made("updater.gc", _swept),
    made("updater.state_events_derived", _triggers, OWN_FILES),
    made("exporter.notify_file", _notification, ANY_CONTENT),
    made("exporter.notify_events_derived", _notified, WATCHED_FOLDER),
    made("exporter.publish_verbs", _verbs, APPLIED),
    made("exporter.publish_verbs_derived", _verbs, APPLIED),
)
