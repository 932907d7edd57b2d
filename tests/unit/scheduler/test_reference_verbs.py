"""The reference flavour as one rule among others: what it says of rows, and what its cache makes of decisions."""

from __future__ import annotations

import numpy as np
import pytest

from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.placement import facts
from numalign.placement.decisions import Code, Wake, WakeCause
from numalign.placement.engine import Engine
from numalign.placement.settings import CacheMode, Settings
from tests.unit.scheduler import servers, waitingpods
from tests.unit.scheduler.servers import GPU, on

A_REFRESH = [Wake("a", WakeCause.REPORT)]
FREED = [Wake("a", WakeCause.FREED)]


def trainer(name: str, gpus: int = 1) -> Pod:
    """It asks for devices alone: reports of these servers list no memory, of which the plugin asks every zone."""
    wants = {"requests": {GPU: str(gpus)}, "limits": {GPU: str(gpus)}}
    return waitingpods.pod(name, {"containers": [{"name": "main", "resources": wants}]})


def engine(mode: CacheMode = "overReserve", names: str = "ab") -> Engine:
    made = Engine(Settings(flavour="reference", cache_mode=mode, profiles=(waitingpods.PROFILE,)))
    for name in names:
        made.apply(facts.NodeSeen(servers.node(name)))
        report = servers.reported(name)
        made.apply(facts.ReportSeen(normalise.normalise(report), 0.0, report))
    return made


def codes(known: Engine, gpus: int) -> list[int]:
    found = known.survey(known.shape(trainer("any", gpus=gpus)))
    return [int(found[known.columns.rows[name]]) for name in sorted(known.columns.rows)]


def placed(known: Engine, name: str, gpus: int, node: str = "a") -> bool:
    pod = trainer(name, gpus=gpus)
    return known.place(pod, known.shape(pod), known.columns.rows[node], 0.0) is not None


def test_rows_that_are_not_asked_for_are_left_out() -> None:
    known = engine()
    a, b = known.columns.rows["a"], known.columns.rows["b"]
    found = known.survey(known.shape(trainer("p", gpus=2)), np.array([b], np.intp))
    assert (found[a], found[b] >= 0) == (Code.VACANT, True)


def test_a_placed_pod_is_charged_to_every_zone_until_its_binding_fails() -> None:
    known = engine()
    assert placed(known, "p", 3)
    assert codes(known, 2)[0] == Code.DOES_NOT_FIT
    assert not placed(known, "q", 2)
    assert known.apply(facts.BindFailed("uid-p")) == FREED
    assert codes(known, 2)[0] >= 0


def test_a_pod_placed_again_gives_back_what_it_had() -> None:
    known = engine()
    before = codes(known, 4)
    assert all(placed(known, "p", 4, node) for node in "abab")
    known.apply(facts.BindFailed("uid-p"))
    assert codes(known, 4) == before


ENDS = {
    "bound": (facts.PodBound("uid-p"), FREED),
    "seen": (facts.PodSeen(on(trainer("p"), "a"), 1.0), FREED),
    "failed": (facts.BindFailed("uid-p"), FREED),
    "gone": (facts.PodGone(trainer("p"), 1.0), FREED),
}


@pytest.mark.parametrize("fact, wakes", ENDS.values(), ids=ENDS)
def test_a_discarded_node_is_open_again_once_the_decision_came_to_an_end(fact: facts.Fact, wakes: list[Wake]) -> None:
    known = engine("discardReserved")
    assert placed(known, "p", 1)
    assert codes(known, 1)[0] == Code.NOT_CERTAIN
    assert known.apply(fact) == wakes
    assert codes(known, 1)[0] >= 0


def test_a_bound_pod_stays_reserved_when_it_is_gone_until_a_report_says_so() -> None:
    known = engine()
    assert placed(known, "p", 3)
    known.apply(facts.PodBound("uid-p"))
    known.apply(facts.PodGone(on(trainer("p", gpus=3), "a"), 1.0))
    assert codes(known, 2)[0] == Code.DOES_NOT_FIT


def test_a_check_whether_to_wake_a_pod_notifies_the_cache_of_the_refusal() -> None:
    """Else a node that was refreshed with too little room would never be refreshed again."""
    known = engine()
    assert placed(known, "p", 3)
    known.apply(facts.PodBound("uid-p"))
    known.apply(facts.PodGone(on(trainer("p", gpus=3), "a"), 1.0))
    assert known.apply(facts.Tick(2.0)) == []
    assert known.refuses(known.shape(trainer("q", gpus=2)), "a")
    assert known.apply(facts.Tick(20.0)) == A_REFRESH
    assert not known.refuses(known.shape(trainer("q", gpus=2)), "a")
