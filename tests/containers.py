"""Runs commands in an image archive as a pod with the usual restrictions would: with runc, without a daemon.

The root file system is read-only and /tmp is empty. The process has the image's user, no capability, and no network but
its own loopback. Needs root and runc."""

import json
import shutil
import subprocess
import tarfile
import uuid
from pathlib import Path
from typing import Any

from tools import imagesbom

TMPFS = {"type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "nodev", "mode=1777"]}
MOUNTS = [
    {"destination": "/proc", "type": "proc", "source": "proc"},
    {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=1m"]},
    {"destination": "/sys", "type": "none", "source": "/sys", "options": ["rbind", "nosuid", "noexec", "nodev", "ro"]},
]
NAMESPACES = ("pid", "mount", "ipc", "uts", "network")


def configuration(archive: Path) -> dict[str, Any]:
    """The image's own: user, environment, entry point, labels, history."""
    with tarfile.open(archive) as opened:

        def read(name: str) -> Any:
            found = opened.extractfile(name)
            assert found is not None
            return json.load(found)

        def blob(digest: str) -> Any:
            return read(f"blobs/{digest.replace(':', '/')}")

        found: dict[str, Any] = blob(blob(read("index.json")["manifests"][0]["digest"])["config"]["digest"])
    return found


class Image:
    """An image, unpacked."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self.root, self.archive = folder / "rootfs", archive
        self.config = configuration(archive)["config"]
        for layer in imagesbom.layers(archive):
            layer.extractall(self.root, filter="tar")

    def run(self, *command: str, timeout: float = 120, tmp: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command instead of the entry point; `tmp`: with an empty /tmp."""
        name = f"numalign-{uuid.uuid4().hex[:12]}"
        bundle = self.root.parent / name
        bundle.mkdir()
        (bundle / "config.json").write_text(json.dumps(self._bundle(command, tmp)))
        state = ["runc", "--root", str(bundle / "state")]
        try:
            return subprocess.run(
                [*state, "run", "--bundle", str(bundle), name],
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                stdin=subprocess.DEVNULL,
            )
        finally:
            subprocess.run([*state, "delete", "--force", name], capture_output=True, check=False)
            shutil.rmtree(bundle)

    def numalign(self, *words: str, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        return self.run(*self.config["Entrypoint"], *words, timeout=timeout)

    def python(self, code: str, timeout: float = 120, tmp: bool = True) -> subprocess.CompletedProcess[str]:
        return self.run("python3", "-c", code, timeout=timeout, tmp=tmp)

    def _bundle(self, command: tuple[str, ...], tmp: bool) -> dict[str, Any]:
        user, group = map(int, self.config["User"].split(":"))
        return {
            "ociVersion": "1.0.2",
            "process": {
                "user": {"uid": user, "gid": group},
                "args": list(command),
                "env": [*self.config["Env"], "HOME=/nonexistent", "TERM=dumb", "COLUMNS=120"],
                "cwd": "/",
                "noNewPrivileges": True,
                "capabilities": {},
            },
            "root": {"path": str(self.root), "readonly": True},
            "mounts": [*MOUNTS, *([{"destination": "/tmp", **TMPFS}] if tmp else [])],
            "linux": {"namespaces": [{"type": each} for each in NAMESPACES]},
        }
