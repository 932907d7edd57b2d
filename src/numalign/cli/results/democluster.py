"""Plays the second part of the demo: the same burst of pods on an embedded cluster, by two schedulers.

`simulator.scenarios` plays it in virtual time. The numbers are counted from the history, the zones are those of the
simulated kubelets at the end, and the reason is what the scheduler wrote on the pod and what `numalign explain` says.
`demo --keep` leaves that very cluster: a background process plays the same scenario with the same seed to its end, and
then serves the cluster in real time for kubectl."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Struct

from numalign.cli import output
from numalign.cli.display import clusterlines, matrix
from numalign.cli.display.formats import INDENT, Page
from numalign.cli.display.values import Resource
from numalign.cli.results import admit, explaindraw
from numalign.cli.results.explanation import ExplainOutput
from numalign.process import interpreter
from numalign.simulator import registry

if TYPE_CHECKING:
    from numalign.scheduler.snapshot.snapshot import Snapshot
    from numalign.simulator.cluster import Cluster
    from numalign.simulator.scenarios.play import PlayResult
    from numalign.simulator.scenarios.scenario import Scenario


STORY: Final = "burst"
BLIND: Final = "default-scheduler"
OURS: Final = "numalign"
DRAWN: Final = "gpu-0"
WAITING: Final = "numa-test"
SHOWN: Final = {
    "running": "run at the end",
    "misaligned": "rejected with TopologyAffinityError",
    "pending": "wait",
}


class Seen(Struct, frozen=True):
    """What the demo shows of the cluster at the end of the scenario."""

    before: Sequence[Resource]
    """The node with nothing on it."""
    after: Sequence[Resource]
    pods: Sequence[str]
    waiting: str
    """The name of the pod that waits; empty: none does."""
    explained: ExplainOutput | None
    """That pod, explained."""


class Drawn(Struct, frozen=True):
    missed: list[str]
    """The expectations that failed, as sentences."""
    waiting: str
    """The name of the pod that waits."""


class Played(NamedTuple):
    """The story under both schedulers."""

    story: Scenario
    results: Mapping[str, PlayResult]
    seen: Seen


def play() -> Played:
    from numalign.simulator.scenarios import catalogue
    from numalign.simulator.scenarios.play import play as played

    story = catalogue.scenario(STORY)
    seen: list[Seen] = []
    results = {
        BLIND: played(story, BLIND),
        OURS: played(story, OURS, at_end=lambda embedded: seen.append(_seen(embedded))),
    }
    return Played(story, results, seen[0])


def draw(page: Page) -> Drawn:
    """Adds the cluster part to the page."""
    from numalign.simulator.scenarios import judge

    story, played, seen = play()
    _draw_measures(page, story, {name: judge.measures(each.lines) for name, each in played.items()})
    _explain_rejections(page, played[BLIND])
    _draw_zones(page, seen)
    words = _waiting(played[OURS])
    page.add(f"{WAITING} waits, and its condition says why:")
    page.add(words or "(no message)", indent=INDENT)
    judged = (judge.judge(story, name, each.lines) for name, each in played.items())
    missed = [str(violation) for violations in judged for violation in violations]
    missed += _draw_explanation(page, seen.explained)
    missed += [] if words else [f"{WAITING} has no reason"]
    return Drawn(missed, seen.waiting)


def _explain_rejections(page: Page, played: PlayResult) -> None:
    """Explains why there are many more pods than the scenario creates."""
    made = sum(line.what == "created" and line.name.startswith(WAITING) for line in played.lines)
    page.add(
        f"{WAITING} is a deployment, which creates a new pod for every one that a node rejects: {made} of the pods "
        f"under {BLIND} belong to it."
    )
    page.add()


def _draw_zones(page: Page, seen: Seen) -> None:
    for moment, resources in (("before", seen.before), ("under numalign", seen.after)):
        page.add(f"The zones of {DRAWN} {moment}:")
        page.add()
        matrix.draw_zones(page, resources, seen.pods)
        page.add()
    page.add("Memory has no amount by zone: these kubelets have no static memory manager.")
    page.add()


def _draw_explanation(page: Page, explained: ExplainOutput | None) -> list[str]:
    """The short form of `numalign explain pod`; returns the expectations that failed."""
    if explained is None or explained.asked is None or explained.fits:
        return [f"{WAITING} does not wait"]
    page.add()
    page.add("Explained:")
    explaindraw.short(page, explained.asked)
    return [] if explained.asked.help else [f"nothing is known that would help {WAITING}"]


def _draw_measures(page: Page, story: Scenario, measures: Mapping[str, Mapping[str, float]]) -> None:
    page.add(f"{story.title}, on a cluster of {len(story.nodes)} nodes, by two schedulers:")
    page.add()
    table = page.table("scheduler", "pods", *SHOWN.values())
    for name, each in measures.items():
        table.add_row(name, *(f"{each[measure]:g}" for measure in ("created", *SHOWN)))
    page.add(table)
    page.add()


def _seen(embedded: Cluster) -> Seen:
    from numalign.cli.results import explanation
    from numalign.simulator.apiserver.storage.resources import PODS

    node_state = embedded.fleet.nodes[DRAWN].node_state
    pods = [pod["metadata"] for pod in embedded.api.list(PODS).items]
    names = {meta["uid"]: f"{meta['namespace']}/{meta['name']}" for meta in pods}
    waiting = next((name for name in names.values() if name.startswith(f"default/{WAITING}")), None)
    taken = _taken(embedded)
    pod = explanation.found(taken, waiting) if waiting else None
    return Seen(
        before=admit.resources(node_state.kubelet, node_state.kubelet.initial()),
        after=admit.resources(node_state.kubelet, node_state.state, names),
        pods=list(names.values()),
        waiting=(waiting or "").removeprefix("default/"),
        explained=explanation.about_pod(taken, pod, explanation.ExplainDetail()) if pod is not None else None,
    )


def _taken(embedded: Cluster) -> Snapshot:
    """The cluster as `kubectl get -o json` would print it."""
    from numalign.scheduler.snapshot import files
    from numalign.simulator.apiserver.storage.resources import NODES, PODS
    from numalign.simulator.nodes.publisher.crd import RESOURCE

    items = [tree for resource in (NODES, RESOURCE, PODS) for tree in embedded.api.list(resource).items]
    return files.read(msgspec.json.encode({"kind": "List", "items": items}), "the embedded cluster")


def _waiting(played: PlayResult) -> str:
    """The last message that the scheduler wrote on the pod."""
    messages = [line.words for line in played.lines if line.what == "refused" and line.name.startswith(WAITING)]
    return messages[-1] if messages else ""


NAME = "demo"
PROGRAM = "numalign"
PATIENCE = 240.0

WORDS = """
{state}: {words}, at {url}
Pods with `schedulerName: {ours}` are placed by numalign. {waiting}To look around:

  {export}
  kubectl get pods -o wide
  {program} topology
  {program} topology {node}
  {program} explain pod {pod}
  {program} scheduler state

  {program} cluster down {name}        # ends it"""
FRESH = "The cluster that you saw under numalign is up"
EARLIER = "The cluster of an earlier demo is still up (`{program} cluster down {name}` ends it, for a fresh one)"


def kept(waiting: str) -> str:
    """What the command prints once the cluster is up; `waiting` is the pod that waits in the demo."""
    earlier = registry.running(NAME)
    found = earlier or _started()
    return WORDS.format(
        state=EARLIER.format(program=program(), name=NAME) if earlier else FRESH,
        words=found.words,
        url=found.url,
        ours=OURS,
        waiting="" if earlier else f"{waiting} still waits. ",
        pod=waiting,
        export=clusterlines.export(found),
        node=DRAWN,
        name=NAME,
        program=program(),
    )


def program() -> str:
    """How to call numalign: by its bare name only where the shell finds it."""
    called = Path(sys.argv[0])
    return PROGRAM if shutil.which(PROGRAM) or called.name != PROGRAM else str(called)


def _started() -> registry.RunningCluster:
    asked = (
        "cluster",
        "up",
        NAME,
        "--scenario",
        STORY,
        "--scheduler",
        OURS,
        "--fast-forward",
    )
    # The cluster outlives this command, so it starts in a process of its own.
    done = subprocess.run(
        [*interpreter.NUMALIGN, *asked], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    found = registry.running(NAME)
    if done.returncode or found is None:
        output.fail(f"the cluster did not come up: {done.stderr.strip() or done.stdout.strip()}")
    return found
