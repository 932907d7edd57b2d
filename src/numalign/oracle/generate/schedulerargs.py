"""Generates arguments of the scheduler plugin: every cache with every setting, all scoring strategies, rare
mistakes."""

from __future__ import annotations

from random import Random

from numalign.oracle.generate.draws import chance, weighted

STRATEGIES = ("LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes")
CACHE_SETTINGS = {
    "foreignPodsDetect": ("All", "None", "OnlyExclusiveResources"),
    "resyncMethod": ("Autodetect", "All", "OnlyExclusiveResources"),
    "resyncScope": ("All", "OnlyResources"),
    "informerMode": ("Dedicated", "Shared"),
}
SCORED = ("cpu", "memory", "hugepages-2Mi", "vendor.com/nic", "vendor.com/gpu")


class Setup:
    """The arguments, and the cache that they select."""

    def __init__(self, rng: Random) -> None:
        self.cache = weighted(rng, {"over": 6.0, "discard": 2.0, "passthrough": 2.0})
        self.args: dict[str, object] = {**_period(rng, self.cache), **_settings(rng), **_strategy(rng)}
        if chance(rng, 0.01):
            # The plugin rejects these arguments at start (scheduler plugin spec 2).
            self.args |= rng.choice(
                ({"preemptionMode": "Enabled"}, {"unheardOf": 1}, {"cacheResyncPeriodSeconds": "5"})
            )

    @property
    def is_shared(self) -> bool:
        cache = self.args.get("cache")
        return isinstance(cache, dict) and cache.get("informerMode", "Dedicated") != "Dedicated"


def _period(rng: Random, cache: str) -> dict[str, object]:
    if cache == "discard":
        return {"discardReservedNodes": True, **({"cacheResyncPeriodSeconds": 5} if chance(rng, 0.3) else {})}
    if cache == "over":
        return {"cacheResyncPeriodSeconds": rng.choice((1, 5, 5, 60))}
    period = rng.choice((None, 0, -3))
    return {} if period is None else {"cacheResyncPeriodSeconds": period}


def _settings(rng: Random) -> dict[str, object]:
    """Any of the cache's settings. An unknown value selects another one (scheduler plugin spec 2.2)."""
    if chance(rng, 0.25):
        return {}
    chosen = {name: rng.choice(values) for name, values in CACHE_SETTINGS.items() if chance(rng, 0.6)}
    if chosen and chance(rng, 0.04):
        chosen[rng.choice(list(chosen))] = "Whatever"
    return {"cache": chosen}


def _strategy(rng: Random) -> dict[str, object]:
    if chance(rng, 0.15):
        return {}
    kind = "Fastest" if chance(rng, 0.01) else rng.choice(STRATEGIES)
    if chance(rng, 0.4):
        return {"scoringStrategy": {"type": kind}}
    names = rng.choices(SCORED, k=rng.randint(1, 4))
    resources = [{"name": name, "weight": rng.choice((1, 1, 2, 3, 10, 0, -1))} for name in names]
    return {"scoringStrategy": {"type": kind, "resources": resources}}
