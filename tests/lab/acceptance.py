"""Labs for the acceptance scenarios: two nodes per scope of the Topology Manager, and the scheduler of a setting."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from msgspec import structs

from numalign.kubelet.machine import machinefile
from numalign.lab import spec
from numalign.lab.spec import LabSpec, NodeSpec
from tests.embedded.acceptance import conftest as embedded
from tests.embedded.acceptance import site as sites
from tests.embedded.acceptance.site import Setting, Site
from tests.lab.labs import Labs

PROGRAMS: dict[Setting, str] = {"second": "scheduler", "only": "scheduler", "extender": "kube-scheduler"}


def nodes() -> Iterator[NodeSpec]:
    machine = machinefile.read(sites.MACHINE, "acceptance")
    for scope in ("container", "pod"):
        more = {**embedded.KUBELET, "topologyManagerScope": scope}
        for each in spec.repeated(spec.node(scope, machine, kubelet=more), 2):
            yield structs.replace(each, labels={sites.SCOPE_LABEL: scope})


def lab(setting: Setting) -> LabSpec:
    """Two settings share a lab, in which each has a scheduler of its own name."""
    only = setting == "only"
    name = f"acceptance-{'only' if only else 'beside'}-{os.getpid()}"
    return LabSpec(
        name=name, nodes=tuple(nodes()), agent=True, only_scheduler=only, scheduler=not only, extender=not only
    )


@contextlib.contextmanager
def running(labs: Labs, setting: Setting) -> Iterator[Site]:
    live = labs.of(lab(setting))
    part = live.lab.parts[PROGRAMS[setting]]
    site = Site(setting, live.lab.kubeconfig, lambda wanted: part.start() if wanted else part.stop())
    with contextlib.closing(site):
        yield site
