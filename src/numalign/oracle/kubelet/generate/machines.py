"""Generates machines: zones, sockets, cores, threads and L3 groups, even and uneven, in several CPU numberings."""

from random import Random

from numalign.oracle.harness.draws import chance, weighted

MAX_ZONES = 8


def topology(rng: Random, name: str, *, most_zones: int = MAX_ZONES) -> dict[str, object]:
    """One machine in the form of the table of recorded topologies."""
    zones = min(most_zones, weighted(rng, {1: 2, 2: 6, 3: 2, 4: 5, 5: 1, 6: 1.5, 7: 1, 8: 3}))
    threads = weighted(rng, {1: 3, 2: 6, 4: 1})
    cores = _core_counts(rng, zones, threads)
    ids = zone_ids(rng, zones)
    sockets = _Sockets(rng, zones)
    numbers = _numbering(rng, cores, threads)
    per_l3 = weighted(rng, {0: 3, 1: 1, 2: 2, 4: 2})
    numa: list[dict[str, object]] = []
    used: set[int] = set()
    core_index = 0
    for place, zone in enumerate(ids):
        entries = []
        for within in range(cores[place]):
            l3 = None if per_l3 == 0 else core_index // per_l3
            socket = sockets(place, within, cores[place])
            entries.append({"socket": socket, "uncore": l3, "cpus": numbers[core_index]})
            used.add(socket)
            core_index += 1
        numa.append({"id": zone, "distances": [], "cores": entries})
    _add_distances(rng, numa)
    return {"name": name, "num_cpus": sum(cores) * threads, "num_sockets": len(used), "numa": numa}


def zone_ids(rng: Random, count: int) -> list[int]:
    """Ascending ids, sometimes with gaps."""
    if chance(rng, 0.8):
        return list(range(count))
    return sorted(rng.sample(range(count + 4), count))


def _core_counts(rng: Random, zones: int, threads: int) -> list[int]:
    even = rng.randint(1, max(1, 12 // threads) if zones > 4 else max(2, 16 // threads))
    counts = [even] * zones
    if zones > 1 and chance(rng, 0.25):
        counts = [max(1, even + rng.randint(-2, 2)) for _ in range(zones)]
    if zones > 1 and chance(rng, 0.15):
        counts[rng.randrange(zones)] = 0  # a zone with memory only
    return counts


class _Sockets:
    """The socket of a core: whole zones per socket, or several sockets per zone."""

    def __init__(self, rng: Random, zones: int) -> None:
        self.per_zone = weighted(rng, {1: 8, 2: 1}) if zones <= 4 else 1
        self.zones_per_socket = 1 if self.per_zone > 1 else rng.choice([d for d in (1, 2, 4) if d <= zones])
        self.irregular = chance(rng, 0.05)
        self.rng = rng

    def __call__(self, zone: int, core: int, cores: int) -> int:
        if self.irregular:
            return self.rng.randrange(2)
        if self.per_zone > 1:
            return zone * self.per_zone + core * self.per_zone // max(1, cores)
        return zone // self.zones_per_socket


def _numbering(rng: Random, cores: list[int], threads: int) -> list[list[int]]:
    """CPU ids of every core: second threads after all first ones, adjacent, or interleaved over the zones."""
    total = sum(cores)
    style = weighted(rng, {"split": 4.0, "neighbours": 3.0, "dealt": 2.0, "shuffled": 0.5})
    order = list(range(total))
    if style == "dealt":
        by_zone, start = [], 0
        for count in cores:
            by_zone.append(list(range(start, start + count)))
            start += count
        dealt = [zone[turn] for turn in range(max(cores)) for zone in by_zone if turn < len(zone)]
        order = [dealt.index(core) for core in range(total)]
    if style == "shuffled":
        rng.shuffle(order)
    if style == "neighbours":
        return [[place * threads + thread for thread in range(threads)] for place in order]
    return [[place + thread * total for thread in range(threads)] for place in order]


def _add_distances(rng: Random, numa: list[dict[str, object]]) -> None:
    """Rows indexed by zone id, as in the kubelet; sometimes not symmetric."""
    width = max(int(str(zone["id"])) for zone in numa) + 1
    far = [[10 if a == b else rng.choice((11, 12, 20, 21, 28, 31, 32)) for b in range(width)] for a in range(width)]
    if chance(rng, 0.7):
        far = [[far[min(a, b)][max(a, b)] for b in range(width)] for a in range(width)]
    for zone in numa:
        zone["distances"] = far[int(str(zone["id"]))]
