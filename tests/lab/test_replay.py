"""What the planner says of a recorded workload is what real kubelets do: where pods are pinned, and which it rejects.

The slow tests replay the public trace on 20 of its machines, the other one a small trace on six."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from numalign.kube import clock
from numalign.lab import preflight
from numalign.lab.replay import run
from numalign.lab.replay.run import PolicyRun, ReplayOptions
from tests.lab.labs import Labs
from tests.unit.plan import traces
from tests.unit.plan.test_onezone import TRACE, with_the_trace

POLICIES = ("least-blind", "zone-fgd")
CONTENDERS = (*POLICIES, "most-blind", "go-plugin", "fgd", "fgd-filter", "numalign-least", "numalign-most")


def replayed(labs: Labs, asked: ReplayOptions) -> dict[str, PolicyRun]:
    labs.make_room(preflight.instances(asked.nodes, 0))
    with clock.event_loop_runner() as runner:
        return {each.policy: each for each in runner.run(run.run(asked, print))}


def options(folder: Path, name: str, *, nodes: int, is_pinned: bool, policies: tuple[str, ...]) -> ReplayOptions:
    return ReplayOptions(
        folder=folder,
        list=name,
        policies=policies,
        nodes=nodes,
        zones=2,
        is_pinned=is_pinned,
        seed=42,
        name=f"replay-{os.getpid()}",
    )


def test_real_kubelets_do_what_the_replay_says(labs: Labs, tmp_path: Path) -> None:
    made = traces.small(nodes=6, pods=60, seed=2, shares=False)
    asked = options(traces.written(tmp_path, made), "small", nodes=6, is_pinned=True, policies=POLICIES)
    found = replayed(labs, asked)
    for each in found.values():
        assert each.kubelets.contradictions == ()
        assert each.kubelets.pinned > 0
    assert found["least-blind"].kubelets.rejected > 0
    assert found["zone-fgd"].kubelets.rejected == 0


@pytest.mark.slow
@with_the_trace
@pytest.mark.parametrize("is_pinned", [True, False], ids=["guaranteed", "listed"])
def test_twenty_machines_of_the_public_trace_do_what_the_replay_says(labs: Labs, is_pinned: bool) -> None:
    asked = options(TRACE / "openb", "default", nodes=20, is_pinned=is_pinned, policies=CONTENDERS)
    found = replayed(labs, asked)
    assert set(found) == set(CONTENDERS)
    for each in found.values():
        assert each.kubelets.contradictions == ()
        assert each.kubelets.pinned > 0
    assert (found["least-blind"].kubelets.rejected > 0) == is_pinned
    assert found["zone-fgd"].kubelets.rejected == 0
