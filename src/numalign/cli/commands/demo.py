"""`numalign demo`: shows what topology-aware admission and scheduling do, on one screen.

Pods arrive on a two-socket GPU server whose kubelet requires one zone per container. All pods fit the node's totals;
one is rejected, and the page says why. Then two schedulers place a burst of pods on an embedded cluster. The models
compute every number; examples/ has the same node and pods as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from numalign.cli import output

if TYPE_CHECKING:
    from numalign.api.objects.pod import Pod
    from numalign.cli.display.formats import Page
    from numalign.cli.display.values import AdmitReport

app = typer.Typer()

MACHINE = "gpu-8"
GPU, NIC = "nvidia.com/gpu", "vpc.amazonaws.com/efa"

CONFIGURATION = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1",
    "kind": "KubeletConfiguration",
    "topologyManagerPolicy": "single-numa-node",
    "cpuManagerPolicy": "static",
    "memoryManagerPolicy": "Static",
    "reservedSystemCPUs": "0,48,96,144",
    "kubeReserved": {"memory": "6Gi"},
    "evictionHard": {"memory.available": "2Gi"},
    "reservedMemory": [{"numaNode": zone, "limits": {"memory": "4Gi"}} for zone in (0, 1)],
}

Resources = Mapping[str, Mapping[str, object]]

PODS: Mapping[str, Resources] = {
    "train": {"limits": {"cpu": 48, "memory": "512Gi", GPU: 4, NIC: 4}},
    "chat": {"limits": {"cpu": 24, "memory": "192Gi", GPU: 2, NIC: 1}},
    "etl": {"limits": {"cpu": 60, "memory": "256Gi"}},
    "web": {"requests": {"cpu": 2, "memory": "4Gi"}},
    "embed": {"limits": {"cpu": 16, "memory": "64Gi", GPU: 1}},
}
REFUSED = "embed"
LEAN = {"limits": {"cpu": 10, "memory": "64Gi", GPU: 1}}


@app.command(epilog="Example: numalign demo")
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the cluster of the second part running for kubectl.")
    ] = False,
) -> None:
    """Show how one node decides, then a whole cluster: with a scheduler that sees totals only, and with numalign."""
    from numalign.cli.display import formats
    from numalign.cli.results import democluster

    page = formats.Page()
    _draw(page, answer(PODS), answer({**PODS, REFUSED: LEAN}))
    page.add()
    drawn = democluster.draw(page)
    output.show(page.text())
    for each in drawn.missed:
        output.warn(f"expectation failed: {each}")
    if keep:
        output.show(democluster.kept(drawn.waiting))
    if drawn.missed:
        raise typer.Exit(1)


def answer(pods: Mapping[str, Resources]) -> AdmitReport:
    """Admits the pods in order on an empty node."""
    from numalign.cli.results import admit
    from numalign.kubelet import configuration, start
    from numalign.kubelet.machine import presets
    from numalign.simulator.scenarios import nodegroups

    machine = presets.machine(MACHINE)
    # Both parts of the demo show the same version of the kubelet.
    kubelet = start.start(machine, configuration.read(CONFIGURATION, "demo", machine, nodegroups.USUAL_MINOR))
    return admit.admit_all(kubelet, [(_pod(name, wants), "demo") for name, wants in pods.items()])


def _pod(name: str, resources: Resources) -> Pod:
    from numalign.api.decode import decode
    from numalign.api.objects import pod, requests

    container = {"name": "main", "resources": resources}
    written = {"metadata": {"name": name, "namespace": "default"}, "spec": {"containers": [container]}}
    return requests.defaulted(decode.decode(pod.Pod, written))


def _draw(page: Page, report: AdmitReport, with_fewer: AdmitReport) -> None:
    from numalign.cli.display import formats, matrix
    from numalign.cli.results import admit

    page.add("A server with two NUMA zones. A container has to get all it asks for from one of them.")
    page.add(formats.node(report.machine, report.kubelet))
    page.add()
    table = page.table("pod", "asks for", "verdict", "where")
    for pod in report.pods:
        table.add_row(*admit.line(pod))
    page.add(table)
    page.add()
    matrix.draw(page, report)
    page.add()
    admit.draw(page, report.pods[-1])
    page.add()
    page.add(f"Asking for {formats.wants(with_fewer.pods[-1].requests)}, it would be {with_fewer.pods[-1].verdict}.")
