"""Embedded clusters for the acceptance scenarios, one per setting, started when a scenario first asks for it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from numalign.lab import controlplane
from tests.embedded import clusters
from tests.embedded import test_extender as extenders
from tests.embedded.acceptance import site as sites
from tests.embedded.acceptance.site import DEFAULT, OWN, SCOPE_LABEL, Setting, Site
from tests.embedded.clusters import Up

ONE_IN = 5
"""Of the scenarios, in settings other than the first: each waits for seconds, and the others are slow tests."""
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
KUBELET = {
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "memoryManagerPolicy": "Static",
    "kubeReserved": {"memory": "924Mi"},
    "evictionHard": {"memory.available": "100Mi"},
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}],
}
PROMPT = {"window": "20ms"}
FROZEN = {"onChange": False, "period": "24h"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        setting = item.callspec.params.get("cluster") if isinstance(item, pytest.Function) and _has_spec(item) else None
        # Which ones depends on names alone, so that every run and every worker has the same.
        if setting in sites.SETTINGS[1:] and zlib.crc32(item.nodeid.encode()) % ONE_IN:
            item.add_marker(pytest.mark.slow)
        if setting == "extender":
            item.add_marker(pytest.mark.built)


def _has_spec(item: pytest.Function) -> bool:
    return hasattr(item, "callspec")


def group(name: str, count: int, scope: str, reports: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "count": count,
        "machine": sites.MACHINE,
        "policy": "single-numa-node",
        "scope": scope,
        "kubelet": KUBELET,
        "labels": {SCOPE_LABEL: name},
        "reports": reports,
        "starts": "0s",
    }


NODES = [
    group("container", 2, "container", PROMPT),
    group("pod", 2, "pod", PROMPT),
    # The first report of this node is also its last one.
    group("frozen", 1, "container", FROZEN),
]


def scenario(folder: Path) -> Path:
    file = folder / "nodes.yaml"
    tree = {"name": "acceptance", "title": "Nodes of two zones", "about": "-", "lasts": "24h", "nodes": NODES}
    file.write_text(json.dumps(tree))
    return file


class Program:
    """A command that is started and ended, again and again."""

    def __init__(self, folder: Path, words: list[str]) -> None:
        self._log, self._words = folder / "scheduler.log", words
        self._process: subprocess.Popen[bytes] | None = None

    def toggle(self, wanted: bool) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)
            self._process = None
        if wanted:
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(self._words, stdout=log, stderr=log)


def scheduler(folder: Path, up: Up, names: list[str]) -> Program:
    config = folder / "scheduler.json"
    config.write_text(json.dumps({**KIND, "profiles": [{"schedulerName": name} for name in names]}))
    port = controlplane.free_port()
    words = f"scheduler run --config {config} --kubeconfig {up.kubeconfig} --port {port}"
    return Program(folder, clusters.numalign(words))


def extended(folder: Path, up: Up, stack: ExitStack) -> Program:
    """kube-scheduler with our extender."""
    keys = extenders.make_keys(folder)
    url = stack.enter_context(extenders.extending(folder, up, keys))
    return Program(folder, extenders.command(folder, up, keys, url, ""))


PROGRAMS: dict[Setting, Callable[[Path, Up, ExitStack], Program]] = {
    "second": lambda folder, up, _: scheduler(folder, up, [OWN]),
    "only": lambda folder, up, _: scheduler(folder, up, [DEFAULT, OWN]),
    "extender": extended,
}


@contextlib.contextmanager
def running(folder: Path, setting: Setting) -> Iterator[Site]:
    options = "" if setting == "second" else "--no-blind-scheduler"
    with ExitStack() as stack:
        up = stack.enter_context(clusters.up(folder, f"--scenario {scenario(folder)} {options}"))
        program = PROGRAMS[setting](folder, up, stack)
        stack.callback(program.toggle, False)
        program.toggle(True)
        site = Site(setting, up.kubeconfig, program.toggle)
        stack.callback(site.close)
        yield site


@pytest.fixture(scope="session", params=sites.SETTINGS)
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp(request.param), request.param) as site:
        yield site


@pytest.fixture
def site(cluster: Site) -> Iterator[Site]:
    """Without pods, before and after."""
    yield cluster
    cluster.clear()
