"""The static policy's options: which exist, which exclude each other, which this machine allows (kubelet spec 5.8)."""

from __future__ import annotations

from msgspec import Struct

from numalign.kubelet import options
from numalign.kubelet.cpu.topology import CPUTopology
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.settings import Settings

MANAGER = options.CPU.manager

FULL_PCPUS_ONLY = "full-pcpus-only"
STRICT_RESERVATION = "strict-cpu-reservation"
ALIGN_UNCORE = "prefer-align-cpus-by-uncorecache"
ACROSS_NUMA = "distribute-cpus-across-numa"
ALIGN_BY_SOCKET = "align-by-socket"
ACROSS_CORES = "distribute-cpus-across-cores"

KNOWN = frozenset({FULL_PCPUS_ONLY, STRICT_RESERVATION, ALIGN_UNCORE, ACROSS_NUMA, ALIGN_BY_SOCKET, ACROSS_CORES})

CONFLICTS = (
    (FULL_PCPUS_ONLY, ACROSS_CORES),
    (ACROSS_NUMA, ACROSS_CORES),
    (ALIGN_UNCORE, ACROSS_CORES),
    (ALIGN_UNCORE, ACROSS_NUMA),
)


class CPUOptions(Struct, frozen=True, kw_only=True):
    """The options after parsing."""

    full_pcpus_only: bool = False
    strict_reservation: bool = False
    align_uncore: bool = False
    across_numa: bool = False
    align_by_socket: bool = False
    across_cores: bool = False


def read(settings: Settings, topology: CPUTopology) -> CPUOptions:
    """Parse the configured options, refusing what the kubelet refuses to start with."""
    chosen: set[str] = set()
    for name, text in settings.cpu_options.items():
        options.require_available(name, KNOWN, options.CPU, settings)
        if options.boolean(name, text, options.CPU):
            chosen.add(name)
    for one, other in CONFLICTS:
        if one in chosen and other in chosen:
            raise StartRefusal(MANAGER, f"static policy options {one} and {other} can not be used at the same time")
    if ALIGN_BY_SOCKET in chosen:
        _require_sockets_to_fit(settings, topology)
    return CPUOptions(
        full_pcpus_only=FULL_PCPUS_ONLY in chosen,
        strict_reservation=STRICT_RESERVATION in chosen,
        align_uncore=ALIGN_UNCORE in chosen,
        across_numa=ACROSS_NUMA in chosen,
        align_by_socket=ALIGN_BY_SOCKET in chosen,
        across_cores=ACROSS_CORES in chosen,
    )


def _require_sockets_to_fit(settings: Settings, topology: CPUTopology) -> None:
    if settings.topology_policy == "single-numa-node":
        raise StartRefusal(  # the misspelling is the kubelet's
            MANAGER,
            "Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option",
        )
    if len(topology.sockets) > len(topology.zones):
        raise StartRefusal(
            MANAGER,
            "Align by socket is not compatible with hardware where number of sockets are more than number of NUMA",
        )
