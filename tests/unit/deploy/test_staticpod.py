"""kube-scheduler's static pod is replaced and restored to the byte, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numalign.api.decode import yamltext
from numalign.api.errors import BadObject
from numalign.deploy.hosts import staticpod
from numalign.deploy.hosts.staticpod import Places
from numalign.process import privatefile

IMAGE = "registry.example.com/numalign/scheduler:1.2.0"
CONFIG = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
# As kubeadm writes it, with a comment that no reader of YAML would keep.
STOCK = b"""# made by kubeadm
apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  labels: {component: kube-scheduler, tier: control-plane}
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --authentication-kubeconfig=/etc/kubernetes/scheduler.conf
    - --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
    - --bind-address=127.0.0.1
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    - --leader-elect=true
    image: registry.k8s.io/kube-scheduler:v1.37.1
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
    name: kube-scheduler
    ports: [{containerPort: 10259, name: probe-port, protocol: TCP}]
    resources: {requests: {cpu: 100m}}
    startupProbe:
      httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTPS}
    volumeMounts:
    - {mountPath: /etc/kubernetes/scheduler.conf, name: kubeconfig, readOnly: true}
  hostNetwork: true
  priorityClassName: system-node-critical
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  volumes:
  - {name: kubeconfig, hostPath: {path: /etc/kubernetes/scheduler.conf, type: FileOrCreate}}
status: {}
"""


@pytest.fixture
def host(tmp_path: Path) -> Places:
    places = Places(root=tmp_path)
    places.manifest.parent.mkdir(parents=True)
    places.manifest.write_bytes(STOCK)
    places.manifest.chmod(0o600)
    return places


def pod(places: Places) -> dict[str, Any]:
    (document,) = yamltext.documents(places.manifest.read_bytes(), "manifest")
    assert isinstance(document.value, dict)
    return document.value


def files(places: Places) -> dict[str, bytes]:
    return {str(each.relative_to(places.root)): each.read_bytes() for each in places.root.rglob("*") if each.is_file()}


def test_the_pod_keeps_its_name_its_kubeconfig_and_what_does_not_concern_the_program(host: Places) -> None:
    assert staticpod.install(host, IMAGE, CONFIG).action == "installed"
    tree = pod(host)
    (container,) = tree["spec"]["containers"]
    assert tree["metadata"]["name"] == "kube-scheduler"
    assert tree["metadata"]["labels"] == {"component": "kube-scheduler", "tier": "control-plane"}
    assert container["image"] == IMAGE
    assert "--kubeconfig=/etc/kubernetes/scheduler.conf" in container["command"]
    assert "--config=/etc/kubernetes/numalign/scheduler.yaml" in container["command"]
    assert "--tls-self-signed" in container["command"]
    assert container["resources"] == {"requests": {"cpu": "100m"}}
    assert container["livenessProbe"]["failureThreshold"] == 8
    probe = {"host": "127.0.0.1", "path": "/livez", "port": 10259, "scheme": "HTTPS"}
    assert container["livenessProbe"]["httpGet"] == container["startupProbe"]["httpGet"] == probe
    assert [each["name"] for each in container["volumeMounts"]] == ["kubeconfig", "numalign"]
    assert [each["name"] for each in tree["spec"]["volumes"]] == ["kubeconfig", "numalign"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert host.config.read_bytes() == CONFIG


FLAGS = "    - --bind-address=127.0.0.1\n"


def with_flags(host: Places, *flags: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The container of our manifest where kube-scheduler has these flags, and those that are left out."""
    given = "".join(f'    - "{flag}"\n' for flag in flags)
    host.manifest.write_bytes(STOCK.replace(FLAGS.encode(), given.encode()))
    left_out = staticpod.install(host, IMAGE, CONFIG).left_out
    (container,) = pod(host)["spec"]["containers"]
    return container, left_out


@pytest.mark.parametrize(
    "flags, served, probed",
    [
        ((), ["--bind-address=127.0.0.1", "--port=10259"], ("127.0.0.1", 10259)),
        (("--bind-address=0.0.0.0",), ["--bind-address=0.0.0.0", "--port=10259"], ("127.0.0.1", 10259)),
        (("--bind-address=::", "--secure-port=7000"), ["--bind-address=::", "--port=7000"], ("::1", 7000)),
        (("--bind-address", "10.0.0.5"), ["--bind-address=10.0.0.5", "--port=10259"], ("10.0.0.5", 10259)),
    ],
)
def test_monitoring_finds_the_metrics_where_kube_scheduler_served_them(
    host: Places, flags: tuple[str, ...], served: list[str], probed: tuple[str, int]
) -> None:
    container, left_out = with_flags(host, *flags)
    assert [each for each in container["command"] if each.startswith(("--bind-address", "--port"))] == served
    asked = container["livenessProbe"]["httpGet"]
    assert ((asked["host"], asked["port"]), left_out) == (probed, ())


def test_a_certificate_of_the_host_is_served_as_before(host: Places) -> None:
    container, left_out = with_flags(host, "--tls-cert-file=/pki/s.crt", "--tls-private-key-file=/pki/s.key")
    assert container["command"][-2:] == ["--tls-certificate=/pki/s.crt", "--tls-key=/pki/s.key"]
    assert "--tls-self-signed" not in container["command"]
    assert left_out == ()


def test_flags_that_numalign_does_not_take_over_are_named_also_by_a_second_run(host: Places) -> None:
    _, left_out = with_flags(host, "--config=/etc/kubernetes/profiles.yaml", "--feature-gates=A=true", "--v=4")
    assert left_out == ("--config=/etc/kubernetes/profiles.yaml", "--feature-gates=A=true")
    assert staticpod.install(host, IMAGE, CONFIG) == staticpod.StaticPodOutcome("unchanged", left_out=left_out)


def test_the_folder_that_the_kubelet_watches_holds_one_manifest(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    assert [each.name for each in host.manifest.parent.iterdir()] == ["kube-scheduler.yaml"]


def test_a_second_run_writes_nothing(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    before = {each: (host.root / each).stat().st_mtime_ns for each in files(host)}
    assert staticpod.install(host, IMAGE, CONFIG).action == "unchanged"
    assert {each: (host.root / each).stat().st_mtime_ns for each in files(host)} == before


def test_a_new_image_or_configuration_is_put_in_place_and_the_backup_stays(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    assert staticpod.install(host, "other:2", CONFIG + b"#\n").action == "configured"
    assert pod(host)["spec"]["containers"][0]["image"] == "other:2"
    assert host.backup.read_bytes() == STOCK
    staticpod.restore(host)
    assert host.manifest.read_bytes() == STOCK


def test_restoring_leaves_exactly_what_was_there(host: Places) -> None:
    before = files(host)
    host.manifest.chmod(0o640)
    staticpod.install(host, IMAGE, CONFIG)
    assert staticpod.restore(host).action == "restored"
    assert files(host) == before
    assert host.manifest.stat().st_mode & 0o777 == 0o640
    assert not host.backup.parent.exists()
    assert staticpod.restore(host).action == "unchanged"


def test_a_manifest_that_somebody_edited_is_not_overwritten(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    edited = host.manifest.read_bytes() + b"# by hand\n"
    host.manifest.write_bytes(edited)
    assert staticpod.status(host).standing == "changed"
    with pytest.raises(BadObject, match="was changed since numalign wrote it; give --force"):
        staticpod.restore(host)
    assert host.manifest.read_bytes() == edited
    staticpod.restore(host, force=True)
    assert host.manifest.read_bytes() == STOCK


def test_a_backup_that_somebody_changed_is_not_restored(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    host.backup.write_bytes(STOCK + b"#")
    for force in (False, True):
        with pytest.raises(BadObject, match="is missing or was changed"):
            staticpod.restore(host, force=force)
    with pytest.raises(BadObject, match="is missing or was changed"):
        staticpod.install(host, "other:2", CONFIG)


def test_a_manifest_that_kubeadm_wrote_anew_needs_a_new_backup(host: Places) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    newer = STOCK.replace(b"v1.37.1", b"v1.38.0")
    host.manifest.write_bytes(newer)
    assert staticpod.status(host).standing == "interrupted"
    with pytest.raises(BadObject, match="if kubeadm wrote a new one, give --replace-backup"):
        staticpod.install(host, IMAGE, CONFIG)
    assert staticpod.install(host, IMAGE, CONFIG, replace_backup=True).action == "installed"
    staticpod.restore(host)
    assert host.manifest.read_bytes() == newer


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"[]",
        STOCK.replace(b"name: kube-scheduler\n  namespace", b"name: etcd\n  namespace"),
        STOCK.replace(b"kind: Pod", b"kind: Job"),
        STOCK + b"---\n" + STOCK,
        b"apiVersion: v1\nkind: Pod\nmetadata: {name: kube-scheduler}\nspec: {containers: []}\n",
        b"a: &a [*a]",
    ],
)
def test_what_is_not_the_manifest_of_kube_scheduler_is_left_alone(host: Places, raw: bytes) -> None:
    host.manifest.write_bytes(raw)
    before = files(host)
    with pytest.raises(BadObject):
        staticpod.install(host, IMAGE, CONFIG)
    assert files(host) == before


def test_a_link_in_the_place_of_a_file_is_refused(host: Places) -> None:
    real = host.manifest.rename(host.root / "elsewhere")
    host.manifest.symlink_to(real)
    with pytest.raises(BadObject, match="is not a regular file"):
        staticpod.install(host, IMAGE, CONFIG)


def test_a_host_without_kube_scheduler_is_told(host: Places) -> None:
    host.manifest.unlink()
    assert staticpod.status(host).standing == "absent"
    with pytest.raises(BadObject, match="does not exist; give --manifests"):
        staticpod.install(host, IMAGE, CONFIG)


def test_the_backup_may_not_be_where_the_kubelet_would_run_it(host: Places) -> None:
    with pytest.raises(BadObject, match="the kubelet would run the backup"):
        staticpod.install(Places(folder="/etc/kubernetes/manifests/numalign", root=host.root), IMAGE, CONFIG)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b'{"original": 5}'])
def test_a_record_that_cannot_be_read_stops_everything(host: Places, raw: bytes) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    host.record.write_bytes(raw)
    for call in (staticpod.restore, staticpod.status, lambda places: staticpod.install(places, IMAGE, CONFIG)):
        with pytest.raises(BadObject, match="compare the backup with the manifest by hand"):
            call(host)


class PowerCut(BaseException):
    pass


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends the process before its n-th write."""
    left = [10**6]
    real = privatefile.write

    def write(path: Path, content: str | bytes) -> Path:
        left[0] -= 1
        if left[0] < 0:
            raise PowerCut
        return real(path, content)

    monkeypatch.setattr(privatefile, "write", write)

    def allow(count: int) -> None:
        left[0] = count

    return allow


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("again", ["install", "restore"])
def test_an_installation_that_was_interrupted_is_completed_or_undone(
    host: Places, writes: Callable[[int], None], before: int, again: str
) -> None:
    writes(before)
    with pytest.raises(PowerCut):
        staticpod.install(host, IMAGE, CONFIG)
    assert host.manifest.read_bytes() == STOCK
    writes(100)
    if again == "install":
        staticpod.install(host, IMAGE, CONFIG)
        assert staticpod.status(host).standing == "numalign"
    staticpod.restore(host)
    assert host.manifest.read_bytes() == STOCK


def test_a_restoration_that_was_interrupted_is_completed(host: Places, writes: Callable[[int], None]) -> None:
    staticpod.install(host, IMAGE, CONFIG)
    writes(0)
    with pytest.raises(PowerCut):
        staticpod.restore(host)
    writes(100)
    assert staticpod.restore(host).action == "restored"
    assert host.manifest.read_bytes() == STOCK
