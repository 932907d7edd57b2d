import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.simulator.controllers.workloads import deployments
from numalign.simulator.controllers.workloads.deployments import ReplicaSetSize, RolloutLimits

LIMITS = {
    "defaults": (4, "25%", "25%", RolloutLimits(4, 1, 1)),
    "surge up, unavailable down": (3, "25%", "25%", RolloutLimits(3, 1, 0)),
    "numbers": (10, 3, 2, RolloutLimits(10, 3, 2)),
    "never both zero": (3, 0, "10%", RolloutLimits(3, 0, 1)),
    "no more than there are": (2, 0, 5, RolloutLimits(2, 0, 2)),
    "nothing wanted": (0, "25%", "25%", RolloutLimits(0, 0, 0)),
}


@pytest.mark.parametrize("replicas, surge, unavailable, limits", LIMITS.values(), ids=LIMITS)
def test_limits(replicas: int, surge: int | str, unavailable: int | str, limits: RolloutLimits) -> None:
    assert deployments.limits(replicas, surge, unavailable) == limits


GROWN = {
    "from nothing": (0, 0, RolloutLimits(10, 3, 2), 10),
    "as far as the surge": (0, 10, RolloutLimits(10, 3, 2), 3),
    "no room": (5, 13, RolloutLimits(10, 3, 2), 5),
    "too large": (12, 12, RolloutLimits(10, 3, 2), 10),
}


@pytest.mark.parametrize("new, total, limits, grown", GROWN.values(), ids=GROWN)
def test_how_far_the_new_one_grows(new: int, total: int, limits: RolloutLimits, grown: int) -> None:
    assert deployments.grown(new, total, limits) == grown


# The cases that the real controller's comment works through: 10 replicas, 2 unavailable, 3 surge.
SHRUNK = {
    "new pods never become available": ([ReplicaSetSize("old", 8, 7)], ReplicaSetSize("new", 5, 0), {}),
    "rolled over to a third": (
        [ReplicaSetSize("a", 8, 8), ReplicaSetSize("b", 5, 0)],
        ReplicaSetSize("new", 0, 0),
        {"b": 0},
    ),
    "new ones are there": ([ReplicaSetSize("old", 8, 8)], ReplicaSetSize("new", 5, 5), {"old": 3}),
    "nothing to spare": ([ReplicaSetSize("old", 8, 8)], ReplicaSetSize("new", 0, 0), {}),
}


@pytest.mark.parametrize("old, new, scales", SHRUNK.values(), ids=SHRUNK)
def test_what_old_ones_give_up(old: list[ReplicaSetSize], new: ReplicaSetSize, scales: dict[str, int]) -> None:
    assert deployments.shrunk(old, new, RolloutLimits(10, 3, 2)) == scales


@st.composite
def bounds(draw: st.DrawFn) -> RolloutLimits:
    replicas = draw(st.integers(1, 30))
    surge = draw(st.integers(0, 10))
    return RolloutLimits(replicas, surge, draw(st.integers(0 if surge else 1, replicas)))


@given(bounds(), st.lists(st.integers(0, 30), max_size=200))
def test_a_rollout_keeps_its_limits_whatever_the_pace(limits: RolloutLimits, pace: list[int]) -> None:
    """`pace`: how many new pods become available after each step; in the end all do."""
    old, new = ReplicaSetSize("old", limits.replicas, limits.replicas), ReplicaSetSize("new", 0, 0)
    for ready in [*pace, *[limits.replicas] * (4 * limits.replicas)]:
        size = deployments.grown(new.wanted, old.wanted + new.wanted, limits)
        if size == new.wanted:
            left = deployments.shrunk([old], new, limits).get("old", old.wanted)
            old = ReplicaSetSize("old", left, min(old.available, left))
        new = ReplicaSetSize("new", size, min(size, new.available + ready))
        assert old.wanted + new.wanted <= limits.most
        assert old.available + new.available >= limits.least
    assert (old.wanted, new.wanted) == (0, limits.replicas)


@given(st.lists(st.integers(1, 20), min_size=2, max_size=5), st.integers(0, 60), st.integers(0, 10))
def test_scaling_in_the_middle_of_a_rollout_moves_towards_what_is_allowed(
    wanted: list[int], replicas: int, surge: int
) -> None:
    ordered = sorted(wanted, reverse=True)
    sizes = [ReplicaSetSize(str(number), size, size, sum(wanted)) for number, size in enumerate(ordered)]
    after = {each.name: each.wanted for each in sizes} | dict(
        deployments.spread(sizes, RolloutLimits(replicas, surge, 0))
    )
    allowed = replicas + surge if replicas else 0
    # Rounding may leave more to take away than the largest one has; the next look takes the rest.
    assert sum(after.values()) == allowed or allowed < sum(after.values()) < sum(wanted)
    assert min(after.values()) >= 0
