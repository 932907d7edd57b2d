"""Builds the container images as OCI archives, with buildah: `make image` and the tests of the images run it.

    python -m tools.image FOLDER [--base IMAGE] [--arch amd64|arm64] [--fresh]

The Dockerfile is the recipe. Without --base both stages stand on images that `tools.imagebase` makes from Debian
packages, so that no registry is needed. All times are that of the commit (SOURCE_DATE_EPOCH overrides it): the same
sources and packages give the same digest. What was built is kept under ~/.cache/numalign/image by a key of all input,
and the base by its recipe; --fresh makes both again, with the packages of today. Beside each archive lies its bill of
materials. How the machine reaches its package index is told to pip by secrets of the build, which no image records."""

import argparse
import ast
import contextlib
import fcntl
import hashlib
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from numalign import __version__
from tools import dist, imagebase, imagesbom

ROOT: Final = Path(__file__).parents[1]
TARGETS: Final = ("agent", "scheduler")
INPUT: Final = ("Dockerfile", ".dockerignore", "LICENSE", "NOTICE", "README.md", "pyproject.toml")
INPUT_TOO: Final = ("requirements/*.txt", "src/**/*", "tools/image*.py", "tools/precompile.py")
KIT: Final = ("src/numalign/lab", "src/numalign/oracle", "src/numalign/cli/devkit")
"""No part of the images."""
ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
EMULATORS: Final = Path("/proc/sys/fs/binfmt_misc")
"""Programs of other architectures that the kernel has an interpreter for."""
BASES: Final = {"BASE": imagebase.RUNTIME, "BUILD_BASE": imagebase.BUILD}
# A bridge and rules of a firewall on the machine would be the price of another isolation.
ISOLATED: Final = ("--isolation", "chroot", "--network", "host")
SCRATCH: Final = "building-"
KEPT: Final = 3
"""Builds that stay in the cache; each takes 200 MB."""
COMPRESSED: Final = ("--compression-format", "gzip", "--compression-level", "9")
PIP_PEM: Final = "/etc/pip.pem"
"""Where the Dockerfile mounts the secret `certificates`."""
FOR_PIP: Final = {"index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "default-timeout", "retries"}


class Plan(NamedTuple):
    """Everything that an image depends on, beside the files of the repository."""

    base: str
    architecture: str
    epoch: int
    revision: str

    def key(self) -> str:
        """Of all input: equal keys, equal images."""
        digest = hashlib.sha256(repr((*self, __version__)).encode())
        for file in _input():
            digest.update(f"{file.relative_to(ROOT)}\0".encode() + file.read_bytes() + b"\0")
        return digest.hexdigest()[:16]


def _input() -> Iterator[Path]:
    yield from (ROOT / name for name in INPUT)
    for pattern in INPUT_TOO:
        for path in sorted(ROOT.glob(pattern)):
            in_kit = any(path.is_relative_to(ROOT / folder) for folder in KIT)
            if path.is_file() and not in_kit and "__pycache__" not in path.parts:
                yield path


def of_this_commit(base: str, architecture: str) -> Plan:
    epoch = int(os.environ.get(dist.EPOCH) or dist.committed())
    asked = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    described = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return Plan(base, architecture, epoch, described)


def here() -> str:
    """The machine's architecture, by its name in images."""
    return ARCHITECTURES.get(platform.machine(), platform.machine())


def cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numalign" / "image"


def missing(base: str) -> str:
    """The programs that building needs and the machine lacks; empty: none."""
    wanted = ("buildah",) if base else ("buildah", "mmdebstrap", "dpkg-deb")
    return " and ".join(name for name in wanted if shutil.which(name) is None)


def runs(architecture: str, emulators: Path = EMULATORS) -> bool:
    """Whether programs of the architecture run here: the Dockerfile runs its Python."""
    names = [name for name, called in ARCHITECTURES.items() if called == architecture]
    found = (path.read_text() for name in names for path in emulators.glob(f"*{name}*"))
    return architecture == here() or any(text.startswith("enabled") for text in found)


def archives(plan: Plan, *, fresh: bool = False) -> dict[str, Path]:
    """The archive of each target, built if it is not in the cache."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    folder = cache / f"built-{plan.key()}"
    with alone(cache / "lock"):
        if fresh or not folder.exists():
            _sweep(cache)
            with tempfile.TemporaryDirectory(dir=cache, prefix=SCRATCH) as scratch:
                made = Path(scratch, "made")
                made.mkdir()
                _build(plan, Path(scratch), made, fresh)
                if folder.name != f"built-{plan.key()}":
                    raise SystemExit("image: files of the repository changed during the build: build again")
                shutil.rmtree(folder, ignore_errors=True)
                made.replace(folder)
        os.utime(folder)
        for old in sorted(cache.glob("built-*"), key=lambda each: each.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old)
    return {target: folder / f"{stem(target, plan)}.tar" for target in TARGETS}


def _sweep(cache: Path) -> None:
    """Removes what a build left that was killed; the caller is the only one that builds."""
    for left in cache.glob(f"{SCRATCH}*"):
        with storage(left):
            pass
        shutil.rmtree(left, ignore_errors=True)


def stem(target: str, plan: Plan) -> str:
    return f"numalign-{target}-{__version__}-{plan.architecture}"


def _build(plan: Plan, scratch: Path, made: Path, fresh: bool) -> None:
    with storage(scratch) as buildah:
        arguments = _bases(plan, buildah, fresh)
        created = datetime.fromtimestamp(plan.epoch, UTC).isoformat().replace("+00:00", "Z")
        arguments |= {"VERSION": __version__, "REVISION": plan.revision, "CREATED": created}
        secrets = _secrets(scratch)
        for target in TARGETS:
            name = f"localhost/numalign/{target}:{__version__}"
            say(f"builds {name} for {plan.architecture}")
            command = [
                "build",
                "--quiet",
                "--layers",
                "--format",
                "oci",
                "--pull=false" if plan.base else "--pull-never",
            ]
            command += [*ISOLATED, "--platform", f"linux/{plan.architecture}", "--timestamp", str(plan.epoch)]
            command += [f"--build-arg={key}={value}" for key, value in arguments.items()]
            command += [f"--secret=id={key},src={path}" for key, path in secrets.items()]
            buildah(*command, "--target", target, "--tag", name, str(ROOT))
            layout = scratch / target
            buildah("push", "--quiet", *COMPRESSED, name, f"oci:{layout}:{__version__}")
            archive = made / f"{stem(target, plan)}.tar"
            _pack(layout, name, archive, plan.epoch)
            bill = imagesbom.bill(archive, name, __version__)
            archive.with_suffix(".cdx.json").write_text(json.dumps(bill, indent=2) + "\n")


def _bases(plan: Plan, buildah: "Buildah", fresh: bool) -> dict[str, str]:
    """The images to stand on, as arguments of the Dockerfile."""
    if plan.base:
        return {"BASE": plan.base}
    recipe = hashlib.sha256(Path(imagebase.__file__).read_bytes()).hexdigest()[:16]
    names = {}
    for argument, packages in BASES.items():
        names[argument] = name = f"localhost/numalign-{argument.lower().replace('_', '-')}"
        tree = cache_folder() / f"{argument.lower()}-{plan.architecture}-{recipe}.tar"
        if fresh or not tree.exists():
            for old in cache_folder().glob(f"{argument.lower()}-{plan.architecture}-*.tar"):
                old.unlink()
            say(f"makes a base image from Debian packages ({len(packages)} and what they need)")
            imagebase.make(tree, packages, plan.architecture)
        container = buildah("from", "--arch", plan.architecture, "scratch")
        buildah("add", "--quiet", container, str(tree), "/")
        buildah("config", "--env", "PATH=/usr/local/bin:/usr/bin:/bin", "--cmd", "python3", container)
        buildah("commit", "--quiet", "--rm", "--timestamp", "0", container, name)
    return names


def _secrets(folder: Path) -> dict[str, Path]:
    """pip's configuration on this machine, as far as it says how to reach an index."""
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True)
    # The environment wins, as with pip.
    lines = sorted(listed.stdout.splitlines(), key=lambda line: line.startswith(":env:"))
    pairs = (line.partition("=") for line in lines)
    found = {key.rpartition(".")[2]: ast.literal_eval(value) for key, _, value in pairs}
    lines = [f"{key} = {value}".replace("\n", "\n  ") for key, value in found.items() if key in FOR_PIP]
    secrets = {"pip": folder / "pip.conf"}
    certificates = found.get("cert") or os.environ.get("SSL_CERT_FILE")
    if certificates:
        secrets["certificates"] = Path(certificates)
        lines.append(f"cert = {PIP_PEM}")
    secrets["pip"].write_text("\n".join(["[global]", *lines, ""]))
    secrets["pip"].chmod(0o600)
    return secrets


class Buildah(NamedTuple):
    """buildah with a storage of its own: the user's images are not touched."""

    options: tuple[str, ...]
    environment: Mapping[str, str]

    def __call__(self, *arguments: str) -> str:
        command = ["buildah", *self.options, *arguments]
        ran = subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if ran.returncode:
            raise SystemExit(f"image: buildah {arguments[0]} failed:\n{ran.stdout}{ran.stderr}")
        return ran.stdout.strip()


@contextlib.contextmanager
def storage(scratch: Path) -> Iterator[Buildah]:
    """What pip downloads is kept in the cache; everything else is removed in the end."""
    kept = cache_folder() / "downloads"
    kept.mkdir(parents=True, exist_ok=True)
    options = ("--root", str(scratch / "storage"), "--runroot", str(scratch / "run"))
    buildah = Buildah(options, {**os.environ, "TMPDIR": str(kept)})
    try:
        yield buildah
    finally:
        with contextlib.suppress(SystemExit):
            buildah("rm", "--all")
            buildah("rmi", "--all", "--force")
        if os.geteuid() == 0:
            _unmount(scratch)
        else:
            # Files of other users of the image belong to ids that only a user namespace may remove.
            gone = [str(scratch / "storage"), str(scratch / "run")]
            subprocess.run(["buildah", "unshare", "rm", "-rf", *gone], capture_output=True, check=False)


def _unmount(folder: Path) -> None:
    """What a build that was killed left mounted there."""
    points = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
    for point in reversed([point for point in points if point.startswith(f"{folder}/")]):
        subprocess.run(["umount", "--lazy", point], capture_output=True, check=False)


def _pack(layout: Path, name: str, target: Path, epoch: int) -> None:
    """The OCI layout as one tar file, with the full name where containerd and others look for it."""
    index: dict[str, Any] = json.loads((layout / "index.json").read_text())
    for each in index["manifests"]:
        each["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    (layout / "index.json").write_text(json.dumps(index))
    with tarfile.open(target, "w") as archive:
        for path in sorted(path for path in layout.rglob("*") if path.is_file()):
            member = tarfile.TarInfo(str(path.relative_to(layout)))
            member.size, member.mtime, member.mode = path.stat().st_size, epoch, 0o644
            with open(path, "rb") as contents:
                archive.addfile(member, contents)


def digest(archive: Path) -> str:
    """Of the image's manifest: what a registry calls it by."""
    with tarfile.open(archive) as opened:
        found: str = json.load(opened.extractfile("index.json") or io.BytesIO())["manifests"][0]["digest"]
    return found


@contextlib.contextmanager
def alone(file: Path) -> Iterator[None]:
    """One build at a time."""
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(what: str) -> None:
    print(f"image: {what}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> None:
    reader = argparse.ArgumentParser(prog="python -m tools.image", description="Build the container images.")
    reader.add_argument("folder", type=Path, help="where the archives go")
    reader.add_argument("--base", default="", help="the image to stand on; none: made from Debian packages")
    reader.add_argument("--arch", default=here(), choices=sorted(ARCHITECTURES.values()), help="of the images")
    reader.add_argument("--fresh", action="store_true", help="build again what is in the cache")
    asked = reader.parse_args(arguments)
    lacking = missing(asked.base)
    if lacking:
        raise SystemExit(f"image: {lacking} not found: `make system PURPOSES=image` installs what is needed on Debian")
    if not runs(asked.arch):
        why = "no emulator of them is registered, which Debian's qemu-user-static does"
        raise SystemExit(f"image: programs for {asked.arch} do not run on this machine: {why}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    plan = of_this_commit(asked.base, asked.arch)
    built = archives(plan, fresh=asked.fresh)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for archive in built.values():
        for file in (archive, archive.with_suffix(".cdx.json")):
            shutil.copyfile(file, asked.folder / file.name)
        size = archive.stat().st_size / 1e6
        print(f"{asked.folder / archive.name}  {size:.1f} MB  {digest(archive)}")


if __name__ == "__main__":
    main(sys.argv[1:])
