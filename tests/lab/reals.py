"""Labs with real containers, for any test that runs pods: start one, load images, use kubectl.

    with reals.running(labs, nodes=2, stock_scheduler=True) as live:
        image = reals.load(live, archive)
        reals.kubectl(live, "apply", "-f", "-", stdin=manifest)

`live.lab.kubeconfig` is the administrator's kubeconfig. `reals.probe_archive` makes an image of a small program."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from numalign.kubelet.machine import presets
from numalign.lab import build, members, preflight, spec
from numalign.lab.containers import images
from numalign.lab.containers.images import Contents
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec, NodeSpec
from tests.conftest import require
from tests.lab.labs import Labs
from tests.lab.live import Live

MACHINE = "2x16"
PROBE = "localhost/numalign/probe:1"
SOURCE = Path(__file__).parent / "probe" / "main.go"
PATIENCE = 120.0


def need(labs: Labs, nodes: int = 2) -> None:
    """Skip the test where a lab of this many nodes cannot run; fail where CI=true. Where its inotify instances are not
    free, shared labs end, the one first that no test has used for the longest time."""
    labs.make_room(preflight.instances(nodes, 0, containers=True))
    problem = preflight.missing(nodes, containers=True)
    require(not problem, f"what a lab with real containers runs on: {problem}")


def nodes_of(count: int, machine: str = MACHINE, **kubelet: Any) -> tuple[NodeSpec, ...]:
    return spec.repeated(spec.node("node", presets.machine(machine), more=kubelet), count)


@contextlib.contextmanager
def running(labs: Labs, nodes: int = 2, *, later: int = 0, machine: str = MACHINE, **more: Any) -> Iterator[Live]:
    """A lab of its own with this many equal nodes, with room for those that a test adds `later`; `more` are fields of
    its specification."""
    need(labs, nodes + later)
    named = {"name": f"real-{os.getpid()}", **more}
    with Live.up(LabSpec(nodes=nodes_of(nodes, machine), runtime="containerd", **named)) as live:
        yield live


def load(live: Live, archive: Path, name: str = "") -> str:
    """Load an OCI archive into every node, also into those that are added later; the name of the image."""
    return live.run(members.load(live.lab, archive, name))


def add_node(live: Live, wanted: NodeSpec) -> LabNode:
    return live.run(members.add(live.lab, wanted))


def remove_node(live: Live, name: str) -> None:
    live.run(members.remove(live.lab, name))


def kubectl(live: Live, *words: str, stdin: str = "") -> str:
    """The output of the lab's kubectl; AssertionError with its words if it fails."""
    done = tried_kubectl(live, *words, stdin=stdin)
    assert done.returncode == 0, f"kubectl {' '.join(words)}: {done.stderr}"
    return done.stdout


def tried_kubectl(live: Live, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    place = live.lab.kubeconfig
    variables = {**os.environ, "KUBECONFIG": str(place), "KUBECACHEDIR": str(place.with_name("kubectl-cache"))}
    return subprocess.run(
        [live.lab.tools / "kubectl", *words],
        env=variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def probe_archive(folder: Path) -> Path:
    """An image with one static program, which waits, serves, and tells what a container sees."""
    program, archive = folder / "probe", folder / "probe.tar"
    command = [str(build.go()), "build", "-trimpath", "-ldflags", "-s -w", "-o", str(program), str(SOURCE)]
    subprocess.run(command, env=build.environment(), cwd=folder, check=True, capture_output=True)
    contents = Contents(name=PROBE, entrypoint=("/probe",), programs={"probe": program.read_bytes()})
    archive.write_bytes(images.archive(contents))
    return archive
