"""Reads the options of `numalign lab up` as nodes. Invalid options raise BadObject before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from numalign.api.decode import fields
from numalign.cli import inputs, yamlfiles
from numalign.lab import node, spec
from numalign.lab.spec import NodeSpec


class NodeOptions(Struct, frozen=True):
    """The options that describe nodes."""

    nodes: int
    machine: str
    policy: str
    scope: str
    kubelet_config: Path | None
    devices: Path | None


def nodes_of(asked: NodeOptions) -> tuple[NodeSpec, ...]:
    """Equal nodes with numbered names."""
    machine = inputs.machine(asked.machine)
    config = _mapping(asked.kubelet_config, "KubeletConfiguration") if asked.kubelet_config else None
    # Options take precedence over the file.
    typed = {"topologyManagerPolicy": asked.policy, "topologyManagerScope": asked.scope}
    more = {key: value for key, value in typed.items() if value}
    one = spec.node("node", machine, kubelet=config, more=more)
    return spec.repeated(_with_devices(one, asked.devices), asked.nodes)


def _with_devices(one: NodeSpec, path: Path | None) -> NodeSpec:
    if path is None:
        return one
    devices = _mapping(path, "Devices")
    return structs.replace(one, devices=devices, machine=node.known(one.machine, devices, str(path)))


def _mapping(path: Path, kind: str) -> dict[str, Any]:
    document = yamlfiles.only(str(path))
    return fields.named(fields.root(document.value, kind, document.place))
