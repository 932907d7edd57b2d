"""Whom to stand back for, and for how long."""

from __future__ import annotations

from typing import Any

from numalign.agent.publish.publish import Ownership, Published
from numalign.api.nrt import publishers
from numalign.api.nrt.publishers import ManagedFields, ManagedMeta

ZONES: dict[str, Any] = {"f:zones": {}}
OURS = ManagedFields(publishers.AGENT, "", ZONES)


def there(version: str, *managers: ManagedFields, signed: str = "us", claim: str = "") -> Published:
    labels = {publishers.CLAIM: claim} if claim else {}
    annotations = {publishers.SIGNED: signed} if signed else {}
    return Published(
        ManagedMeta(resource_version=version, managed_fields=managers, labels=labels, annotations=annotations)
    )


def guard(*, wrote: bool = True) -> Ownership:
    return Ownership(instance="us", patience=600.0, wrote=wrote)


def test_our_own_report_is_no_reason_to_stand_back() -> None:
    assert guard().look(there("1", OURS), 0.0) == ""


def test_others_that_own_nothing_of_a_report_do_not_count() -> None:
    labeller = ManagedFields("kubectl", "", {"f:metadata": {"f:labels": {}}})
    assert guard().look(there("1", OURS, labeller), 0.0) == ""


def test_a_later_owner_of_the_zones_is_the_publisher() -> None:
    assert guard().look(there("1", ManagedFields("rte", "", ZONES)), 0.0) == "rte"


def test_a_former_publisher_stays_the_owner_of_what_we_write_as_well_and_does_not_count() -> None:
    """NFD and numalign write the same topologyPolicies: both own it after numalign has taken the report over."""
    both: dict[str, Any] = {"f:topologyPolicies": {}}
    former = ManagedFields("nfd-topology-updater", "", both, "2026-01-01T00:00:00Z")
    ours = ManagedFields(publishers.AGENT, "", ZONES | both, "2026-01-01T00:01:00Z")
    assert guard().look(there("1", former, ours), 0.0) == ""
    again = ManagedFields("nfd-topology-updater", "", ZONES | both, "2026-01-01T00:02:00Z")
    assert guard().look(there("2", again, ManagedFields(publishers.AGENT, "", both)), 0.0) == "nfd-topology-updater"


def test_what_was_there_before_us_does_not() -> None:
    assert guard(wrote=False).look(there("1", ManagedFields("rte", "", ZONES)), 0.0) == ""


def test_another_agent_is_recognised_by_its_signature() -> None:
    assert guard().look(there("1", OURS, signed="them"), 0.0) == "them"


def test_it_tries_again_after_a_while_whether_the_other_was_quiet_or_not() -> None:
    ours = guard()
    found = [ours.look(there(version, ManagedFields("rte", "", ZONES)), now) for version, now in WRITES]
    assert found == ["rte", "rte", "rte", ""]


WRITES = [("1", 0.0), ("2", 500.0), ("2", 599.0), ("3", 600.0)]


def test_it_stands_back_again_where_the_other_is_still_at_work() -> None:
    ours = guard()
    for now in (0.0, 600.0):
        ours.look(there("1", ManagedFields("rte", "", ZONES)), now)
    ours.wrote = True
    found = [ours.look(there("2", ManagedFields("rte", "", ZONES)), now) for now in (660.0, 1259.0, 1260.0)]
    assert found == ["rte", "rte", ""]


def test_it_goes_on_at_once_where_the_object_is_gone() -> None:
    ours = guard()
    ours.look(there("1", ManagedFields("rte", "", ZONES)), 0.0)
    assert ours.look(None, 1.0) == ""


def test_a_claim_counts_for_as_long_as_it_is_there() -> None:
    ours = guard(wrote=False)
    claimed = there("1", claim="Koordinator")
    assert [ours.look(claimed, now) for now in (0.0, 10_000.0)] == ["Koordinator"] * 2
    assert ours.look(there("1"), 20_000.0) == ""
