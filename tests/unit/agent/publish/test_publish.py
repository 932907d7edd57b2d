"""The published object shows whether an agent already published the same configuration of the kubelet."""

from __future__ import annotations

import pytest

from numalign.agent.publish import publish
from numalign.agent.publish.publish import Published
from numalign.api.nrt import publishers
from numalign.api.nrt.publishers import ManagedFields, ManagedMeta
from numalign.api.nrt.wire import Attribute

POLICY = Attribute(name="topologyManagerPolicy", value="restricted")
MANAGERS = Attribute(name="numalign.io/managers", value="v1;cpu=static;memory=None")
PLACEMENTS = Attribute(name="numalign.io/placements", value="v1;main")


def there(*attributes: Attribute, manager: str = publishers.AGENT, signed: str = "an earlier process") -> Published:
    owners = (ManagedFields(manager=manager, fields_v1={"f:attributes": {}}),)
    return Published(ManagedMeta(annotations={publishers.SIGNED: signed}, managed_fields=owners), attributes)


CASES = {
    "the same": (there(POLICY, MANAGERS, PLACEMENTS), (POLICY, MANAGERS), True),
    "of which less is to be told now": (there(POLICY, MANAGERS), (POLICY,), True),
    "of which more is to be told now": (there(POLICY), (POLICY, MANAGERS), False),
    "another policy": (there(Attribute(POLICY.name, "none"), MANAGERS), (POLICY, MANAGERS), False),
    "nothing": (there(PLACEMENTS), (PLACEMENTS,), False),
    "by somebody else": (there(POLICY, manager="nfd-topology-updater"), (POLICY,), False),
    "by nobody who signs": (there(POLICY, signed=""), (POLICY,), False),
}


@pytest.mark.parametrize("found, wanted, known", CASES.values(), ids=CASES)
def test_the_published_configuration_is_compared(found: Published, wanted: tuple[Attribute, ...], known: bool) -> None:
    attributes = [{"name": each.name, "value": each.value} for each in wanted]
    assert publish.is_so_configured(found, attributes) is known
