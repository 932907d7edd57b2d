"""A lab runs as root on a machine that others use, too: what they can reach of it, and what its pods can do outside.

Every user, and every web page that a user opens, can connect to ports on loopback."""

from __future__ import annotations

import http
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import kubeletconfig
from numalign.deploy import rights
from numalign.deploy.rights import Holder
from numalign.kube import errors, resources
from numalign.kube.access import kubeconfig
from numalign.kube.transport.auth import Access
from numalign.kubelet import configuration
from numalign.lab import accounts, state
from numalign.lab.accounts import AnyObject
from numalign.lab.processes import Part
from tests.lab import live as lives
from tests.lab import sockets
from tests.lab.fleet import TOLD
from tests.lab.live import NAMESPACE, Live

NOBODY = 65534
REFUSED = (None, http.HTTPStatus.BAD_REQUEST, http.HTTPStatus.UNAUTHORIZED)
"""No TLS handshake without a certificate; plain HTTP where TLS is expected; no token."""
PAGE = {"Content-Type": "text/plain", "Origin": "http://evil.example", "Host": "evil.example"}
"""What a web page can send without asking the server first."""
VOLUMES = resources.of("v1", "persistentvolumes", "PersistentVolume", AnyObject)
KUBELET_PATHS = ("/pods", "/configz", "/debug/pprof/cmdline", "/logs/", "/metrics", "/healthz", "/stats/summary")


def only_port(part: Part) -> int:
    (found,) = sockets.of(part)
    return found.port


def control(live: Live) -> Path:
    return live.lab.place / state.CONTROL


def bearer(kubeconfig: Path) -> dict[str, str]:
    (user,) = json.loads(kubeconfig.read_text())["users"]
    return {"Authorization": f"Bearer {user['user']['token']}"}


def test_every_port_is_on_loopback_and_answers_no_stranger(apart: Live) -> None:
    found = {part.program.title: sockets.of(part) for part in apart.lab.every_part()}
    assert {title: len(ports) for title, ports in found.items() if ports} == {
        "etcd": 2,
        "kube-apiserver": 1,
        **{f"{name}/kubelet": 1 for name in apart.lab.nodes},
    }
    for each in (each for ports in found.values() for each in ports):
        assert each.address == "127.0.0.1"
        assert sockets.answer(each.port, "/metrics", tls=None) in REFUSED
        assert sockets.answer(each.port, "/metrics", tls=sockets.unverified()) in REFUSED


@pytest.mark.parametrize("call", ["kv/range", "kv/put", "maintenance/snapshot"])
@pytest.mark.parametrize("headers", [{}, PAGE], ids=["a user", "a web page"])
def test_etcd_answers_nothing_without_a_certificate(apart: Live, call: str, headers: dict[str, str]) -> None:
    body = '{"key": "AA==", "range_end": "AA==", "value": "AA=="}'
    for each in sockets.of(apart.lab.parts["etcd"]):
        for tls in (None, sockets.unverified()):
            assert sockets.answer(each.port, f"/v3/{call}", "POST", body, headers, tls=tls) in REFUSED


def test_a_certificate_of_another_authority_does_not_open_etcd(apart: Live) -> None:
    """The API server's own serving certificate is of the authority that all clients know."""
    certificates = control(apart) / "certificates"
    tls = sockets.unverified()
    tls.load_cert_chain(certificates / "apiserver.crt", certificates / "apiserver.key")
    found = [sockets.answer(each.port, "/health", tls=tls) for each in sockets.of(apart.lab.parts["etcd"])]
    assert found == [None, None]


def test_etcd_speaks_no_json_even_with_the_right_certificate(apart: Live) -> None:
    certificates = control(apart) / "certificates"
    tls = ssl.create_default_context(cafile=str(certificates / "etcd-ca.crt"))
    tls.load_cert_chain(certificates / "etcd-client.crt", certificates / "etcd-client.key")
    ports = [each.port for each in sockets.of(apart.lab.parts["etcd"])]
    assert http.HTTPStatus.OK in [sockets.answer(port, "/health", tls=tls) for port in ports]
    body = '{"key": "AA==", "range_end": "AA=="}'
    answers = {sockets.answer(port, "/v3/kv/range", "POST", body, tls=tls) for port in ports}
    assert answers == {http.HTTPStatus.NOT_FOUND}


@pytest.mark.parametrize("path", ["/api/v1/nodes", "/version", "/readyz", "/metrics", "/openapi/v3", "/"])
def test_the_api_server_knows_no_anonymous_user(apart: Live, path: str) -> None:
    port = only_port(apart.lab.parts["kube-apiserver"])
    assert sockets.answer(port, path, tls=sockets.unverified()) == http.HTTPStatus.UNAUTHORIZED


@pytest.mark.parametrize("path", KUBELET_PATHS)
def test_a_kubelet_knows_no_anonymous_user(apart: Live, path: str) -> None:
    port = only_port(apart.node(TOLD).kubelet)
    assert sockets.answer(port, path, tls=sockets.unverified()) == http.HTTPStatus.UNAUTHORIZED


def test_a_kubelet_runs_no_command_for_a_stranger(apart: Live) -> None:
    port = only_port(apart.node(TOLD).kubelet)
    found = sockets.answer(port, "/run/default/pod/main?cmd=id", "POST", headers=PAGE, tls=sockets.unverified())
    assert found == http.HTTPStatus.UNAUTHORIZED


def test_a_kubelet_asks_the_api_server_what_an_account_may_do(apart: Live) -> None:
    node = apart.node(TOLD)
    port, tls = only_port(node.kubelet), sockets.unverified()
    agent, admin = bearer(node.place.root / "agent.kubeconfig"), bearer(apart.lab.kubeconfig)
    assert sockets.answer(port, "/pods", headers=agent, tls=tls) == http.HTTPStatus.FORBIDDEN
    assert sockets.answer(port, "/pods", headers=admin, tls=tls) == http.HTTPStatus.OK


def test_an_agent_reads_the_configuration_of_its_own_kubelet_and_nothing_else_there(apart: Live) -> None:
    node = apart.node(TOLD)
    port, file = only_port(node.kubelet), node.place.root / "agent.kubeconfig"
    holder = Holder("User", accounts.agent_user(TOLD))
    (configz,) = (right for right in rights.AGENT if right.option == "--configz")
    for each in rights.roles(holder, [configz], TOLD):
        named = each | {"metadata": {"name": "configz"}}
        if "roleRef" in named:
            named["roleRef"] = named["roleRef"] | {"name": "configz"}
        plural = f"{each['kind'].lower()}s"
        kind = resources.of(rights.API_VERSION, plural, each["kind"], AnyObject)
        apart.run(apart.client.create(kind.everywhere(), named))
    login, certificate = kubeconfig.access([str(file)]), node.place.root / kubeletconfig.CERTIFICATE
    kubelet = kubeletconfig.kubelet_access(login, f"127.0.0.1:{port}", TOLD, certificate)
    assert configuration.from_configz(apart.run(_configz(kubelet)))["topologyManagerPolicy"]
    for path in ("/pods", "/metrics", "/run/default/pod/main?cmd=id", "/logs/"):
        assert sockets.answer(port, path, headers=bearer(file), tls=sockets.unverified()) == http.HTTPStatus.FORBIDDEN


async def _configz(kubelet: Access) -> bytes:
    client = kubeletconfig.KubeletClient(kubelet)
    try:
        return await client.configz()
    finally:
        client.close()


def test_no_other_user_reads_anything_of_a_lab(apart: Live) -> None:
    secrets = [path for path in apart.lab.place.rglob("*") if path.name.endswith((".key", "kubeconfig", "tokens.csv"))]
    assert len(secrets) > 3
    assert {path: path.stat().st_mode & 0o777 for path in secrets} == dict.fromkeys(secrets, 0o600)
    assert apart.lab.place.stat().st_mode & 0o777 == 0o700
    listed = subprocess.run(["ls", apart.lab.place], user=NOBODY, group=NOBODY, extra_groups=[], check=False)
    assert listed.returncode != 0


def mounting(name: str, volume: dict[str, Any], **mount: str) -> dict[str, Any]:
    pod = lives.guaranteed(name, 1, nodeName=TOLD, volumes=[{"name": "data", **volume}])
    pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data", **mount}]
    return pod


class Said(AnyObject, frozen=True):
    message: str = ""


def until_said(live: Live, words: str) -> None:
    async def said() -> bool:
        events = resources.of("v1", "events", "Event", Said).within(NAMESPACE)
        return any(isinstance(each, Said) and words in each.message for each in await live.client.every(events))

    live.awaited(said, f"no Event says {words!r}")


@pytest.mark.parametrize("kind", ["FileOrCreate", "DirectoryOrCreate"])
def test_a_pod_makes_no_file_or_folder_on_the_real_machine(single: Live, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"made-by-{kind.lower()}"
    single.create(mounting(kind.lower(), {"hostPath": {"path": str(path), "type": kind}}))
    until_said(single, f"{path}: read-only file system")
    assert not path.exists()


def test_a_pod_makes_no_folder_below_a_path_of_the_real_machine(single: Live, tmp_path: Path) -> None:
    single.create(mounting("below", {"hostPath": {"path": str(tmp_path), "type": "Directory"}}, subPath="made"))
    until_said(single, 'failed to create subPath directory for volumeMount "data"')
    assert list(tmp_path.iterdir()) == []


def test_a_pod_that_only_shows_a_path_of_the_real_machine_runs(single: Live, tmp_path: Path) -> None:
    single.create(mounting("shows", {"hostPath": {"path": str(tmp_path), "type": "Directory"}}))
    assert single.settled("shows").status.phase == "Running"


def test_volumes_of_the_node_itself_can_be_written(single: Live) -> None:
    single.create(mounting("own", {"emptyDir": {}}, subPath="made"))
    assert single.settled("own").status.phase == "Running"


def test_a_folder_of_the_real_machine_is_no_local_volume(apart: Live, tmp_path: Path) -> None:
    """A kubelet would give it to the group that a pod names."""
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [TOLD]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "local"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": str(tmp_path)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }
    with pytest.raises(errors.Invalid, match=accounts.NO_LOCAL_VOLUMES):
        apart.run(apart.client.create(VOLUMES.everywhere(), volume))
