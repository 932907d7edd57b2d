"""Nodes that a pod names are looked at one by one, with the same outcome as all at once."""

from __future__ import annotations

import pytest

from numalign.api.objects.node import Taint
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.filtering import Filtered
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers, trainer


def named(*nodes: str) -> dict[str, object]:
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]} for node in nodes]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def found(cluster: Servers, *nodes: str) -> Filtered:
    pod = trainer("p", affinity=named(*nodes))
    told = filtering.filtered(pod, cluster.profile.filters, cluster.cluster.world)
    assert isinstance(told, Filtered)
    return told


@pytest.mark.parametrize("nodes", [("a",), ("c", "a"), ("b",), ("a", "b", "c"), ("gone", "c")])
def test_few_named_nodes_are_judged_as_if_all_were(nodes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Servers("a", "b", "c", "d")
    cluster.cluster.node(servers.node("b", taints=(Taint(key="x", effect="NoSchedule"),)))
    few = found(cluster, *nodes)
    monkeypatch.setattr(filtering, "FEW", 0)
    every = found(cluster, *nodes)
    assert few.fitting.tolist() == every.fitting.tolist()
    assert [(plugin, refusal, rows.tolist()) for plugin, refusal, rows in few.tallies()] == [
        (plugin, refusal, rows.tolist()) for plugin, refusal, rows in every.tallies()
    ]
