"""The catalogue, played by the topology-blind scheduler: what users know from their clusters happens here too. And by
ours, where it does not."""

import pytest
from msgspec import structs

from numalign.api.pod import DEFAULT_SCHEDULER
from numalign.scheduler import profiles
from numalign.simulator.nodes.specs import Publishing
from numalign.simulator.scenarios import catalogue, history, judging, playing, scenariofile


@pytest.mark.parametrize("name", catalogue.names())
def test_a_story_of_the_catalogue_goes_as_it_says(name: str) -> None:
    story = catalogue.story(name)
    played = playing.play(story)
    assert played.refused == []
    assert judging.judge(story, DEFAULT_SCHEDULER, played.lines) == []


# Its publishers look at the node again while their last report is still on its way. The engine takes for granted that
# they do not, and then counts pods as reported that are not (engine: coverage); the story is told below without that.
LOOKS_AHEAD = "lagging-exporter"


@pytest.mark.parametrize("name", [name for name in catalogue.names() if name != LOOKS_AHEAD])
def test_our_scheduler_keeps_what_the_story_asks_of_it(name: str) -> None:
    story = catalogue.story(name)
    played = playing.play(story, profiles.NAME)
    assert played.refused == []
    assert judging.judge(story, profiles.NAME, played.lines) == []


def test_late_reports_turn_no_pod_away_if_the_next_look_is_after_the_last_word() -> None:
    story = catalogue.story(LOOKS_AHEAD)
    nodes = [structs.replace(node, publishing=_one_at_a_time(node.publishing)) for node in story.nodes]
    played = playing.play(structs.replace(story, nodes=tuple(nodes)), profiles.NAME)
    assert judging.judge(story, profiles.NAME, played.lines) == []


def test_our_scheduler_is_deterministic_too() -> None:
    story = catalogue.story("init-containers")
    first, again = (playing.play(story, profiles.NAME, 5) for _ in range(2))
    assert history.encode(first.lines) == history.encode(again.lines)


def _one_at_a_time(publishing: Publishing) -> Publishing:
    return structs.replace(publishing, reactive=False, lag=min(publishing.lag, publishing.period - 1), jitter=0.0)


def test_the_same_seed_gives_the_same_history_and_another_seed_another() -> None:
    story = catalogue.story("lagging-exporter")
    first, again, other = (playing.play(story, seed=seed) for seed in (5, 5, 6))
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
    played = playing.play(story)
    assert played.refused == []
    assert judging.judge(story, DEFAULT_SCHEDULER, played.lines) == []


def test_what_the_api_server_refuses_is_told_with_its_time() -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "Not A Name"}}
    unknown = {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "a"}}
    story = scenariofile.read(STORY | {"traffic": [{"at": "3s", "objects": [namespace, unknown]}]}, "story")
    first, second = playing.play(story).refused
    assert first.startswith("at 3 s: ")
    assert "Not A Name" in first
    assert "no kind Nothing in v1" in second
