"""How many pods does the model admit per second, and how does that grow with zones and containers?

Ours is the time of one admission: devices, CPUs and memory hinted, merged and allocated for every container. The
limit is the smallest case of the same run, once per container, times what the number of zones may cost: a list has
2^zones masks, 85 times as many at 8 zones as at 2, of which the time may grow by an eighth. The kubelet's own merge
grows with 2^(zones × lists), by six orders of magnitude from 2 to 8 zones at these three lists."""

from collections.abc import Iterator
from functools import partial

from benchmarks import _machines, table, timing
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, start

MAY_GROW = {2: 1.25, 4: 2.0, 8: 10.0}
"""Zones to the factor over two zones that one container may cost."""

CONTAINERS = (1, 4, 8)
REPEATS = 20


def rows() -> Iterator[table.Row]:
    base = seconds(2, 1)
    for zones, factor in MAY_GROW.items():
        for containers in CONTAINERS:
            ours = seconds(zones, containers)
            yield table.Row(
                name=f"admissions: {zones} zones x {containers} containers",
                ours=1 / ours,
                peer=1 / (base * containers * factor),
                unit="pods/s",
                higher_is_better=True,
            )


def seconds(zones: int, containers: int) -> float:
    kubelet = start.start(_machines.machine(zones), _machines.settings("restricted"))
    admit = partial(admit_often, kubelet, _machines.pod(containers))
    return timing.best_of(admit, runs=7) / REPEATS


def admit_often(kubelet: start.Kubelet, pod: Pod) -> None:
    empty = kubelet.initial()
    for _ in range(REPEATS):
        admission.admit(kubelet, empty, pod)
