"""`numalign agent once` and `show` on machines made of files, and what `run` refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import CliRunner

from numalign.api.nrt import normalise, wire
from numalign.cli.main import app
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Core, Machine, Zone
from numalign.lab import machinetree
from tests.unit.agent import machine_trees
from tests.unit.agent.privileges import unprivileged

MACHINES = presets.names()


def numalign(*words: str) -> str:
    result = CliRunner().invoke(app, ["agent", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("name", ["2x16", "gpu-8"])
@pytest.mark.parametrize("mode", ["own", "rte", "nfd"])
def test_once_prints_a_report_that_readers_understand(tmp_path: Path, name: str, mode: str) -> None:
    root = str(machine_trees.preset(name, tmp_path))
    written = numalign("once", "--host-root", root, "--mode", mode, "--node-name", "laptop", "-o", "json")
    topology = normalise.normalise(wire.decode(written))
    assert topology.node == "laptop"
    assert [zone.id for zone in topology.zones] == list(presets.machine(name).zone_ids)


def test_once_speaks_the_older_version_on_request(tmp_path: Path) -> None:
    root = str(machine_trees.preset("2x16", tmp_path))
    written = json.loads(numalign("once", "--host-root", root, "--api-version", "v1alpha1", "-o", "json"))
    assert written["apiVersion"] == "topology.node.k8s.io/v1alpha1"
    assert written["topologyPolicies"] == ["None"]
    assert "attributes" not in written


def test_once_without_a_kubelet_has_the_kernels_facts(tmp_path: Path) -> None:
    root = str(machine_trees.preset("xeon-2x14-smt", tmp_path))
    topology = normalise.normalise(wire.decode(numalign("once", "--host-root", root, "-o", "json")))
    found = [{name: each.capacity for name, each in zone.resources.items()} for zone in topology.zones]
    machine = presets.machine("xeon-2x14-smt")
    pages = [{each.resource: each.total_bytes for each in zone.hugepages if each.pages} for zone in machine.zones]
    assert all(pages)
    assert found == [
        {"cpu": 1000 * sum(len(core.cpus) for core in zone.cores), "memory": zone.memory} | huge
        for zone, huge in zip(machine.zones, pages, strict=True)
    ]
    assert all(each.allocatable == 0 for zone in topology.zones for each in zone.resources.values())


def test_once_with_an_invalid_configuration_says_so_and_has_the_kernels_facts(
    tmp_path: Path,
) -> None:
    root = machine_trees.preset("2x16", tmp_path)
    without_kubelet = normalise.normalise(wire.decode(numalign("once", "--host-root", str(root), "-o", "json")))
    (root / "var/lib/kubelet").mkdir(parents=True)
    config = "{apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, cpuManagerPolicy: static}"
    (root / "var/lib/kubelet/config.yaml").write_text(config)
    result = CliRunner().invoke(app, ["agent", "once", "--host-root", str(root), "-o", "json"])
    assert result.exit_code == 0
    assert "the kubelet would not start with /var/lib/kubelet/config.yaml" in result.stderr.replace("\n", " ")
    assert normalise.normalise(wire.decode(result.stdout)) == without_kubelet


def test_the_device_checkpoint_is_in_its_usual_folder_where_the_kubelet_s_root_folder_is_another(
    tmp_path: Path,
) -> None:
    root = machine_trees.preset("2x16", tmp_path)
    for folder in ("var/lib/k0s/kubelet/device-plugins", "var/lib/kubelet/device-plugins", "srv/plugins"):
        (root / folder).mkdir(parents=True)
    (root / "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint").write_text("[]")
    (root / "srv/plugins/kubelet_internal_checkpoint").write_text("{}")
    words = ["agent", "once", "--host-root", str(root), "--kubelet-dir", "/var/lib/k0s/kubelet"]
    for more, wrong in (([], "got `array`"), (["--device-plugins-dir", "/srv/plugins"], "missing required field")):
        result = CliRunner().invoke(app, [*words, *more])
        (said,) = [line for line in result.stderr.splitlines() if "kubelet_internal_checkpoint" in line]
        assert (result.exit_code, wrong in said) == (0, True), said


def test_show_draws_zones_cpus_and_distances(tmp_path: Path) -> None:
    drawn = numalign("show", "--host-root", str(machine_trees.preset("gpu-8", tmp_path)))
    assert drawn.startswith("2 zones, 2 sockets, 96 cores, 2 threads each, 192 CPUs, 2Ti\n")
    assert "0-47,96-143" in drawn
    assert drawn.rstrip().endswith("1  32  10")


def test_show_gives_the_reason_if_the_kubelet_is_not_drawn(tmp_path: Path) -> None:
    drawn = numalign("show", "--host-root", str(machine_trees.preset("2x16", tmp_path)))
    why = "the kubelet's podresources do not answer; the kubelet's configuration is unknown"
    assert f"what it could allocate is not known here: {why}" in " ".join(drawn.split())


def test_show_names_folded_zones_one_by_one_where_their_numbers_have_gaps(tmp_path: Path) -> None:
    cores = (Core(0, (0, 1)),)
    zones = (Zone(0, cores, 1 << 30), *(Zone(each) for each in (2, 5, 6)))
    machinetree.write(Machine("gaps", tuple(structs.replace(zone, distances=(10,) * 7) for zone in zones)), tmp_path)
    drawn = numalign("show", "--host-root", str(tmp_path)).splitlines()
    assert [line.split()[0] for line in drawn[4:8] if line] == ["zone", "-" * len(drawn[5]), "0", "2,5-6"]


def test_show_draws_what_there_is_of_distances_and_notes_what_is_odd(tmp_path: Path) -> None:
    root = machine_trees.preset("2x16", tmp_path)
    machine_trees.put(root, "sys/devices/system/node/node0/distance", "far away")
    drawn = numalign("show", "--host-root", str(root))
    assert '"far away" is not one distance for each of 2 zones' in " ".join(drawn.split())
    assert [line.split() for line in drawn.splitlines()[-2:]] == [["0", "-", "-"], ["1", "21", "10"]]


def test_show_draws_no_distances_where_the_kernel_has_none(tmp_path: Path) -> None:
    root = machine_trees.preset("2x16", tmp_path)
    shutil.rmtree(root / "sys/devices/system/node")
    drawn = numalign("show", "--host-root", str(root))
    assert "this kernel has no zones" in " ".join(drawn.split())
    assert "distances" not in drawn.splitlines()


def test_show_prints_the_machine_as_json(tmp_path: Path) -> None:
    told = json.loads(numalign("show", "--host-root", str(machine_trees.preset("2x16", tmp_path)), "-o", "json"))
    assert [zone["cpus"] for zone in told["zones"]] == ["0-15", "16-31"]
    assert any("not there" in each for each in told["problems"])


@pytest.mark.parametrize("name", MACHINES)
def test_show_draws_every_machine_within_a_page(tmp_path: Path, name: str) -> None:
    drawn = numalign("show", "--host-root", str(machine_trees.preset(name, tmp_path))).splitlines()
    machine = presets.machine(name)
    assert drawn[0].startswith(f"{len(machine.zones)} zone")
    assert max(map(len, drawn)) <= 100
    if 1 < len(machine.zones) < 20:
        assert sum(" 10" in line for line in drawn[drawn.index("distances") :]) == len(machine.zones)


def test_show_has_the_unused_memory(tmp_path: Path) -> None:
    root = machine_trees.preset("2x16", tmp_path)
    meminfo = root / "sys/devices/system/node/node1/meminfo"
    meminfo.write_text("Node 1 MemTotal: 4194304 kB\nNode 1 MemFree: 1048576 kB\n")
    (root / "sys/devices/system/node/node0/meminfo").write_text("Node 0 MemTotal: 4194304 kB\n")
    assert "16-31  4Gi     1Gi\n" in numalign("show", "--host-root", str(root))
    told = json.loads(numalign("show", "--host-root", str(root), "-o", "json"))
    assert [zone["unused"] for zone in told["zones"]] == [None, 1 << 30]


def test_show_joins_empty_zones(tmp_path: Path) -> None:
    drawn = numalign("show", "--host-root", str(machine_trees.preset("superchip-34", tmp_path)))
    assert "3-9    -       0      -       0       -\n" in drawn
    assert drawn[drawn.index("distances") :].splitlines() == [
        "distances",
        "  0      10 to itself, 40 to 1, 80 to 2-17, 120 to 18-33",
        "  1      10 to itself, 40 to 0, 80 to 18-33, 120 to 2-17",
        "  2-17   10 to itself, 80 to 0, 120 to 1, 255 to 2-33",
        "  18-33  10 to itself, 80 to 1, 120 to 0, 255 to 2-33",
    ]


def test_without_permission_for_the_kubelets_folder_the_hardware_is_shown() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = machine_trees.preset("2x16", Path(name))
        kubelet = root / "var/lib/kubelet"
        kubelet.mkdir(parents=True)
        (kubelet / "cpu_manager_state").write_text("{}")
        root.chmod(0o755)
        kubelet.chmod(0)
        numalign("once", "--host-root", str(root))  # everything is loaded by now
        with unprivileged():
            result = CliRunner().invoke(app, ["agent", "once", "--host-root", str(root), "-o", "json"])
    assert result.exit_code == 0
    assert "cpu_manager_state cannot be read: Permission denied" in result.stderr.replace("\n", " ")
    assert [zone.id for zone in normalise.normalise(wire.decode(result.stdout)).zones] == [0, 1]


def test_the_agent_does_not_carry_what_it_never_uses() -> None:
    heavy = "numpy", "numba", "rich", "cryptography", "numalign.placement", "numalign.simulator", "numalign.scheduler"
    imports = "import sys, numalign.cli.commands.agent, numalign.agent.main"
    code = f"{imports}; print([each for each in {heavy} if each in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "[]\n"


REFUSED = {
    "signs of life too rare": (["run", "--period", "301"], "301.0 is not in the range"),
    "another mode": (["once", "--mode", "koordinator"], "'koordinator' is not one of 'own', 'rte', 'nfd'"),
    "another version": (["once", "--api-version", "v1"], "'v1' is not one of 'v1alpha2', 'v1alpha1'"),
    "no machine": (["show", "--host-root", "nowhere"], "no CPU is listed there"),
    "no socket of this machine": (["once", "--podresources-socket", "tcp://kubelet"], "unix:///path"),
    "no whole report": (["once", "--exclude", "some.yaml"], "always complete"),
    "no exclusions": (["once", "--mode", "rte", "--exclude", "none.yaml"], "there is no such file"),
    "no container": (["run", "--reference-container", "web"], "namespace/pod/container"),
    "a folder to be touched": (["run", "--notify-file", "/"], "is a folder"),
    "no number of seconds": (["gc", "--interval", "nan"], "not a number of seconds"),
    "nor a period": (["run", "--period", "nan"], "not a number of seconds"),
    "more than a lifetime": (["gc", "--grace", "1e300", "--once"], "not a number of seconds"),
    "no words for direct mode": (["run", "--direct-mode", "--mode", "rte"], "needs --mode own"),
    "no devices": (["run", "--direct-mode", "--direct-devices", "none.yaml"], "No such file"),
    "no cluster": (["run", "--kubeconfig", "none.yaml"], "none.yaml"),
}


@pytest.mark.parametrize("words, why", REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_with_a_reason(words: list[str], why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, ["agent", *words])
    assert result.exit_code == 2
    assert why in result.stderr
