"""The demo runs by itself and always prints the same page."""

import functools
import re
from pathlib import Path

import pytest
import yaml
from msgspec import structs
from typer.testing import CliRunner

from numalign.cli import inputs
from numalign.cli.commands import demo
from numalign.cli.display.values import AdmittedPod
from numalign.cli.main import app
from numalign.cli.results import admit, democluster, podfiles

NAMES = ("default-scheduler", "numalign")
BURST = 20
"""Pods that arrive one by one."""
EXAMPLES = Path(__file__).parents[4] / "examples"


def printed(**env: str) -> str:
    result = CliRunner().invoke(app, ["demo"], env=env)
    assert result.exit_code == 0
    return result.stdout


shown = functools.cache(printed)
played = functools.cache(democluster.play)


@pytest.fixture
def played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test says of the terminal does not depend on another run of the story."""
    monkeypatch.setattr(democluster, "play", played)


def without_source(pod: AdmittedPod) -> AdmittedPod:
    return structs.replace(pod, source="")


def test_the_same_text_every_time() -> None:
    assert printed() == shown()


def test_plain_text_where_there_is_no_terminal() -> None:
    assert shown().isascii()
    assert "\x1b" not in shown()


def test_the_burst_is_placed_by_us_and_bounced_by_a_scheduler_that_sees_totals_only() -> None:
    blind, ours = (re.search(rf"^{name} +(\d+) +(\d+) +(\d+) +(\d+)$", shown(), re.MULTILINE) for name in NAMES)
    assert blind is not None
    assert ours is not None
    assert int(blind[3]) > 0
    assert int(ours[3]) == 0
    assert int(ours[2]) >= int(blind[2])


def test_the_origin_of_the_rejected_pods_is_explained() -> None:
    blind = re.search(r"^default-scheduler +(\d+) ", shown(), re.MULTILINE)
    made = re.search(r"for every one that a node rejects: (\d+) of the pods", " ".join(shown().split()))
    assert blind is not None
    assert made is not None
    assert 1 < int(made[1]) == int(blind[1]) - BURST


def test_the_waiting_pod_has_a_reason() -> None:
    text = " ".join(shown().split())
    assert "numa-test waits, and its condition says why: 0/3 nodes are available:" in text
    assert "cannot align container (container solver needs 70 CPUs in one NUMA zone" in text


def test_it_is_explained_with_what_would_help() -> None:
    text = " ".join(shown().split())
    explained = text.partition("Explained: ")[2]
    assert "1 container solver needs 70 CPUs in one NUMA zone, best zone has 62 gpu-0" in explained
    assert "It would fit on gpu-0 without pod" in explained


def test_a_node_s_zones_are_drawn_before_and_after() -> None:
    before, after = shown().split("The zones of gpu-0 ")[1:]
    assert before.startswith("before:")
    assert after.startswith("under numalign:")
    assert "94 of 94 free" in before
    assert "94 of 94 free" not in after.partition("numa-test")[0]


@pytest.mark.parametrize(
    "called, found, typed",
    [
        (".venv/bin/numalign", None, ".venv/bin/numalign"),
        (".venv/bin/numalign", "/usr/bin/numalign", "numalign"),
        ("src/numalign/cli/__main__.py", None, "numalign"),
    ],
    ids=["not on the path", "on the path", "as a module"],
)
def test_commands_to_try_can_be_typed_as_they_are(
    called: str, found: str | None, typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [called])
    monkeypatch.setattr("shutil.which", lambda name: found)
    assert democluster.program() == typed


def test_one_pod_is_refused_although_the_node_has_room() -> None:
    text = " ".join(shown().split())
    assert "reason TopologyAffinityError message Resources cannot be allocated with Topology locality" in text
    assert "because container main needs 1 nvidia.com/gpu, 16 CPUs and 64Gi memory in the same NUMA zone," in text
    assert (
        "although the node as a whole has enough: 54 cpu for 16, 1.05Ti memory for 64Gi, 2 nvidia.com/gpu for 1" in text
    )
    assert "Asking for 10 cpu, 64Gi memory, 1 nvidia.com/gpu, it would be admitted." in text


def test_the_zones_are_drawn_with_the_pods_in_them() -> None:
    lines = shown().splitlines()
    assert "zone 0  AAAAAAAA........  AAAAAAAA........     AAAA         AAAA" in lines
    assert "zone 1  BBBBCCCCCCCCCC..  BBBCCCC.........     BB..         B..." in lines


@pytest.mark.usefixtures("played_once")
@pytest.mark.parametrize("width", ["20", "80"])
def test_terminals_of_any_width_are_served(width: str) -> None:
    text = shown(TTY_COMPATIBLE="1", COLUMNS=width, TERM="xterm")
    assert "\x1b[" in text
    assert "embed" in text


@pytest.mark.usefixtures("played_once")
def test_no_color_is_respected() -> None:
    assert "\x1b[3" not in shown(TTY_COMPATIBLE="1", NO_COLOR="1", TERM="xterm")


def test_the_examples_tell_the_same_story() -> None:
    kubelet = inputs.kubelet(demo.MACHINE, str(EXAMPLES / "kubelet.yaml"), None).kubelet
    pods = podfiles.read([str(EXAMPLES / "pods.yaml")]).pods
    told, example = demo.answer(demo.PODS), admit.admit_all(kubelet, pods)
    assert list(map(without_source, told.pods)) == list(map(without_source, example.pods))
    assert told.resources == example.resources


def test_the_example_configuration_is_the_demos() -> None:
    assert yaml.safe_load((EXAMPLES / "kubelet.yaml").read_text()) == demo.CONFIGURATION
