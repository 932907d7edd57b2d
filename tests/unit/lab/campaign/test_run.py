"""Steps keep their distances, and a kubelet that finds its memory state broken gets the help that it asks for."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from numalign.lab.campaign import run
from numalign.lab.campaign.history import History
from numalign.lab.campaign.run import Campaign, CampaignOptions, KubeletLogs
from numalign.lab.campaign.script import Fault, Rest, Step

BROKEN = (
    'E1117 23:52:05.326604    6357 policy_static.go:105] "Invalid state, please drain node and remove policy state '
    'file" err="[memorymanager] the expected machine state is different from the real one"\n'
)


class Kubelet:
    def __init__(self, folder: Path) -> None:
        self.program = SimpleNamespace(log=folder / "kubelet.log", title="n/kubelet")
        self.program.log.write_text("it starts\n")
        self.did: list[str] = []

    def stop(self) -> None:
        """It had asked once more before that."""
        self.did.append("stop")
        with self.program.log.open("a") as log:
            log.write(BROKEN)

    def start(self) -> None:
        self.did.append("start")


async def looked(lab: Any, history: History, drained: list[str]) -> None:
    async def drain(node: str) -> None:
        drained.append(node)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(KubeletLogs(lab, history, drain).run(), 0.2)


@pytest.mark.parametrize("said, helped", [(BROKEN, True), ("it runs\n", False)], ids=["broken", "sound"])
def test_a_broken_memory_state_is_removed_from_a_drained_node(
    said: str, helped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "LOOK", 0.01)
    kubelet, state = Kubelet(tmp_path), tmp_path / "memory_manager_state"
    state.write_text("{}")
    kubelet.program.log.write_text(said)
    node = SimpleNamespace(name="n", kubelet=kubelet, memory_state=state)
    history, drained = History(), list[str]()
    asyncio.run(looked(SimpleNamespace(nodes={"n": node}), history, drained))
    assert (drained, state.exists()) == (["n"] if helped else [], not helped)
    assert kubelet.did == (["stop", "start"] if helped else [])
    assert [line.what for line in history.lines] == (["down", "up"] if helped else [])


LOGGED = (
    'I1118 09:24:18.331206 26930 topology_hints.go:71] "Unable to generate topology hints: requested number of devices '
    'unavailable" resourceName="example.com/gpu" pod="default/p-61" containerName="beside" request=2 available=0\n'
)


def test_devices_that_a_kubelet_missed_are_recorded_once_their_line_is_whole(tmp_path: Path) -> None:
    kubelet, history = Kubelet(tmp_path), History()
    lab: Any = SimpleNamespace(nodes={"n": SimpleNamespace(name="n", kubelet=kubelet)})
    logs = KubeletLogs(lab, history, lambda node: asyncio.sleep(0))
    for part in (LOGGED[:-20], LOGGED[-20:], "more\n"):
        with kubelet.program.log.open("a") as log:
            log.write(part)
        logs.read()
    (line,) = history.lines
    assert (line.what, line.name, line.node) == ("lacks", "p-61", "n")
    assert line.words == "requests 2 example.com/gpu, 0 available"


REST_LASTS = 30.0


def test_faults_keep_their_distances_after_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    moment, faults = [0.0], list[float]()

    async def sleep(seconds: float) -> None:
        moment[0] += seconds

    async def rest() -> None:
        moment[0] += REST_LASTS

    async def at_once() -> None:
        pass

    monkeypatch.setattr(asyncio, "sleep", sleep)
    monkeypatch.setattr(History, "now", property(lambda self: moment[0]))
    acting: Any = SimpleNamespace(take_away=lambda fault: faults.append(moment[0]), all_back=at_once)
    resting: Any = SimpleNamespace(rest=rest, drain=at_once)
    nothing: Any = None
    campaign = Campaign(nothing, CampaignOptions(minutes=1, seed=1), lambda words: None)
    steps: list[Step] = [Rest(10.0), *(Fault(at, "n/agent", "kill", 1.0) for at in (11.0, 13.0, 60.0)), Rest(70.0)]
    asyncio.run(campaign._perform(steps, acting, nothing, resting))
    assert faults == [10.0 + REST_LASTS, 12.0 + REST_LASTS, 59.0 + REST_LASTS]
