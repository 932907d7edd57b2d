"""Image archives in the OCI layout: makes small ones, reads the names of any, and loads them into nodes.

`up` makes and loads the image that keeps a pod's namespaces; `numalign lab load` and tests load others. Nothing is
pulled: a lab has no way to a registry."""

import contextlib
import hashlib
import io
import platform
import re
import subprocess
import tarfile
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from numalign.api.errors import BadObject
from numalign.lab import launching
from numalign.lab.errors import LabError

KIND: Final = "Image archive"
SOCKET: Final = "/run/containerd/containerd.sock"
NAMESPACE: Final = "k8s.io"
"""Of containerd, where kubelets look for images."""
PAUSE: Final = "localhost/numalign/pause:1"
NAMES: Final = ("io.containerd.image.name", "org.opencontainers.image.ref.name")
"""Annotations with the name of an image, as containerd and others write them."""
DOMAIN: Final = r"(localhost|[a-z0-9]+([.-][a-z0-9]+)*\.[a-z0-9]+)(:\d+)?"
FULL_NAME: Final = re.compile(rf"{DOMAIN}(/[a-z0-9]+([._-]+[a-z0-9]+)*)+:\w[\w.-]{{0,127}}", re.ASCII)
"""With a registry, as kubelets ask for images: they complete a shorter name with docker.io."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
MANIFEST_TYPE: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar"
MOST_INDEX: Final = 4 << 20
PATIENCE: Final = 60.0
LOOK: Final = 0.1


class Contents(Struct, frozen=True, kw_only=True):
    """What an image consists of. `programs` are files by path, which can be executed."""

    name: str
    entrypoint: tuple[str, ...]
    programs: Mapping[str, bytes]
    links: Mapping[str, str] = field(default_factory=dict)
    """Symbolic links by path."""


def archive(contents: Contents) -> bytes:
    """An OCI archive of an image with one layer; the same bytes each time."""
    files = {path: (0o755, data) for path, data in contents.programs.items()}
    layer = _tar(files, contents.links)
    blobs: dict[str, bytes] = {}

    def blob(kind: str, data: bytes) -> dict[str, Any]:
        digest = hashlib.sha256(data).hexdigest()
        blobs[digest] = data
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}

    described = blob(LAYER_TYPE, layer)
    config = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": contents.entrypoint, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [described["digest"]]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": blob(CONFIG_TYPE, msgspec.json.encode(config)),
        "layers": [described],
    }
    listed = blob(MANIFEST_TYPE, msgspec.json.encode(manifest)) | {"annotations": {NAMES[0]: contents.name}}
    index = msgspec.json.encode({"schemaVersion": 2, "manifests": [listed]})
    layout = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', "index.json": index}
    everything = layout | {f"blobs/sha256/{digest}": data for digest, data in blobs.items()}
    return _tar({path: (0o644, data) for path, data in everything.items()}, {})


def _tar(files: Mapping[str, tuple[int, bytes]], links: Mapping[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as made:
        for path, (mode, data) in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(data), mode
            made.addfile(entry, io.BytesIO(data))
        for path, target in sorted(links.items()):
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            made.addfile(entry)
    return buffer.getvalue()


class _Described(Struct):
    annotations: dict[str, str] = field(default_factory=dict)


class _Index(Struct):
    manifests: list[_Described]


def names(path: Path) -> tuple[str, ...]:
    """The full names of the images in an OCI archive; BadObject if it is none. An image can have no full name."""
    try:
        with tarfile.open(path, mode="r:*") as found:
            listing = found.extractfile("index.json")
            if listing is None:
                raise KeyError
            index = msgspec.json.decode(listing.read(MOST_INDEX), type=_Index)
    except OSError as problem:
        raise BadObject(KIND, str(path), "", f"cannot be read: {problem.strerror or problem}") from None
    except (tarfile.TarError, EOFError) as problem:
        raise BadObject(KIND, str(path), "", f"is no tar file ({problem}); {ADVICE}") from None
    except KeyError:
        raise BadObject(KIND, str(path), "index.json", f"is missing; {ADVICE}") from None
    except msgspec.DecodeError as problem:
        raise BadObject(KIND, str(path), "index.json", f"is no image index ({problem}); {ADVICE}") from None
    if not index.manifests:
        raise BadObject(KIND, str(path), "index.json", f"lists no image; {ADVICE}")
    written = (each.annotations.get(key, "") for each in index.manifests for key in NAMES)
    return tuple(dict.fromkeys(name for name in written if FULL_NAME.fullmatch(name)))


ADVICE: Final = "write an OCI archive, for example with `buildah push IMAGE oci-archive:FILE`"


def wanted_name(path: Path, given: str) -> str:
    """The name that the image of an archive gets; BadObject if neither the archive nor the caller names it."""
    found = names(path)
    if given and not FULL_NAME.fullmatch(given):
        raise BadObject(KIND, str(path), "name", f"{given!r} is not a full name, such as localhost/numalign:dev")
    if not given and not found:
        raise BadObject(KIND, str(path), "name", "the image has no full name; give one, such as localhost/numalign:dev")
    return given or found[0]


class NodeRuntime(Struct, frozen=True):
    """The containerd of a node: the first process of the node, and the cgroups of its programs."""

    node: str
    home: int
    cgroups: tuple[str, ...]


def load(path: Path, name: str, nodes: Sequence[NodeRuntime], ctr: Path) -> None:
    """Load an archive into every node; LabError with containerd's words if one refuses."""
    with ThreadPoolExecutor(max_workers=max(1, len(nodes))) as pool:
        for problem in pool.map(lambda node: _load(path, name, node, ctr), nodes):
            if problem:
                raise LabError(problem)


def _load(path: Path, name: str, node: NodeRuntime, ctr: Path) -> str:
    flags = ("--address", SOCKET, "--namespace", NAMESPACE, "images", "import", "--local", "--index-name", name)
    # From standard input: a node has its own /tmp, where the archive may be.
    command = launching.command([str(ctr), *flags, "-"], (), home=node.home, cgroups=node.cgroups)
    with open(path, "rb") as content:
        ran = subprocess.run(command, stdin=content, capture_output=True, text=True, check=False)
    if ran.returncode == 0:
        return ""
    lines = [line for line in ran.stderr.splitlines() if line.strip()]
    return f"node {node.node} does not take image {name}: {'; '.join(lines[-2:]) or ran.returncode}"


def until_served(nodes: Iterable[NodeRuntime]) -> None:
    """Wait until the containerd of every node listens."""
    until = time.monotonic() + PATIENCE
    for node in nodes:
        socket = Path("/proc", str(node.home), "root", SOCKET.lstrip("/"))
        while not _exists(socket):
            if time.monotonic() > until:
                raise LabError(f"containerd of node {node.node} does not start; its log says why")
            time.sleep(LOOK)


def _exists(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.exists()
    return False
