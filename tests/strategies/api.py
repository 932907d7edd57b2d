"""Quantities, CPU sets, pods and nodes as tests want them: any valid one, in the form it has on the wire."""

from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import strategies as st

from numalign.api.decode import cpuset, decode, quantity
from numalign.api.objects import pod

Json = dict[str, Any]

DECIMALS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARIES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

DIGITS = st.text("0123456789", min_size=1, max_size=24)
NAMES = st.sampled_from(["a", "web", "worker-7", "x" * 63, "0-0"])
RESOURCES = st.sampled_from(["cpu", "memory", "hugepages-2Mi", "hugepages-1Gi", "example.com/nic", "ephemeral-storage"])


class Written(NamedTuple):
    """A quantity's text, with the exact amount it stands for before any rounding."""

    text: str
    amount: Fraction


@st.composite
def multipliers(draw: st.DrawFn) -> tuple[str, Fraction]:
    if draw(st.booleans()):
        exponent = draw(st.integers(-40, 40))
        return f"{draw(st.sampled_from('eE'))}{exponent}", Fraction(10) ** exponent
    suffix = draw(st.sampled_from([*DECIMALS, *BINARIES]))
    if suffix in BINARIES:
        return suffix, Fraction(2 ** BINARIES[suffix])
    return suffix, Fraction(10) ** DECIMALS[suffix]


@st.composite
def written_quantities(draw: st.DrawFn) -> Written:
    sign, whole = draw(st.sampled_from(["", "+", "-"])), draw(DIGITS)
    fraction = draw(st.none() | st.text("0123456789", max_size=20))
    suffix, multiplier = draw(multipliers())
    number = whole if fraction is None else f"{whole}.{fraction}"
    amount = Fraction(f"{sign}{whole}.{fraction or 0}") * multiplier
    return Written(f"{sign}{number}{suffix}", amount)


def quantities() -> st.SearchStrategy[quantity.Quantity]:
    return written_quantities().map(lambda written: quantity.parse(written.text))


def cpu_masks(max_cpus: int = 512) -> st.SearchStrategy[int]:
    return st.sets(st.integers(0, max_cpus - 1)).map(cpuset.of)


# Made once: hypothesis draws from a strategy it knows many times faster than from one made anew.
AMOUNTS = st.sampled_from(["0", "1", "2", "3", "500m", "1500m", "2000m", "0.5", "1e3", "1k", "512Mi", "1Gi", "1.5Gi"])
RESOURCE_LISTS = st.dictionaries(RESOURCES, AMOUNTS, max_size=4)
REQUIREMENTS = st.fixed_dictionaries({}, optional={"requests": RESOURCE_LISTS, "limits": RESOURCE_LISTS})
CONTAINERS = st.fixed_dictionaries(
    {"name": NAMES, "resources": REQUIREMENTS}, optional={"restartPolicy": st.just("Always"), "image": NAMES}
)
POD_SPECS = st.fixed_dictionaries(
    {"containers": st.lists(CONTAINERS, min_size=1, max_size=3), "initContainers": st.lists(CONTAINERS, max_size=3)},
    optional={
        "resources": REQUIREMENTS,
        "overhead": st.dictionaries(st.sampled_from(["cpu", "memory"]), AMOUNTS),
        "priority": st.integers(-(2**31), 2**31 - 1),
    },
)
POD_OBJECTS = st.fixed_dictionaries({"metadata": st.fixed_dictionaries({"name": NAMES}), "spec": POD_SPECS})


def pod_objects() -> st.SearchStrategy[Json]:
    """Pods as parsed JSON."""
    return POD_OBJECTS


def pods() -> st.SearchStrategy[pod.Pod]:
    return POD_OBJECTS.map(lambda raw: decode.decode(pod.Pod, raw))
