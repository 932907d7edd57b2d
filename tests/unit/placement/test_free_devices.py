"""How free devices lie in the zones of a cluster, and which of them no container with CPUs can have."""

from tests.unit.scheduler.servers import GPU, Servers, trainer


def test_zones_are_counted_by_their_free_devices() -> None:
    servers = Servers("a", "b")
    assert servers.cluster.engine.free_devices()[GPU].zones == {4: 4}
    assert servers.place(trainer("two", gpus=2))
    assert servers.cluster.engine.free_devices()[GPU].zones == {4: 3, 2: 1}


def test_devices_without_a_free_cpu_beside_them_are_stranded() -> None:
    servers = Servers("a")
    assert servers.cluster.engine.free_devices()[GPU].stranded == 0
    for name in ("x", "y"):
        view = servers.cluster.engine.view("a")
        assert view is not None
        most = max(zone["cpu"].free for zone in view.zones.values())
        assert servers.place(trainer(name, gpus=1, cpu=str(most)))
    found = servers.cluster.engine.free_devices()[GPU]
    assert (found.zones, found.stranded) == ({3: 2}, 6)


def test_a_cluster_without_reports_has_none() -> None:
    assert Servers("a", reports=False).cluster.engine.free_devices() == {}
