"""`numalign kubelet admit` from the outside: what it prints, where, and how it exits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct, structs
from typer.testing import CliRunner, Result

from numalign.cli.display import values
from numalign.cli.main import app
from numalign.kubelet.machine import presets
from tests import machinefiles
from tests.strategies import hostile
from tests.unit.cli import small

ROOT = Path(__file__).parents[4]
CONFIG = ["--config", "examples/kubelet.yaml"]
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": "1Gi", "nvidia.com/gpu": 1}}}]},
}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(POD))
    return file


def admit(*words: object, machine: object = "gpu-8", stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["kubelet", "admit", "--machine", str(machine), *map(str, words)], input=stdin)


def test_all_admitted_exits_with_0(file: Path) -> None:
    result = admit(*CONFIG, file)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1] == "1 pod: 1 admitted, 0 rejected, 0 undecided"


def test_one_rejected_exits_with_1() -> None:
    result = admit(*CONFIG, "examples/pods.yaml")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "5 pods: 4 admitted, 1 rejected, 0 undecided"


def test_undecided_counts_as_not_admitted(tmp_path: Path, file: Path) -> None:
    machine, config = tmp_path / "machine.yaml", tmp_path / "kubelet.yaml"
    machine.write_text("{extends: 2x16, zones: [{id: 0, hugepages: {2Mi: 4}}, {id: 1, hugepages: {}}]}")
    settings = {"topologyManagerPolicy": "restricted", **small.STATIC_MEMORY}
    config.write_text(
        yaml.safe_dump({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"} | settings)
    )
    limits = {"cpu": 1, "memory": "1Gi", "hugepages-2Mi": "2Mi"}
    file.write_text(yaml.safe_dump({**POD, "spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}))
    result = admit("--config", config, file, machine=machine)
    assert result.exit_code == 1
    assert "web  undecided" in result.stdout
    assert "why       the kubelet crashes on a request for hugepages-2Mi" in result.stdout


def test_the_documented_example_is_what_comes_out() -> None:
    documented = (ROOT / "docs/use/kubelet-admit.md").read_text().split("```\n")
    assert admit(*CONFIG, "examples/pods.yaml").stdout in documented


def test_the_other_examples_work() -> None:
    result = admit("--config", "examples/restricted.yaml", "examples/workloads.yaml", machine="examples/machine.yaml")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-1] == "4 pods: 3 admitted, 1 rejected, 0 undecided"


def test_json_and_yaml_carry_the_same_answer() -> None:
    texts = [admit(*CONFIG, "-o", form, "examples/pods.yaml").stdout for form in ("json", "yaml")]
    assert json.loads(texts[0]) == yaml.safe_load(texts[1])


def test_json_holds_placement_explanation_and_the_node() -> None:
    answer = json.loads(admit(*CONFIG, "-o", "json", "examples/pods.yaml").stdout)
    train, *_, embed = answer["pods"]
    assert train["containers"][0]["cpus"] == "1-24,97-120"
    assert train["containers"][0]["devices"]["nvidia.com/gpu"] == ["gpu-0", "gpu-1", "gpu-2", "gpu-3"]
    assert embed["reason"] == "TopologyAffinityError"
    assert (embed["explanation"]["cause"], embed["explanation"]["nodeHasRoom"]) == ("no-common-zones", True)
    cpu = answer["resources"][0]
    assert [(zone["zones"], zone["free"]) for zone in cpu["zones"]] == [([0], 46), ([1], 10)]


OF_OTHERS = {values.Held}
OF_THIS_COMMAND = [
    each for each in values.Reported.__subclasses__() if each.__module__ == values.__name__ and each not in OF_OTHERS
]


@pytest.mark.parametrize("reported", OF_THIS_COMMAND, ids=lambda each: each.__name__)
def test_every_field_of_the_json_is_documented(reported: type[Struct]) -> None:
    documented = re.findall(r"`([^`\n]+)`", (ROOT / "docs/use/kubelet-admit.md").read_text())
    words = {word for each in documented for word in re.split(r"[.\[\]]+", each)}
    assert [field.encode_name for field in structs.fields(reported) if field.encode_name not in words] == []


def test_pods_come_from_the_standard_input_too() -> None:
    assert admit("-", stdin=yaml.safe_dump(POD)).exit_code == 0


def test_the_standard_input_can_be_read_once() -> None:
    result = admit("-", "-", stdin="")
    assert (result.exit_code, result.stderr) == (
        2,
        "numalign: standard input can be read once; write - in one place only\n",
    )


def test_without_a_configuration_nothing_is_pinned(file: Path) -> None:
    container = json.loads(admit("-o", "json", file).stdout)["pods"][0]["containers"][0]
    assert (container["cpus"], container["memory"]) == (None, [])


def test_the_version_decides(file: Path) -> None:
    answer = json.loads(admit("--kubelet-version", "v1.36.2", "-o", "json", file).stdout)
    assert answer["kubelet"]["version"] == "1.36"


def test_an_unknown_version_is_answered_with_a_warning(file: Path) -> None:
    result = admit("--kubelet-version", "1.99", "-o", "json", file)
    assert result.exit_code == 0
    assert result.stderr == "numalign: warning: kubelet 1.99 is not known here (1.34 to 1.38 are); answering as 1.38\n"
    json.loads(result.stdout)


def test_other_kinds_are_left_out_with_a_warning(file: Path) -> None:
    file.write_text(yaml.safe_dump_all([POD, {"kind": "Service", "metadata": {"name": "s"}}]))
    result = admit(file)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"numalign: warning: Service s ({file}, document 2, line ")


BAD = {
    "machine": (["examples/pods.yaml"], "no-such-machine", "Machine no-such-machine: no such preset and no such file"),
    "version": (["--kubelet-version", "x", "examples/pods.yaml"], "2x16", 'Option --kubelet-version: "x" is not'),
    "configuration": ([*CONFIG, "examples/pods.yaml"], "2x16", "KubeletConfiguration examples/kubelet.yaml, reserved"),
    "missing file": (["missing.yaml"], "2x16", "File missing.yaml: cannot be read: No such file or directory"),
    "folder": (["docs"], "2x16", "File docs: cannot be read: Is a directory"),
    "several documents for a configuration": (
        ["--config", "examples/pods.yaml", "examples/pods.yaml"],
        "2x16",
        "File examples/pods.yaml: holds 5 documents, and exactly one is wanted",
    ),
    "a kubelet configuration for a machine": (
        ["examples/pods.yaml"],
        "examples/kubelet.yaml",
        "Machine examples/kubelet.yaml, apiVersion: no field of this name",
    ),
    "a good file and a bad one": (["examples/pods.yaml", "missing.yaml"], "2x16", "File missing.yaml"),
    "the same file twice": (["examples/pods.yaml"] * 2, "2x16", "metadata.name: default/train is also in"),
}


@pytest.mark.parametrize("words, machine, why", BAD.values(), ids=BAD)
def test_bad_input_exits_with_2_and_prints_no_answer(words: list[str], machine: str, why: str) -> None:
    result = admit(*words, machine=machine)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("numalign: ")
    assert why in result.stderr


def test_a_kubelet_that_refuses_to_start_is_quoted(tmp_path: Path) -> None:
    config = tmp_path / "kubelet.yaml"
    config.write_text((ROOT / "examples/kubelet.yaml").read_text().replace("memory: 4Gi", "memory: 3Gi"))
    result = admit("--config", config, "examples/pods.yaml")
    assert result.exit_code == 2
    assert 'the kubelet would not start: memorymanager: the total amount "6Gi" of type "memory" is not' in result.stderr


@pytest.mark.parametrize("words", [[], ["--machine", "2x16"], ["x.yaml"], ["--machine", "2x16", "-o", "xml", "x.yaml"]])
def test_wrong_usage_exits_with_2(words: list[str]) -> None:
    assert CliRunner().invoke(app, ["kubelet", "admit", *words]).exit_code == 2


def test_device_names_cannot_steer_the_terminal(tmp_path: Path, file: Path) -> None:
    machine = tmp_path / "machine.yaml"
    devices = {"nvidia.com/gpu": {"0": ["\x1b[2Jgpu"]}}
    machine.write_text(yaml.safe_dump({"extends": "2x16", "name": "\x1b[31mbox", "devices": devices}))
    result = admit(file, machine=machine)
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "\\x1b[2Jgpu" in result.stdout


def broken_files(count: int) -> list[tuple[str, str, Any]]:
    """Pods, configurations and machines in which something is wrong: option, suffix, content."""
    config = yaml.safe_load((ROOT / "examples/kubelet.yaml").read_text())
    templates = {"pod": POD, "config": config, "machine": machinefiles.write(presets.machine("gpu-8"))}
    return [
        (part, f"{part}-{number}", broken)
        for part, template in templates.items()
        for number, broken in enumerate(hostile.objects(template, count, seed=7, absurd=hostile.ABSURD))
    ]


def test_broken_files_end_in_an_answer_or_a_message(tmp_path: Path, file: Path) -> None:
    for part, name, broken in broken_files(40):
        hostile_file = tmp_path / f"{name}.json"
        hostile_file.write_text(json.dumps(broken))
        config = hostile_file if part == "config" else "examples/kubelet.yaml"
        machine = hostile_file if part == "machine" else "gpu-8"
        result = admit("--config", config, hostile_file if part == "pod" else file, machine=machine)
        assert result.exit_code in (0, 1, 2), name
        assert isinstance(result.exception, SystemExit | None), name
        assert (result.stdout == "") == (result.exit_code == 2), name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_garbled_bytes_end_in_an_answer_or_a_message(file: Path, seed: int) -> None:
    for garbled in hostile.garbled(yaml.safe_dump_all([POD, POD]).encode(), 100, seed=seed):
        file.write_bytes(garbled)
        result = admit(file)
        assert result.exit_code in (0, 1, 2)
        assert isinstance(result.exception, SystemExit | None)
