"""The second half of the demo: the same burst of pods on an embedded cluster, by two schedulers.

Everything is played in virtual time by `simulator.scenarios`: the numbers are counted from the history, the zones are
those that the simulated kubelets hold at the end, and what is said about the pod that waits is what the scheduler wrote
on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from numalign.cli import matrix, reporting
from numalign.cli.drawing import INDENT, Page
from numalign.cli.report import Resource

if TYPE_CHECKING:
    from numalign.simulator.cluster import Cluster
    from numalign.simulator.scenarios.playing import Played
    from numalign.simulator.scenarios.story import Story

Drawn = tuple[Sequence[Resource], Sequence[str]]

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


def tell(page: Page) -> list[str]:
    """Adds it to the page; what did not hold, as sentences."""
    from numalign.simulator.scenarios import catalogue, judging, playing

    story = catalogue.story(STORY)
    drawn: list[Drawn] = []
    played = {
        BLIND: playing.play(story, BLIND),
        OURS: playing.play(story, OURS, at_end=lambda embedded: drawn.append(_zones(embedded))),
    }
    _tell(page, story, {name: judging.measures(each.lines) for name, each in played.items()})
    page.add(f"The zones of {DRAWN} under {OURS}:")
    page.add()
    matrix.draw_zones(page, *drawn[0])
    page.add()
    words = _waiting(played[OURS])
    page.add(f"{WAITING} waits, and its condition says why:")
    page.add(words or "(nothing was said)", indent=INDENT)
    judged = (judging.judge(story, name, each.lines) for name, each in played.items())
    missed = [str(violation) for violations in judged for violation in violations]
    return missed if words else [*missed, f"{WAITING} was not told why it waits"]


def _tell(page: Page, story: Story, measures: Mapping[str, Mapping[str, float]]) -> None:
    page.add(f"{story.title}, on a cluster of {len(story.nodes)} nodes, by two schedulers:")
    page.add()
    table = page.table("scheduler", "pods", *SHOWN.values())
    for name, each in measures.items():
        table.add_row(name, *(f"{each[measure]:g}" for measure in ("created", *SHOWN)))
    page.add(table)
    page.add()


def _zones(embedded: Cluster) -> Drawn:
    """What the node has, with who holds it, and its pods."""
    from numalign.simulator.apiserver.resources import PODS

    standing = embedded.fleet.nodes[DRAWN].standing
    pods = [pod["metadata"] for pod in embedded.api.list(PODS, fields=f"spec.nodeName={DRAWN}").items]
    names = {meta["uid"]: f"{meta['namespace']}/{meta['name']}" for meta in pods}
    return reporting.resources(standing.kubelet, standing.state, names), list(names.values())


def _waiting(played: Played) -> str:
    """The last word that the pod was given."""
    said = [line.words for line in played.lines if line.what == "refused" and line.name.startswith(WAITING)]
    return said[-1] if said else ""
