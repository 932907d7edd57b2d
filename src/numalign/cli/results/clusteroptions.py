"""Reads the nodes and the scenario of an embedded cluster from options, names and files.

`numalign cluster` and `numalign scenario` call it. Errors are BadObject, raised before anything starts."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

from msgspec import Struct

from numalign.api.decode import fields
from numalign.api.decode.fields import Field
from numalign.api.errors import BadObject
from numalign.cli import fileio, inputs
from numalign.kubelet.machine.machine import Machine
from numalign.simulator.hosting import HostedCluster
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.scenarios import catalogue, nodegroups, scenariofile
from numalign.simulator.scenarios.scenario import Scenario

OPTIONS = "the options"


class ClusterOptions(Struct, frozen=True):
    """The options that describe nodes, as they were typed."""

    nodes: int
    machine: str
    policy: str
    scope: str
    kubelet_config: Path | None
    reports: str
    scenario: str
    direct: bool = False


def hosted(asked: ClusterOptions, *, name: str, seed: int | None, **how: Any) -> HostedCluster:
    """Without a seed, that of the scenario counts."""
    scenario = story(asked.scenario) if asked.scenario else None
    if seed is None:
        seed = scenario.seed if scenario else 1
    nodes = scenario.nodes if scenario else nodes_of(asked)
    _refuse_port_in_use(name, how.get("port", 0))
    words = f"{len(nodes)} node{'s' if len(nodes) > 1 else ''}"
    kubelets = "direct mode" if asked.direct else f"{asked.policy}, scope {asked.scope}"
    words += f", scenario {scenario.name}" if scenario else f" of {asked.machine}, {kubelets}"
    return HostedCluster(name=name, nodes=nodes, words=words, scenario=scenario, seed=seed, **how)


def _refuse_port_in_use(name: str, port: int) -> None:
    if not port:
        return
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as problem:
            why = f"port {port} cannot be served: {os.strerror(problem.errno or 0)}; 0 selects a free one"
            raise BadObject("Cluster", name, "--port", why) from None


def nodes_of(asked: ClusterOptions) -> tuple[NodeSpec, ...]:
    machine = inputs.machine(asked.machine)
    managed = {
        "policy": asked.policy,
        "scope": asked.scope,
        "kubelet": _configuration(asked.kubelet_config) if asked.kubelet_config else nodegroups.usual(machine),
        "reports": {"as": asked.reports},
    }
    group = {
        # A group of one has no number, and "node node" reads like a mistake.
        "name": "node" if asked.nodes > 1 else "node-0",
        "count": asked.nodes,
        "machine": asked.machine,
        **({"mode": "direct"} if asked.direct else managed),
    }
    return tuple(nodegroups.read(fields.root(group, "Nodes", OPTIONS), lambda field: machine))


def story(name_or_path: str) -> Scenario:
    """The scenario of this name in the catalogue, else that of the file."""
    if name_or_path in catalogue.names() and not os.path.exists(name_or_path):
        return catalogue.scenario(name_or_path)
    if name_or_path != fileio.STDIN and not os.path.exists(name_or_path):
        known = fields.suggestion(name_or_path, catalogue.names())
        raise BadObject("Scenario", fileio.shown(name_or_path), "", f"no such scenario and no such file; {known}")
    document = fileio.only(name_or_path)
    return scenariofile.read(document.value, document.place, _machine)


def _machine(field: Field) -> Machine:
    return inputs.machine(fields.text(field))


def _configuration(path: Path) -> object:
    return fileio.only(str(path)).value
