"""Replaces kube-scheduler on a control-plane host by numalign, and puts it back exactly as it was.

`numalign deploy static-pod` calls `install`, `restore` and `status` on the host, with the folder that the kubelet
watches for static pods. numalign takes the place of kube-scheduler: the same pod name, kubeconfig and Lease, so an
installation with several control-plane hosts can be changed one host after the other, and at most one scheduler leads.

The manifest is replaced by a rename, so the kubelet sees either the old or the new one. The backup is outside of the
watched folder: the kubelet would run it. A record beside it holds the checksums of both files. Whatever does not match
it was changed by another program, and is refused instead of overwritten."""

from __future__ import annotations

import copy
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from numalign.api.decode import yamltext
from numalign.api.errors import BadObject
from numalign.deploy import rights
from numalign.deploy.apply import objects
from numalign.process import privatefile

MANIFESTS: Final = "/etc/kubernetes/manifests"
FOLDER: Final = "/etc/kubernetes/numalign"
"""For the configuration, the backup and the record."""
FILE: Final = "kube-scheduler.yaml"
KUBECONFIG: Final = "/etc/kubernetes/scheduler.conf"
POD: Final = "kube-scheduler"
USER: Final = "system:kube-scheduler"
ROLE: Final = "numalign:kube-scheduler"
MARK: Final = "numalign.io/replaces"
VOLUME: Final = "numalign"
PORT: Final = 10259
LOOPBACK: Final = "127.0.0.1"
SELF_SIGNED: Final = ("--tls-self-signed",)
TAKEN_OVER: Final = frozenset(
    {
        "kubeconfig",
        "bind-address",
        "secure-port",
        "tls-cert-file",
        "tls-private-key-file",
        # These say what numalign does anyway.
        "authentication-kubeconfig",
        "authorization-kubeconfig",
        "client-ca-file",
        "leader-elect",
        "profiling",
        "v",
    }
)
"""Flags of kube-scheduler whose meaning stays."""
LARGEST: Final = 1 << 20
PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")

Standing = Literal["stock", "numalign", "changed", "interrupted", "absent"]


class Places(Struct, frozen=True):
    """Folders of the host. `root` is where the host's file system is seen: / on the host itself."""

    manifests: str = MANIFESTS
    folder: str = FOLDER
    root: Path = Path("/")

    def on_host(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    @property
    def manifest(self) -> Path:
        return self.on_host(self.manifests) / FILE

    @property
    def backup(self) -> Path:
        return self.on_host(self.folder) / "kube-scheduler.yaml.backup"

    @property
    def record(self) -> Path:
        return self.on_host(self.folder) / "static-pod.json"

    @property
    def config(self) -> Path:
        return self.on_host(self.folder) / "scheduler.yaml"


class Record(Struct, frozen=True):
    """Checksums of the files that belong together, and the mode of the original."""

    original: str
    installed: str
    mode: int


class StaticPodOutcome(Struct, frozen=True):
    """`action` as the deployer words it: installed, configured, unchanged, restored."""

    action: str
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    """Flags of kube-scheduler that numalign does not take over."""


class StaticPodStatus(Struct, frozen=True):
    standing: Standing
    words: str
    image: str = ""


def install(places: Places, image: str, config: bytes, *, replace_backup: bool = False) -> StaticPodOutcome:
    """Backs the manifest up and puts ours in its place. Idempotent; a run that was interrupted is completed."""
    _require_separate(places)
    record, manifest = _recorded(places), _manifest(places)
    original = manifest
    if _is_ours(manifest):
        original = _backed_up(places, record)
    elif record is not None and manifest != _content(places.backup) and not replace_backup:
        why = "is not the manifest that was backed up; if kubeadm wrote a new one, give --replace-backup"
        raise _bad(places.manifest, why)
    wanted, left_out = rewritten(original, image, places), flags_left_out(original)
    if manifest == wanted and _content(places.config) == config and record is not None:
        return StaticPodOutcome("unchanged", left_out=left_out)
    mode = record.mode if record is not None and _is_ours(manifest) else stat.S_IMODE(places.manifest.stat().st_mode)
    places.backup.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    # In this order: at every moment either the original is in place or its backup is complete.
    if _content(places.backup) != original:
        privatefile.write(places.backup, original)
    privatefile.write(places.record, msgspec.json.encode(Record(_sum(original), _sum(wanted), mode)))
    # A pod that does not run as root has to read it, too; it holds no secret.
    _put(places.config, config, 0o644)
    _put(places.manifest, wanted, mode)
    files = tuple(str(each) for each in (places.manifest, places.config, places.backup))
    return StaticPodOutcome("configured" if _is_ours(manifest) else "installed", files, left_out)


def restore(places: Places, *, force: bool = False) -> StaticPodOutcome:
    """Puts the backup in its place, byte by byte, and removes everything else. With `force` also where our manifest
    was edited."""
    record, manifest = _recorded(places), _manifest(places, must_exist=False)
    if record is None:
        if manifest and not _is_ours(manifest):
            return StaticPodOutcome("unchanged")
        raise _bad(places.record, "is missing, so there is no backup that can be trusted; write the manifest anew")
    original = _backed_up(places, record)
    if manifest != original:
        if manifest and _sum(manifest) != record.installed and not force:
            raise _bad(places.manifest, "was changed since numalign wrote it; give --force to replace it by the backup")
        _put(places.manifest, original, record.mode)
    for path in (places.config, places.record, places.backup):
        path.unlink(missing_ok=True)
    if not any(places.backup.parent.iterdir()):
        places.backup.parent.rmdir()
    return StaticPodOutcome("restored", (str(places.manifest),))


def status(places: Places) -> StaticPodStatus:
    record, manifest = _recorded(places), _manifest(places, must_exist=False)
    if not manifest:
        return StaticPodStatus(
            "absent", f"{places.manifest} does not exist; this host runs no kube-scheduler as a static pod"
        )
    if not _is_ours(manifest):
        if record is not None:
            return StaticPodStatus(
                "interrupted", "kube-scheduler is in place, and a backup is left; install or restore again"
            )
        return StaticPodStatus("stock", "kube-scheduler is in place", _image(manifest))
    if record is None or _sum(manifest) != record.installed:
        return StaticPodStatus("changed", "numalign is in place, and its manifest was edited", _image(manifest))
    if _sum(_content(places.backup) or b"") != record.original:
        return StaticPodStatus(
            "changed", "numalign is in place, and the backup is missing or was edited", _image(manifest)
        )
    return StaticPodStatus("numalign", "numalign is in place of kube-scheduler", _image(manifest))


def rewritten(manifest: bytes, image: str, places: Places) -> bytes:
    """Our manifest, from kube-scheduler's. What does not concern the program stays: labels, priority, requests."""
    tree = copy.deepcopy(_pod(manifest, str(places.manifest)))
    container, spec = _container(tree, str(places.manifest)), tree["spec"]
    flags = _flags(container)
    place = Listening.of(flags)
    spec.setdefault("hostNetwork", True)
    meta = tree["metadata"]
    meta["annotations"] = (meta.get("annotations") or {}) | {MARK: POD}
    container["image"] = image
    container["imagePullPolicy"] = container.get("imagePullPolicy") or "IfNotPresent"
    container["command"] = [
        "numalign",
        "scheduler",
        "run",
        f"--kubeconfig={flags.get('kubeconfig', KUBECONFIG)}",
        f"--config={places.folder}/{places.config.name}",
        f"--bind-address={place.address}",
        f"--port={place.port}",
        # As kube-scheduler: probes and monitoring of kubeadm clusters ask by TLS, and other users of the host get in
        # with a token only.
        *place.certificate,
    ]
    container.pop("args", None)
    # The kubeconfig is root's. Root without capabilities reads its own files and no others.
    container["securityContext"] = {
        "runAsUser": objects.at(spec, "securityContext", "runAsUser") or 0,
        "runAsNonRoot": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    _probe(container, place)
    _mount(container, spec, places.folder)
    import yaml

    head = "# Written by `numalign deploy static-pod install`; `numalign deploy static-pod restore` undoes it.\n"
    return (head + yaml.safe_dump(tree, sort_keys=False)).encode()


def rights_of_user() -> list[dict[str, Any]]:
    """Roles for the user of kube-scheduler's kubeconfig. The cluster's own roles grant it the Lease and most of the
    rest; the reports are what they lack. Nothing is taken from this user when kube-scheduler returns."""
    beyond = [right for right in rights.needed(rights.SCHEDULER, [rights.PAGES]) if not right.namespace]
    return rights.roles(rights.Holder("User", USER), beyond, name=ROLE)


class Listening(Struct, frozen=True):
    """Where kube-scheduler serves metrics and probes: monitoring may come from other hosts."""

    address: str
    port: int
    certificate: tuple[str, ...]

    @classmethod
    def of(cls, flags: Mapping[str, str]) -> Listening:
        files = flags.get("tls-cert-file", ""), flags.get("tls-private-key-file", "")
        certificate = (f"--tls-certificate={files[0]}", f"--tls-key={files[1]}") if all(files) else SELF_SIGNED
        port = flags.get("secure-port", "")
        return cls(
            flags.get("bind-address") or LOOPBACK, int(port) if port.isdecimal() and int(port) else PORT, certificate
        )

    @property
    def probed(self) -> str:
        """The address that the kubelet of the host reaches."""
        return {"0.0.0.0": LOOPBACK, "::": "::1"}.get(self.address, self.address)


def flags_left_out(manifest: bytes) -> tuple[str, ...]:
    """Flags of kube-scheduler that say what numalign's own configuration has to say."""
    flags = _flags(_container(_pod(manifest, FILE), FILE))
    return tuple(f"--{name}={value}" for name, value in flags.items() if name not in TAKEN_OVER)


def _flags(container: dict[str, Any]) -> dict[str, str]:
    """What kube-scheduler is started with; the last one of each name counts."""
    words = [str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))]
    found: dict[str, str] = {}
    for number, word in enumerate(words):
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-"):
            continue
        following = words[number + 1] if number + 1 < len(words) else "-"
        found[name] = value if equals else "true" if following.startswith("-") else following
    return found


def _probe(container: dict[str, Any], place: Listening) -> None:
    """Newer versions of kubeadm name the port, which goes with the container's ports."""
    for name in PROBES:
        asked = objects.at(container, name, "httpGet")
        if asked:
            asked |= {"scheme": "HTTPS", "port": place.port, "host": place.probed}
    container.pop("ports", None)


def _mount(container: dict[str, Any], spec: dict[str, Any], folder: str) -> None:
    mounts = [each for each in container.get("volumeMounts") or () if each.get("name") != VOLUME]
    volumes = [each for each in spec.get("volumes") or () if each.get("name") != VOLUME]
    container["volumeMounts"] = [*mounts, {"name": VOLUME, "mountPath": folder, "readOnly": True}]
    spec["volumes"] = [*volumes, {"name": VOLUME, "hostPath": {"path": folder, "type": "Directory"}}]


def _pod(raw: bytes, name: str) -> dict[str, Any]:
    documents = yamltext.documents(raw, name)
    tree = documents[0].value if len(documents) == 1 else None
    if not isinstance(tree, dict) or tree.get("kind") != "Pod" or objects.at(tree, "metadata", "name") != POD:
        raise BadObject("Manifest", name, "", f"is not the static pod {POD}; is this a control-plane host of kubeadm?")
    return tree


def _container(tree: dict[str, Any], name: str) -> dict[str, Any]:
    containers = objects.at(tree, "spec", "containers")
    if not isinstance(containers, list) or len(containers) != 1 or not isinstance(containers[0], dict):
        raise BadObject("Manifest", name, "spec.containers", "has not exactly one container; change it by hand")
    found: dict[str, Any] = containers[0]
    return found


def _is_ours(raw: bytes) -> bool:
    try:
        (document,) = yamltext.documents(raw, FILE)
    except (BadObject, ValueError):
        return False
    return bool(objects.at(document.value, "metadata", "annotations", MARK) == POD)


def _image(raw: bytes) -> str:
    try:
        tree = _pod(raw, FILE)
        return str(_container(tree, FILE).get("image") or "")
    except BadObject:
        return ""


def _manifest(places: Places, *, must_exist: bool = True) -> bytes:
    found = _content(places.manifest)
    if found is None and must_exist:
        why = "does not exist; give --manifests with the folder of static pods, on a control-plane host"
        raise _bad(places.manifest, why)
    return found or b""


def _recorded(places: Places) -> Record | None:
    raw = _content(places.record)
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw, type=Record)
    except (ValueError, RecursionError):
        raise _bad(places.record, "cannot be read; compare the backup with the manifest by hand") from None


def _backed_up(places: Places, record: Record | None) -> bytes:
    found = _content(places.backup)
    if record is None or found is None or _sum(found) != record.original:
        raise _bad(places.backup, "is missing or was changed, so kube-scheduler cannot be restored from it")
    return found


def _require_separate(places: Places) -> None:
    folder, watched = places.on_host(places.folder).absolute(), places.manifest.parent.absolute()
    if folder == watched or watched in folder.parents:
        raise _bad(folder, f"is inside of {watched}: the kubelet would run the backup; choose another folder")


def _put(path: Path, content: bytes, mode: int) -> None:
    """Complete and with its mode at once; the kubelet ignores the hidden name that it has until then."""
    part = privatefile.write(path.with_name(f".{path.name}.numalign"), content)
    os.chmod(part, mode)
    os.replace(part, path)


def _content(path: Path) -> bytes | None:
    """None where there is no such file; BadObject where it is no regular file of reasonable size."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or path.stat().st_size > LARGEST:
            raise _bad(path, "is not a regular file of reasonable size")
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise _bad(path, f"cannot be read: {problem.strerror}; run the command as root") from None


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _bad(path: Path, why: str) -> BadObject:
    return BadObject("File", str(path), "", why)
