"""Koordinator's Device objects become a part of the reports of nodes in direct mode."""

import pytest
from msgspec import structs

from numalign.api.attributes import devicetable
from numalign.api.errors import BadObject
from numalign.api.nrt.wire import Attribute, NodeResourceTopology
from numalign.api.objects.koordinatordevice import DeviceInfo, DeviceObject, DeviceObjectSpec
from numalign.api.objects.meta import ObjectMeta
from numalign.scheduler.intake.devicereports import TABLE, DeviceReports

META = ObjectMeta(name="n")
DIRECT = Attribute("numalign.io/mode", "v1;direct;cpus+devices")
OWN = Attribute(TABLE, "v1;rdma/0|0||100|0|||")
REPORT = NodeResourceTopology(metadata=META, attributes=(DIRECT, OWN))


def device(*minors: int) -> DeviceObject:
    infos = tuple(DeviceInfo(type="gpu", minor=minor, health=True) for minor in minors)
    return DeviceObject(metadata=META, spec=DeviceObjectSpec(infos))


def listed(report: NodeResourceTopology | None) -> list[tuple[str, int]]:
    assert report is not None
    (text,) = (each.value for each in report.attributes if each.name == TABLE)
    return [(each.type, each.minor) for each in devicetable.decode(text.removeprefix("v1;")).devices]


def test_a_report_without_a_device_object_stays_as_it_is() -> None:
    assert DeviceReports().report(REPORT) is REPORT


def test_the_object_wins_over_what_the_agent_reports_and_leaves_it_when_it_goes() -> None:
    reports = DeviceReports()
    assert listed(reports.device(device(0, 1), REPORT)) == [("gpu", 0), ("gpu", 1)]
    assert listed(reports.report(REPORT)) == [("gpu", 0), ("gpu", 1)]
    assert reports.device_gone("n") == REPORT
    assert reports.report(REPORT) is REPORT


def test_an_object_may_come_before_the_report() -> None:
    reports = DeviceReports()
    assert reports.device(device(0), None) is None
    assert listed(reports.report(REPORT)) == [("gpu", 0)]


def test_an_object_that_says_the_same_changes_nothing() -> None:
    reports = DeviceReports()
    reports.device(device(0), REPORT)
    assert reports.device(device(0), REPORT) is None
    assert listed(reports.device(device(1), REPORT)) == [("gpu", 1)]


def test_a_node_in_predict_mode_keeps_its_report() -> None:
    plain = structs.replace(REPORT, attributes=())
    reports = DeviceReports()
    assert reports.device(device(0), plain) == plain
    assert reports.report(plain) is plain


def test_an_object_that_makes_no_sense_leaves_the_last_one_in_force() -> None:
    reports = DeviceReports()
    reports.device(device(0), REPORT)
    with pytest.raises(BadObject, match="listed twice"):
        reports.device(device(1, 1), REPORT)
    nameless = DeviceInfo(type="gpu", minor=0, health=True, labels={"": "x"})
    with pytest.raises(BadObject, match="a name must not be empty"):
        reports.device(DeviceObject(metadata=META, spec=DeviceObjectSpec((nameless,))), REPORT)
    assert listed(reports.report(REPORT)) == [("gpu", 0)]
