"""The kubelet's configuration: which source takes precedence, how files and flags are merged, and the errors."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import kubeletconfig
from numalign.agent.sources.kubeletconfig import ConfigSources, Configuration, Fetch
from numalign.api import errors
from numalign.api.decode import cpuset
from numalign.kubelet.machine import presets
from numalign.kubelet.versions import Minor
from tests.unit.agent import processes

MACHINE = presets.machine("2x16")
HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
MAIN = "var/lib/kubelet/config.yaml"
FOLDER = "/etc/kubelet.d"


def put(host: Path, path: str, text: str) -> None:
    place = host / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(HEAD + text)


def run(host: Path, *flags: str) -> None:
    """A kubelet with these flags, as /proc shows it."""
    processes.kubelet(host / "proc", 4711, *flags)


def read(host: Path, *, configz: Fetch | None = None, config_dir: str = "") -> Configuration:
    return asyncio.run(kubeletconfig.read(ConfigSources(host=host, config_dir=config_dir, configz=configz), MACHINE))


def answering(answer: Any) -> Fetch:
    async def fetch() -> bytes:
        return json.dumps(answer).encode()

    return fetch


async def refusing() -> bytes:
    raise errors.BadObject("KubeletConfiguration", "/configz", "", "no answer: forbidden")


def test_a_file_alone_gets_the_kubelets_defaults(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: restricted\n")
    found = read(tmp_path)
    assert (found.source, found.assumed, found.problems) == ("/var/lib/kubelet/config.yaml", False, ())
    assert (found.settings.topology_policy, found.settings.topology_scope) == ("restricted", "container")
    assert found.settings.eviction_hard == {"memory": 100 << 20}


@pytest.mark.parametrize(
    "field",
    ["topologyManagerPolicy", "cpuManagerPolicyOptions", "reservedMemory", "featureGates", "evictionHard", "maxPods"],
)
def test_a_field_that_is_null_in_the_main_file_is_not_given(field: str, tmp_path: Path) -> None:
    put(tmp_path, MAIN, "cpuManagerPolicy: none\n")
    without = read(tmp_path).settings
    put(tmp_path, MAIN, f"cpuManagerPolicy: none\n{field}: null\n")
    assert read(tmp_path).settings == without


@pytest.mark.parametrize("youngest", [MAIN, "etc/kubelet.d", "etc/kubelet.d/20-sub/any.conf"])
def test_the_newest_file_or_folder_is_the_time_of_the_configuration(youngest: str, tmp_path: Path) -> None:
    put(tmp_path, MAIN, "")
    put(tmp_path, "etc/kubelet.d/10-first.conf", "topologyManagerPolicy: restricted\n")
    put(tmp_path, "etc/kubelet.d/20-sub/any.conf", "topologyManagerScope: pod\n")
    os.utime(tmp_path / youngest, ns=(0, 1 << 62))
    assert read(tmp_path, config_dir=FOLDER).written == 1 << 62


def test_drop_ins_are_merged_in_the_order_of_their_names(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "cpuManagerPolicy: static\nkubeReserved: {cpu: '1', memory: 1Gi}\n")
    put(tmp_path, "etc/kubelet.d/20-last.conf", "topologyManagerPolicy: single-numa-node\nkubeReserved: {cpu: '2'}\n")
    put(tmp_path, "etc/kubelet.d/10-first.conf", "topologyManagerPolicy: restricted\n")
    put(tmp_path, "etc/kubelet.d/15-sub/any.conf", "topologyManagerScope: pod\n")
    put(tmp_path, "etc/kubelet.d/99-other.yaml", "topologyManagerPolicy: none\n")
    found = read(tmp_path, config_dir=FOLDER)
    assert found.source == "/var/lib/kubelet/config.yaml, 3 drop-ins"
    assert (found.settings.topology_policy, found.settings.topology_scope) == ("single-numa-node", "pod")
    assert found.settings.reserved == {"cpu": 2000, "memory": 1 << 30}


DROP_INS = {
    "a list takes the place of the list": (
        "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]",
        "reservedMemory: [{numaNode: 1, limits: {memory: 2Gi}}]",
        lambda found: [(each.zone, dict(each.limits)) for each in found.reserved_memory] == [(1, {"memory": 2 << 30})],
    ),
    "null takes away": (
        "topologyManagerPolicy: restricted",
        "topologyManagerPolicy: null",
        lambda found: found.topology_policy == "none",
    ),
    "gates are merged": (
        "featureGates: {A: true, B: true}",
        "featureGates: {B: false}",
        lambda found: found.feature_gates == {"A": True, "B": False},
    ),
    "the default threshold of memory stays": (
        "maxPods: 50",
        "evictionHard: {nodefs.available: 5%}",
        lambda found: found.eviction_hard == {"memory": 100 << 20},
    ),
    "thresholds taken away leave none": (
        "maxPods: 50",
        "evictionHard: null",
        lambda found: found.eviction_hard == {},
    ),
}


@pytest.mark.parametrize("main, drop_in, holds", DROP_INS.values(), ids=DROP_INS)
def test_drop_ins_are_merge_patches(main: str, drop_in: str, holds: Any, tmp_path: Path) -> None:
    put(tmp_path, MAIN, main)
    put(tmp_path, "etc/kubelet.d/10.conf", drop_in)
    found = read(tmp_path, config_dir=FOLDER)
    assert found.problems == ()
    assert holds(found.settings)


def test_flags_of_the_running_kubelet_win_and_name_its_files(tmp_path: Path) -> None:
    put(tmp_path, "etc/k.yaml", "topologyManagerPolicy: restricted\nfeatureGates: {A: true}\n")
    run(tmp_path, "--config=/etc/k.yaml", "--topology-manager-policy", "best-effort", "--feature-gates=B=false")
    found = read(tmp_path)
    assert found.source == "/etc/k.yaml, flags"
    assert found.settings.topology_policy == "best-effort"
    assert found.settings.feature_gates == {"A": True, "B": False}


def test_a_kubelet_without_a_file_has_none_whatever_lies_around(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: restricted\n")
    run(tmp_path, "--reserved-cpus=0-1")
    found = read(tmp_path)
    assert (found.source, found.settings.topology_policy) == ("flags", "none")
    assert found.settings.reserved_cpus == cpuset.parse("0-1")
    assert found.settings.eviction_hard == {}


def test_a_kubelet_of_another_root_folder_is_not_ours(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: restricted\n")
    run(tmp_path, "--root-dir=/srv/kubelet", "--topology-manager-policy=none")
    assert read(tmp_path).settings.topology_policy == "restricted"


def test_configz_comes_first(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: none\n")
    found = read(tmp_path, configz=answering({"kubeletconfig": {"topologyManagerPolicy": "restricted"}}))
    assert (found.source, found.settings.topology_policy) == ("/configz", "restricted")


CONFIGZ: dict[str, Fetch] = {
    "refused": refusing,
    "not a configz": answering({"status": "Failure"}),
    "not an object": answering([]),
    "a bad field": answering({"kubeletconfig": {"topologyManagerPolicy": "tightest"}}),
}


@pytest.mark.parametrize("configz", CONFIGZ.values(), ids=CONFIGZ)
def test_the_file_counts_where_configz_does_not_answer(configz: Fetch, tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: restricted\n")
    found = read(tmp_path, configz=configz)
    assert (found.source, found.settings.topology_policy) == ("/var/lib/kubelet/config.yaml", "restricted")
    assert "/configz" in found.problems[0]


UNREADABLE = {
    "no file": (None, "config.yaml is not there"),
    "no YAML": ("a: [", "not YAML"),
    "a bad field": ("cpuManagerPolicy: 7", "is not text"),
    "CPUs that are not there": ("reservedSystemCPUs: '99'", "the machine has no CPU 99"),
    "two keys": ("maxPods: 1\nmaxPods: 2", "is there twice"),
}


@pytest.mark.parametrize("text, why", UNREADABLE.values(), ids=UNREADABLE)
def test_without_a_readable_source_defaults_are_assumed(text: str | None, why: str, tmp_path: Path) -> None:
    if text is not None:
        put(tmp_path, MAIN, text)
    found = read(tmp_path)
    assert (found.assumed, found.source, found.settings.topology_policy) == (True, "defaults", "none")
    assert why in found.problems[0]
    assert found.problems[-1] == "the kubelet's defaults are assumed"


def test_a_drop_in_without_a_kind_keeps_the_kubelet_from_starting(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "")
    (tmp_path / "etc/kubelet.d").mkdir(parents=True)
    (tmp_path / "etc/kubelet.d/1.conf").write_text("maxPods: 7\n")
    found = read(tmp_path, config_dir=FOLDER)
    assert found.assumed
    assert "apiVersion: missing" in found.problems[0]


def test_a_missing_drop_in_folder_is_reported(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "")
    assert "kubelet.d cannot be read: No such file" in read(tmp_path, config_dir=FOLDER).problems[0]


def test_the_minor_is_the_kubelets() -> None:
    sources = ConfigSources(configz=answering({"kubeletconfig": {}}))
    assert asyncio.run(kubeletconfig.read(sources, MACHINE, Minor(1, 35))).settings.minor == (1, 35)


SECRETS = {
    "one line of text": "eyJhbGciOiJSUzI1NiIs",
    "another object": "apiVersion: v1\nkind: Secret\ndata: {eyJhbGciOiJSUzI1NiIs: eyJhbGciOiJSUzI1NiIs}",
    "the kind": "apiVersion: eyJhbGciOiJSUzI1NiIs\nkind: eyJhbGciOiJSUzI1NiIs",
    "no YAML": "eyJhbGciOiJSUzI1NiIs: [",
    "a key twice": "eyJhbGciOiJSUzI1NiIs: 1\neyJhbGciOiJSUzI1NiIs: 2",
    "a tag": "!eyJhbGciOiJSUzI1NiIs x",
    "a value": f"{HEAD}topologyManagerPolicy: eyJhbGciOiJSUzI1NiIs",
    "a key in a map": f"{HEAD}kubeReserved: {{cpu: eyJhbGciOiJSUzI1NiIs}}\nevictionHard: {{eyJhbGciOiJSUzI1NiIs: x}}",
}


@pytest.mark.parametrize("text", SECRETS.values(), ids=SECRETS)
@pytest.mark.parametrize("flag, path", [("--config", "etc/any"), ("--config-dir", "etc/any/10.conf")])
def test_a_file_that_a_command_line_names_is_not_quoted(flag: str, path: str, text: str, tmp_path: Path) -> None:
    run(tmp_path, f"{flag}=/etc/any")
    put(tmp_path, path, "")
    (tmp_path / path).write_text(text)
    found = read(tmp_path)
    assert (found.assumed, "eyJhbG" in " ".join(found.problems)) == (True, False), found.problems
    assert "content is not shown" in found.problems[0]


def test_an_impostor_is_named_when_no_kubelet_is_seen(tmp_path: Path) -> None:
    put(tmp_path, MAIN, "topologyManagerPolicy: restricted\n")
    processes.kubelet(tmp_path / "proc", 7, "--topology-manager-policy=none", uids="1 1 1 1")
    found = read(tmp_path)
    assert found.settings.topology_policy == "restricted"
    assert found.problems[0].startswith("process 7 is called kubelet")
