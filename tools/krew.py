"""Builds what Krew installs as `kubectl numalign`: one archive for Linux and macOS, and the manifest that names it.

`make krew URI=address` runs it after `make dist`. The archive has the launcher, numalign's wheel, the pinned list of
what it needs, and the licence; it is the same bytes every time. Krew downloads it from URI."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from tools import dist

ROOT: Final = dist.ROOT
ARCHIVE: Final = "kubectl-numalign.tar.gz"
MANIFEST: Final = "numalign.yaml"
PROGRAM: Final = "kubectl-numalign"
REQUIREMENTS: Final = ("runtime", "dashboard")
SYSTEMS: Final = ("linux", "darwin")
DESCRIPTION: Final = """\
Shows the NUMA zones of nodes and the pods in them, and explains why pods are pending: by the reason of every node,
zone by zone, with the changes that would help. It reads objects only, and works on clusters without the scheduler of
numalign, as long as nodes publish NodeResourceTopology objects.
"""
CAVEATS: Final = """\
Needs Python 3.11 or newer. The first call installs pinned packages into ~/.cache/numalign. For completion, link
kubectl_complete-numalign, in a folder of the PATH, to the plugin's program kubectl-numalign.
"""


def main(folder: Path, uri: str) -> None:
    wheel = next(folder.glob("numalign-*.whl"), None)
    if wheel is None:
        sys.exit(f"{folder} has no wheel of numalign; run make dist before")
    if not uri.startswith("https://"):
        sys.exit("say where the archive will be: make krew URI=https://HOST/PATH")
    archive, manifest = build(wheel, requirements(), uri)
    (folder / ARCHIVE).write_bytes(archive)
    (folder / MANIFEST).write_text(yaml.safe_dump(manifest, sort_keys=False, width=120))
    print(f"wrote {folder / ARCHIVE} and {folder / MANIFEST}")


def build(wheel: Path, needed: bytes, uri: str) -> tuple[bytes, dict[str, Any]]:
    """The archive and the manifest. `needed`: a hashed requirement file."""
    files = {
        PROGRAM: (ROOT / "tools/krewlauncher.py").read_bytes(),
        wheel.name: wheel.read_bytes(),
        "requirements.txt": needed,
        **{name: (ROOT / name).read_bytes() for name in ("LICENSE", "NOTICE")},
    }
    archive = _packed(files, int(os.environ.get(dist.EPOCH) or dist.committed()))
    version = wheel.name.split("-")[1]
    return archive, _manifest(version, uri, hashlib.sha256(archive).hexdigest(), files)


def requirements() -> bytes:
    """What the commands need."""
    return b"".join((ROOT / f"requirements/{name}.txt").read_bytes() for name in REQUIREMENTS)


def _packed(files: Mapping[str, bytes], at: int) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(content), at, 0o755 if name == PROGRAM else 0o644
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=at)


def _manifest(version: str, uri: str, sha256: str, files: Iterable[str]) -> dict[str, Any]:
    platform = {
        "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": list(SYSTEMS)}]},
        "uri": uri,
        "sha256": sha256,
        "files": [{"from": name, "to": "."} for name in sorted(files)],
        "bin": PROGRAM,
    }
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "numalign"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Show NUMA zones, and why pods do not fit",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": [platform],
        },
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
