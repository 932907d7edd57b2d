"""What a node's containerd is told, and what of the system is missing."""

from __future__ import annotations

import json
import tomllib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.lab.containers import network, runtime
from numalign.lab.containers.network import NodeNetwork


def test_the_packages_that_are_missing_are_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find", {"ip": "/sbin/ip"}.get)
    monkeypatch.setattr(runtime, "PLUGINS", ("/nowhere",))
    assert runtime.missing() == (
        "a lab with real containers needs runc, nftables, containernetworking-plugins;"
        " `apt-get install runc nftables containernetworking-plugins`"
    )
    monkeypatch.setattr(runtime, "plugin_folder", lambda: "/opt/cni/bin")
    monkeypatch.setattr(runtime, "find", lambda program: f"/usr/sbin/{program}")
    assert runtime.missing() == ""


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_every_path_is_written_so_that_containerd_reads_it(path: str) -> None:
    read = tomllib.loads(runtime.files(NodeNetwork(3, 0), path, path)["containerd.toml"])["plugins"]
    told = read["io.containerd.cri.v1.runtime"]
    assert told["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == path
    assert told["cni"]["bin_dirs"] == [path]


def test_nodes_have_addresses_of_their_own() -> None:
    nodes = [NodeNetwork(number, 0) for number in range(50)]
    assert len({node.address for node in nodes}) == 50
    for before, after in pairwise(nodes):
        assert not before.pods.overlaps(after.pods)
    assert all(not node.pods.overlaps(network.NODES) for node in nodes)
    written = json.loads(runtime.files(nodes[1], "runc", "plugins")["lab.conflist"])
    assert written["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.250.1.0/24"}]]
