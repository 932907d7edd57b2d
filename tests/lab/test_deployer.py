"""The deployer on real programs: kubelets start with the configuration that it prints, and a real API server with its
controllers agrees with the embedded one about every step of an installation."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from numalign.api.decode import cpuset
from numalign.cli.main import app
from numalign.deploy.hosts import kubeletfile
from numalign.deploy.hosts.kubeletfile import Wish
from numalign.kubelet import versions
from numalign.kubelet.cpu import topology
from numalign.kubelet.machine import presets
from numalign.lab import build
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab import books
from tests.lab.labs import Labs
from tests.lab.live import Live, guaranteed

pytestmark = pytest.mark.slow

WISHES = {
    "2x32-smt": Wish(cpu_options={"full-pcpus-only": "true", "distribute-cpus-across-numa": "true"}),
    "epyc-nps4": Wish(policy="restricted", scope="pod", cpu_options={"align-by-socket": "true"}),
    "superchip-34": Wish(),
    "edge-1": Wish(kube_reserved="512Mi", system_reserved="300Mi", eviction="1%"),
}
"""By preset: options of every maturity, more zones than the kubelet allows by default, a threshold in percent."""
MINOR = versions.parse(build.KUBERNETES)


def printed(name: str) -> NodeSpec:
    machine = presets.machine(name)
    assert MINOR is not None
    config = kubeletfile.proposed(machine, WISHES[name], MINOR)
    return NodeSpec(name=f"printed-{name}", machine=machine, kubelet=config)


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Live:
    nodes = tuple(printed(name) for name in WISHES)
    return labs.of(LabSpec(name=f"deployed-{os.getpid()}", nodes=nodes, agent=True, scheduler=True))


# With 34 zones the kubelet starts, and then goes through 2^34 sets of zones for the first container.
@pytest.mark.parametrize("name", [name for name in WISHES if name != "superchip-34"])
def test_a_real_kubelet_starts_with_the_printed_configuration_and_aligns_a_pod(lab: Live, name: str) -> None:
    node = f"printed-{name}"
    pod = name.replace("-", "")
    lab.create(guaranteed(pod, 4, schedulerName="numalign", nodeSelector={"kubernetes.io/hostname": node}))
    found = lab.settled(pod)
    assert (found.status.phase, found.spec.node_name) == ("Running", node)
    ((_, held),) = [each for each in books.cpus(lab.node(node)).items() if each[0][0] == found.metadata.uid]
    zones = topology.discover(presets.machine(name)).zones
    assert held.bit_count() == 4
    assert len([zone for zone, cpus in zones.items() if cpus & held]) == 1, cpuset.text(held)


def deploy(lab: Live, line: str) -> Result:
    return CliRunner().invoke(app, ["deploy", *line.split(), "--kubeconfig", str(lab.lab.kubeconfig)])


def summary(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["summary"]


def test_a_real_server_and_its_controllers_take_an_installation_in_and_let_it_go(lab: Live) -> None:
    """The lab's runtime runs no program, so that no probe succeeds and nothing becomes ready."""
    assert deploy(lab, "diff").exit_code == 2
    first = summary(deploy(lab, "apply --no-wait -o json"))
    assert (first["created"], first.get("configured", 0)) == (18, 0)
    second = summary(deploy(lab, "apply --no-wait -o json"))
    assert (second["unchanged"], second.get("created", 0), second.get("configured", 0)) == (18, 0, 0)
    late = deploy(lab, "apply --timeout 1s")
    assert late.exit_code == 3
    changed = summary(deploy(lab, "apply --no-wait -o json --set scheduler.replicas=1"))
    assert (changed["configured"], changed["pruned"]) == (1, 1)
    removed = deploy(lab, "remove -o json")
    assert removed.exit_code == 0, removed.output
    assert {each["action"] for each in json.loads(removed.stdout)["objects"]} <= {"removed", "kept"}
    assert deploy(lab, "status").exit_code == 2
    assert deploy(lab, "diff").exit_code == 2
