"""The doctor uses exactly the rights of its table, and mends with those that `--fix` needs."""

from __future__ import annotations

import pytest

from numalign.deploy import rights
from numalign.deploy.doctor import diagnosis, fixes
from tests.embedded import test_doctor as faults
from tests.embedded import wards
from tests.embedded.test_rights import Asked, Recorder, listed
from tests.embedded.wards import Ward, node, tainted


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return Recorder(monkeypatch)


async def everything_is_wrong(ward: Ward) -> None:
    await faults.fewer_rights(ward)
    await faults.pod_is_rejected(ward)
    metadata = {"name": "numalign-scheduler", "namespace": wards.HOME}
    ward.delete({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata})
    await faults.node_goes(ward)


NODES = (node(), tainted(node("n1", publisher="rte"), "numalign.io/no-report"))


def test_looking_needs_exactly_the_rights_without_fix(recorder: Recorder) -> None:
    async def told(ward: Ward) -> set[Asked]:
        await everything_is_wrong(ward)
        # No virtual time passes while the doctor looks, so the cluster's own scheduler asks nothing meanwhile.
        recorder.asked.clear()
        await ward.observed()
        return set(recorder.asked)

    recorder.asked = wards.played(told, NODES)
    table = [each for each in rights.DOCTOR if each.option != rights.FIX]
    assert recorder.beyond(table) == set()
    assert listed(table) - recorder.used() == set()


def test_mending_needs_exactly_the_rights_with_fix(recorder: Recorder) -> None:
    async def told(ward: Ward) -> set[Asked]:
        await everything_is_wrong(ward)
        planned = fixes.planned(diagnosis.diagnose(await ward.observed()))
        recorder.asked.clear()
        async with ward.client() as client:
            outcomes = await fixes.mend(client, [repair for _, repair in planned])
        assert all(each.done for each in outcomes), outcomes
        return set(recorder.asked)

    recorder.asked = wards.played(told, NODES)
    table = [each for each in rights.DOCTOR if each.option == rights.FIX]
    assert recorder.beyond(table) == set()
    assert listed(table) - recorder.used() == set()
