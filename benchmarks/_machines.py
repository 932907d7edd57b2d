"""Machines and pods that several questions share: regular, made from nothing but their numbers."""

from numalign.api.decode import quantity
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.pod import Container, Pod, PodSpec, ResourceRequirements
from numalign.kubelet.machine.machine import Core, Device, DevicePlugin, Machine, Zone
from numalign.kubelet.settings import MemoryReservation, Settings, TopologyPolicy

GIB = 1 << 30
GPU = "example.com/gpu"
CPUS_PER_ZONE = 32


def machine(zones: int) -> Machine:
    """Zones of 32 CPUs, two to a core, 64 GiB and 8 GPUs each; one socket per two zones."""
    return Machine(
        name=f"{zones} zones",
        zones=tuple(
            Zone(id=zone, cores=_cores(zone), memory=64 * GIB, distances=_distances(zone, zones))
            for zone in range(zones)
        ),
        devices={GPU: DevicePlugin(tuple(Device(f"gpu-{n:03}", (n // 8,)) for n in range(8 * zones)))},
    )


def settings(policy: TopologyPolicy) -> Settings:
    return Settings(
        topology_policy=policy,
        cpu_policy="static",
        memory_policy="Static",
        reserved={"cpu": 1000, "memory": GIB},
        reserved_memory=(MemoryReservation(0, {"memory": GIB}),),
    )


def pod(containers: int) -> Pod:
    """Every container asks for 2 CPUs, 1 GiB and a GPU."""
    wants = {name: quantity.parse(text) for name, text in (("cpu", "2"), ("memory", "1Gi"), (GPU, "1"))}
    each = ResourceRequirements(requests=wants, limits=wants)
    return Pod(
        metadata=ObjectMeta(name="bench", uid="bench"),
        spec=PodSpec(containers=tuple(Container(name=f"c{n}", resources=each) for n in range(containers))),
    )


def _cores(zone: int) -> tuple[Core, ...]:
    first = zone * CPUS_PER_ZONE
    return tuple(Core(zone // 2, (first + n, first + n + CPUS_PER_ZONE // 2)) for n in range(CPUS_PER_ZONE // 2))


def _distances(zone: int, zones: int) -> tuple[int, ...]:
    return tuple(10 if other == zone else 20 for other in range(zones))
