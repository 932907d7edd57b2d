"""The lists that the hints of a provider become before they are merged (kubelet spec 3.1)."""

import pytest

from numalign.kubelet.topologymanager import merge
from numalign.kubelet.topologymanager.hints import DONT_CARE, UNSATISFIABLE, HintList
from numalign.kubelet.topologymanager.merge import HintMap
from tests.nodes import hints

NOTHING, IMPOSSIBLE = None, HintList()

NORMALISED: dict[str, tuple[HintMap | None, list[HintList]]] = {
    "no answer: no opinion": (None, [DONT_CARE]),
    "an answer without resources: no opinion": ({}, [DONT_CARE]),
    "a resource without hints: no opinion": ({"a": NOTHING}, [DONT_CARE]),
    "a resource with an empty list: impossible": ({"a": IMPOSSIBLE}, [UNSATISFIABLE]),
    "one list per resource": ({"a": hints(0), "b": NOTHING}, [hints(0), DONT_CARE]),
}


@pytest.mark.parametrize("provider, lists", NORMALISED.values(), ids=NORMALISED)
def test_what_a_provider_says_becomes_lists(provider: HintMap | None, lists: list[HintList]) -> None:
    assert merge.normalised(provider) == lists
