"""Generates pods, and cases of the CPU, memory and device managers."""

from random import Random
from typing import Final

from numalign.api.decode import cpuset
from numalign.oracle.harness.draws import chance, cut, some, weighted
from numalign.oracle.kubelet.forms import Topology
from numalign.oracle.kubelet.generate import machines

MIB = 1 << 20
POLICIES: Final = ("none", "best-effort", "restricted", "single-numa-node")


class RequestLimits:
    """What the containers of one case may request, in the machine's order of magnitude."""

    def __init__(
        self, *, cpus: int, memory: int, hugepages: tuple[str, ...] = (), devices: tuple[str, ...] = ()
    ) -> None:
        self.cpus = max(1, cpus)
        self.memory = max(64 * MIB, memory)
        self.hugepages = hugepages
        self.devices = devices


def generated_pod(rng: Random, uid: str, wishes: RequestLimits, *, pod_level: float = 0.0) -> dict[str, object]:
    guaranteed = chance(rng, 0.88)
    apps = weighted(rng, {1: 6, 2: 3, 3: 1})
    inits = weighted(rng, {0: 7, 1: 2, 2: 1, 3: 0.5})
    made: dict[str, object] = {"uid": uid}
    init = [container(rng, f"i{n}", wishes, guaranteed, sidecar=chance(rng, 0.4)) for n in range(inits)]
    if init:
        made["init"] = init
    made["containers"] = [container(rng, f"c{n}", wishes, guaranteed) for n in range(apps)]
    if chance(rng, pod_level):
        made["pod_resources"] = _pod_resources(rng, wishes, guaranteed)
    return made


def container(
    rng: Random, name: str, wishes: RequestLimits, guaranteed: bool, *, sidecar: bool = False
) -> dict[str, object]:
    made: dict[str, object] = {"name": name}
    if sidecar:
        made["restartable"] = True
    limits = {"cpu": _cpus(rng, wishes), "memory": str(_bytes(rng, wishes.memory))}
    for size in some(rng, wishes.hugepages, 0.3):
        limits[size] = str(2 * MIB * rng.randint(1, 64) if size.endswith("2Mi") else (1 << 30) * rng.randint(1, 3))
    for resource in some(rng, wishes.devices, 0.5):
        limits[resource] = str(weighted(rng, {1: 5, 2: 3, 3: 1, 4: 1, 0: 0.2}))
    requests = dict(limits)
    if not guaranteed:
        for resource in ("cpu", "memory"):
            if chance(rng, 0.5):
                limits.pop(resource)
    if requests:
        made["requests"] = requests
    if limits:
        made["limits"] = limits
    return made


def _cpus(rng: Random, wishes: RequestLimits) -> str:
    if chance(rng, 0.06):
        return f"{rng.randint(1, wishes.cpus * 1000)}m"
    most = wishes.cpus if chance(rng, 0.3) else max(1, wishes.cpus // 3)
    whole = rng.randint(1, most)
    return f"{whole}000m" if chance(rng, 0.03) else str(whole)


def _bytes(rng: Random, memory: int) -> int:
    most = memory if chance(rng, 0.3) else memory // 4
    return rng.randint(1, max(2, most // (4 * MIB))) * 4 * MIB


def _pod_resources(rng: Random, wishes: RequestLimits, guaranteed: bool) -> dict[str, object]:
    amounts = {"cpu": _cpus(rng, wishes), "memory": str(_bytes(rng, wishes.memory))}
    if wishes.hugepages and chance(rng, 0.2):
        amounts[wishes.hugepages[0]] = str(4 * MIB * rng.randint(1, 32))
    if chance(rng, 0.1):
        amounts.pop(rng.choice(list(amounts)))
    return {"requests": dict(amounts), "limits": dict(amounts) if guaranteed or chance(rng, 0.3) else {}}


OPTIONS = {
    "full-pcpus-only": 0.35,
    "strict-cpu-reservation": 0.2,
    "prefer-align-cpus-by-uncorecache": 0.25,
    "distribute-cpus-across-numa": 0.25,
    "align-by-socket": 0.2,
    "distribute-cpus-across-cores": 0.12,
}


def cpu_case(rng: Random, name: str, topology: Topology) -> dict[str, object]:
    options = cpu_options(rng)
    made = _node(rng, name, topology, options)
    wishes = RequestLimits(cpus=topology.num_cpus, memory=1 << 30)
    made["pod"] = pod = generated_pod(rng, "pod", wishes)
    containers = [*_containers(pod, "init"), *_containers(pod, "containers")]
    made["steps"] = [
        {"container": each["name"], "affinity": random_hint(rng, [node.id for node in topology.numa])}
        for each in containers
    ]
    names = [each["name"] for each in containers]
    rng.shuffle(names)
    made["removals"] = [{"container": each} for each in names]
    return made


def distributed_cpu_case(rng: Random, name: str, topology: Topology) -> dict[str, object]:
    """One container, distributed over zones: the code path with the most edge cases."""
    options = {"distribute-cpus-across-numa": "true"}
    options |= dict.fromkeys(some(rng, ("full-pcpus-only", "align-by-socket"), 0.4), "true")
    made = _node(rng, name, topology, options)
    need = str(rng.randint(1, max(1, topology.num_cpus - 1)))
    amounts = {"cpu": need, "memory": "100Mi"}
    container = {"name": "c0", "requests": amounts, "limits": amounts}
    made["pod"] = {"uid": "pod", "containers": [container]}
    made["steps"] = [{"container": "c0", "affinity": random_hint(rng, [node.id for node in topology.numa])}]
    return made


def cpu_options(rng: Random) -> dict[str, str]:
    """The options. Most combinations start; some have a conflict, or an option set to false."""
    chosen = {option: "true" for option, share in OPTIONS.items() if chance(rng, share)}
    if "distribute-cpus-across-cores" in chosen and chance(rng, 0.8):
        kept = {"distribute-cpus-across-cores", "strict-cpu-reservation", "align-by-socket"}
        chosen = {option: text for option, text in chosen.items() if option in kept}
    if "distribute-cpus-across-numa" in chosen and chance(rng, 0.9):
        chosen.pop("prefer-align-cpus-by-uncorecache", None)
    if chosen and chance(rng, 0.04):
        chosen[rng.choice(list(chosen))] = "false"
    return chosen


def _node(rng: Random, name: str, topology: Topology, options: dict[str, str]) -> dict[str, object]:
    every = cpuset.of(cpu for node in topology.numa for core in node.cores for cpu in core.cpus)
    reserved, count = _reserved(rng, topology, every)
    shared = every & ~reserved
    busy = cpuset.of(some(rng, cpuset.members(shared), rng.choice((0.0, 0.0, 0.2, 0.5, 0.8))))
    if chance(rng, 0.3):
        busy = cpuset.of(cpu for core in _cores(topology) if chance(rng, 0.4) for cpu in core) & shared
    strict = options.get("strict-cpu-reservation") == "true"
    explicit = reserved.bit_count() == count and reserved != 0
    if not explicit:
        busy = 0  # the CPUs that the policy reserves by itself are unknown here, so no assignment may overlap them
    default = every & ~busy & ~(reserved if strict and explicit else 0)
    return {
        "id": name,
        "topology": topology.name,
        "options": options,
        "tm_policy": rng.choice(POLICIES),
        "num_reserved": count,
        "reserved_cpus": cpuset.text(reserved) if explicit else "",
        "default": cpuset.text(default),
        "assignments": {"pre": {"c": cpuset.text(busy)}} if busy else {},
    }


def _reserved(rng: Random, topology: Topology, every: int) -> tuple[int, int]:
    """Reserved CPUs, or only their number if the policy picks them."""
    count = min(weighted(rng, {1: 4, 2: 4, 3: 1, 4: 2}), max(1, topology.num_cpus - 1))
    if chance(rng, 0.35):
        return 0, count
    if chance(rng, 0.5):
        return cpuset.of(rng.sample(cpuset.members(every), count)), count
    core = rng.choice(_cores(topology))
    return cpuset.of(core), len(core)


def _cores(topology: Topology) -> list[tuple[int, ...]]:
    return [core.cpus for node in topology.numa for core in node.cores]


def _containers(pod: dict[str, object], key: str) -> list[dict[str, object]]:
    listed = pod.get(key, [])
    return listed if isinstance(listed, list) else []


GIB = 1 << 30
PAGE_SIZES = {2048: "hugepages-2Mi", 1048576: "hugepages-1Gi"}


def memory_case(rng: Random, name: str) -> dict[str, object]:
    zones = machines.zone_ids(rng, weighted(rng, {1: 1, 2: 5, 3: 2, 4: 4, 5: 1, 6: 1}))
    nodes = memory_nodes(rng, zones)
    sizes = page_sizes(nodes)
    wishes = RequestLimits(cpus=2, memory=int(str(nodes[0]["memory"])) * rng.choice((1, 1, 2)), hugepages=sizes)
    listed = [generated_pod(rng, f"p{n}", wishes) for n in range(rng.randint(1, 5))]
    return {
        "id": name,
        "nodes": nodes,
        "reserved": {str(z): {"memory": part} for z, part in zip(zones, _parts(rng, len(zones)), strict=True)},
        "pods": listed,
        "ops": _ops(rng, listed, zones),
    }


def memory_nodes(rng: Random, zones: list[int]) -> list[dict[str, object]]:
    sizes = [size for size in PAGE_SIZES if chance(rng, 0.4)]
    even = rng.choice((8, 16, 24, 32)) * GIB
    uneven = chance(rng, 0.25)
    return [
        {
            "id": zone,
            "memory": even + rng.randint(0, 8) * GIB if uneven else even,
            "hugepages": [{"page_size_kb": size, "num_pages": _pages(rng, size)} for size in sizes],
        }
        for zone in zones
    ]


def page_sizes(nodes: list[dict[str, object]]) -> tuple[str, ...]:
    pages = nodes[0]["hugepages"]
    return tuple(PAGE_SIZES[page["page_size_kb"]] for page in pages) if isinstance(pages, list) else ()


def _pages(rng: Random, size: int) -> int:
    return rng.randint(0, 4) if size > 2048 else rng.randint(0, 400)


def _parts(rng: Random, zones: int) -> list[int]:
    parts = cut(rng, rng.randint(1, 10), zones)
    return [part * 100 * MIB for part in parts]


def _ops(rng: Random, listed: list[dict[str, object]], zones: list[int]) -> list[dict[str, object]]:
    """Hints and allocation per container, with removals in between. The runner removes a pod that fails."""
    ops: list[dict[str, object]] = []
    for pod in listed:
        ops.append({"op": "pod_hints", "pod": pod["uid"]})
        for name in container_names(pod):
            ops.append({"op": "hints", "pod": pod["uid"], "container": name})
            ops.append({"op": "allocate", "pod": pod["uid"], "container": name, "affinity": random_hint(rng, zones)})
        if chance(rng, 0.3):
            gone = rng.choice(listed[: listed.index(pod) + 1])
            ops += [{"op": "remove", "pod": gone["uid"], "container": name} for name in container_names(gone)]
    return ops


def container_names(pod: dict[str, object]) -> list[str]:
    containers = [*_listed(pod, "init"), *_listed(pod, "containers")]
    return [str(each["name"]) for each in containers]


def _listed(pod: dict[str, object], key: str) -> list[dict[str, object]]:
    value = pod.get(key, [])
    return value if isinstance(value, list) else []


def random_hint(rng: Random, zones: list[int]) -> dict[str, object]:
    """A hint with a few zones, or with none."""
    if chance(rng, 0.3):
        return {"mask": None, "preferred": chance(rng, 0.5)}
    size = min(len(zones), weighted(rng, {1: 6, 2: 3, 3: 1}))
    return {"mask": sorted(rng.sample(zones, size)), "preferred": chance(rng, 0.6)}


NAMES = ("vendor.com/a", "vendor.com/b")


def device_case(rng: Random, name: str) -> dict[str, object]:
    zones = machines.zone_ids(rng, weighted(rng, {1: 1, 2: 5, 3: 2, 4: 4, 6: 1, 8: 1}))
    resources = plugins(rng, zones)
    wishes = RequestLimits(cpus=2, memory=1 << 30, devices=tuple(resources))
    listed = [generated_pod(rng, f"p{n}", wishes) for n in range(rng.randint(1, 5))]
    ops: list[dict[str, object]] = []
    for pod in listed:
        ops.append({"op": "pod_hints", "pod": pod["uid"]})
        for container in container_names(pod):
            ops.append({"op": "hints", "pod": pod["uid"], "container": container})
            ops.append(
                {"op": "allocate", "pod": pod["uid"], "container": container, "affinity": random_hint(rng, zones)}
            )
        if chance(rng, 0.25):
            ops.append({"op": "remove_pod", "pod": rng.choice(listed[: listed.index(pod) + 1])["uid"]})
    return {"id": name, "numa_nodes": zones, "resources": resources, "pods": listed, "ops": ops}


def plugins(rng: Random, zones: list[int], *, always_preferring: bool = False) -> dict[str, object]:
    return {
        resource: {
            "preferred_allocation": always_preferring or chance(rng, 0.9),
            "devices": [_device(rng, zones, f"{resource[-1]}{n:02}", style) for n in range(rng.randint(1, 10))],
        }
        for resource in NAMES[: weighted(rng, {1: 3, 2: 2})]
        for style in [weighted(rng, {"one": 6.0, "several": 2.0, "none": 1.0, "mixed": 2.0})]
    }


def _device(rng: Random, zones: list[int], name: str, style: str) -> dict[str, object]:
    return {"id": name, "healthy": chance(rng, 0.93), "numa": _zones(rng, zones, style)}


def _zones(rng: Random, zones: list[int], style: str) -> list[int] | None:
    if style == "none" or (style == "mixed" and chance(rng, 0.3)):
        return None if chance(rng, 0.8) else []
    if style == "several" or (style == "mixed" and chance(rng, 0.3)):
        return sorted(rng.sample(zones, rng.randint(1, min(3, len(zones)))))
    return [rng.choice(zones)]
