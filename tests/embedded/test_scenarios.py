"""The catalogue, played by the topology-blind scheduler: what users know from their clusters happens here too. And by
ours, where it does not."""

import pytest

from numalign.api.objects.pod import DEFAULT_SCHEDULER
from numalign.scheduler import profiles
from numalign.simulator.scenarios import catalogue, history, judge, play, scenariofile


@pytest.mark.parametrize("name", catalogue.names())
def test_a_story_of_the_catalogue_goes_as_it_says(name: str) -> None:
    story = catalogue.scenario(name)
    played = play.play(story)
    assert played.refused == []
    assert judge.judge(story, DEFAULT_SCHEDULER, played.lines) == []


@pytest.mark.parametrize("name", catalogue.names())
def test_our_scheduler_keeps_what_the_story_asks_of_it(name: str) -> None:
    story = catalogue.scenario(name)
    played = play.play(story, profiles.NAME)
    assert played.refused == []
    assert judge.judge(story, profiles.NAME, played.lines) == []


def test_our_scheduler_is_deterministic_too() -> None:
    story = catalogue.scenario("init-containers")
    first, again = (play.play(story, profiles.NAME, 5) for _ in range(2))
    assert history.encode(first.lines) == history.encode(again.lines)


def test_the_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    story = catalogue.scenario("nps4-burst")
    first, again, other = (play.play(story, seed=seed) for seed in (5, 5, 6))
    assert history.encode(first.lines) == history.encode(again.lines)
    assert first.lines != other.lines


POD = {"containers": [{"name": "main", "image": "a:1", "resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}]}
STORY = {
    "name": "told",
    "title": "Everything that may befall a node",
    "lasts": "10m",
    "nodes": [
        {
            "name": "w",
            "count": 2,
            "machine": {"extends": "2x16", "devices": {"a.com/nic": {0: 2}}},
            "policy": "restricted",
            "kubelet": {"cpuManagerPolicy": "static", "reservedSystemCPUs": "0,16"},
        }
    ],
    "traffic": [{"pods": 4, "every": "10s", "mix": [{"name": "web", "spec": POD}]}],
}


@pytest.mark.parametrize(
    "fault, expected",
    {
        "reboot": {"running": 4},
        "restart-kubelet": {"running": 4},
        "stop-kubelet": {"bound": 4},
        "stop-reports": {"running": 4},
        "cordon": {"running": 4},
        "break-devices": {"running": 4},
        "delete-node": {"bound": 4},
    }.items(),
)
def test_a_fault_befalls_a_node_and_the_cluster_lives_on(fault: str, expected: dict[str, float]) -> None:
    befalls = {"at": "1m", "fault": fault, "nodes": ["w-0"], "resource": "a.com/nic"}
    story = scenariofile.read(STORY | {"faults": [befalls], "expect": {"any": expected}}, "story")
    played = play.play(story)
    assert played.refused == []
    assert judge.judge(story, DEFAULT_SCHEDULER, played.lines) == []


def test_what_the_api_server_refuses_is_told_with_its_time() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Not A Name"}}
    unknown = {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}}
    story = scenariofile.read(STORY | {"traffic": [{"at": "3s", "objects": [namespace, unknown]}]}, "story")
    first, second = play.play(story).refused
    assert first.startswith("at 3 s: ")
    assert "Not A Name" in first
    assert "no kind Nothing in v1" in second
