"""Makes base images from Debian packages with mmdebstrap, for machines that reach no registry of images.

`tools.image` calls it. The packages come from the mirror that the machine's apt is set to, verified by the archive's
signatures. No script of a package runs, so another architecture needs no emulation. What Python can do without is not
installed: a shell, dpkg, Perl, and what the modules `curses`, `readline`, `sqlite3` and `dbm` need. The result depends
on the packages alone: it has neither logs nor caches, nor the names of mirror and machine. The list of packages stays
in /var/lib/dpkg/status, where scanners look for it."""

import io
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

SUITE: Final = "trixie"
RUNTIME: Final = ("base-files", "ca-certificates", "libpython3.13-stdlib", "libstdc++6", "netbase", "python3-minimal")
BUILD: Final = (*RUNTIME, "coreutils", "dash", "python3.13-venv")
ASSUMED: Final = (
    *("awk", "debconf", "dpkg", "install-info", "openssl", "openssl-provider-legacy", "perl-base", "python3"),
    *(
        "libdb5.3t64",
        "libncursesw6",
        "libreadline8t64",
        "libsqlite3-0",
        "libtinfo6",
        "readline-common",
        "tar",
        "tzdata",
    ),
)
"""apt takes these for installed."""
EXCLUDED: Final = (
    *("/usr/share/man/*", "/usr/share/locale/*", "/usr/share/doc/*", "/usr/share/lintian/*", "/usr/share/bug/*"),
    *("/usr/share/info/*", "/usr/lib/*/gconv/*", "/usr/lib/python3*/pydoc_data/*", "/usr/lib/python3*/turtle*"),
    *("/usr/lib/python3*/lib-dynload/_test*", "/usr/lib/python3*/lib-dynload/_curses*"),
    *("/usr/lib/python3*/lib-dynload/_sqlite3*", "/usr/lib/python3*/lib-dynload/_dbm*", "/usr/lib/python3*/idlelib/*"),
    *("/usr/lib/python3*/lib-dynload/readline*", "/usr/share/base-files/*", "/etc/update-motd.d/*", "/etc/skel/*"),
)
INCLUDED: Final = ("/usr/share/doc/*/copyright",)
DROPPED: Final = ("dev", "etc/apt", "etc/dpkg/dpkg.cfg.d", "etc/fstab", "etc/hostname", "etc/resolv.conf", "var/cache")
DROPPED_TOO: Final = ("boot", "home", "var/lib/apt", "usr/games", "usr/include", "usr/local", "var/lib/dpkg", "var/log")
CERTIFICATES: Final = "usr/share/ca-certificates/"
BUNDLE: Final = "etc/ssl/certs/ca-certificates.crt"
FILES: Final = {
    "etc/passwd": b"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nnumalign:x:65532:65532::/tmp:/usr/sbin/nologin\n",
    "etc/group": b"root:x:0:\nnumalign:x:65532:\n",
    "etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
}
LINKS: Final = {"usr/lib/ssl/cert.pem": f"/{BUNDLE}", "usr/bin/sh": "dash"}
"""What the scripts of packages would make; a link to a program that is not there is left out."""


def make(target: Path, packages: Sequence[str], architecture: str) -> None:
    """Writes the root file system as a tar file."""
    with tempfile.TemporaryDirectory(dir=target.parent) as name:
        folder = Path(name)
        (folder / "assumed").write_text("".join(map(_assumed, ASSUMED)))
        (folder / "apt.conf").write_text(_output("apt-config", "dump", "Acquire"))
        (folder / "debs").mkdir()
        paths = [f"--dpkgopt=path-exclude={each}" for each in EXCLUDED]
        paths += [f"--dpkgopt=path-include={each}" for each in INCLUDED]
        # mmdebstrap's own hooks, not shell commands: these never touch a path outside of its folder.
        hooks = [f"--setup-hook=upload {folder}/assumed /var/lib/dpkg/status"]
        hooks += [f"--extract-hook=copy-out /var/cache/apt/archives {folder}/debs"]
        command = ["mmdebstrap", "--quiet", "--variant=extract", f"--architectures={architecture}", "--format=tar"]
        command += [f"--include={','.join(packages)}", f"--aptopt={folder}/apt.conf", *paths, *hooks]
        ran = subprocess.run(
            [*command, SUITE, str(folder / "tree.tar"), *sources()],
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            raise SystemExit(f"image: mmdebstrap failed:\n{ran.stderr}")
        status = "".join(_described(deb) for deb in sorted((folder / "debs").glob("archives/*.deb")))
        with tarfile.open(folder / "tree.tar") as tree, tarfile.open(folder / "base.tar", "w") as base:
            _trimmed(tree, base, status.encode())
        (folder / "base.tar").replace(target)


def sources() -> list[str]:
    """Lines of a sources.list with the machine's own mirror; none: mmdebstrap's default."""
    form = "$(ORIGIN)\t$(REPO_URI)\t$(RELEASE)"
    targets = _output("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    lines = (line.split("\t") for line in targets.splitlines())
    found = {release.endswith("-security"): address for origin, address, release in lines if origin == "Debian"}
    if set(found) != {True, False}:
        return []
    signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    suites = ((False, SUITE), (False, f"{SUITE}-updates"), (True, f"{SUITE}-security"))
    return [f"deb {signed} {found[security]} {suite} main" for security, suite in suites]


def _output(*command: str) -> str:
    """Empty where the machine has no apt."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _assumed(package: str) -> str:
    fields = "Status: install ok installed\nVersion: 9999\nArchitecture: all\nMulti-Arch: foreign\n"
    return f"Package: {package}\n{fields}Maintainer: nobody <nobody@localhost>\nDescription: assumed\n\n"


def _described(deb: Path) -> str:
    """The package's paragraph in dpkg's list."""
    control = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    name, _, rest = control.partition("\n")
    return f"{name}\nStatus: install ok installed\n{rest.strip()}\n\n"


def _trimmed(tree: tarfile.TarFile, base: tarfile.TarFile, status: bytes) -> None:
    members = {name: each for each in tree if (name := each.name.removeprefix("./").rstrip("/")) not in ("", ".")}
    bundle = b"".join(_contents(tree, members[name]) for name in sorted(members) if name.startswith(CERTIFICATES))
    made = {**FILES, BUNDLE: bundle, "var/lib/dpkg/status": status}
    kept = {name: each for name, each in members.items() if not _is_below(name, (*DROPPED, *DROPPED_TOO, *made))}
    for name, member in sorted({**kept, **dict(_folders((*made, *LINKS), kept))}.items()):
        member.name, member.mtime, member.uid, member.gid = name, 0, 0, 0
        member.uname = member.gname = ""
        member.pax_headers = {}
        member.linkname = member.linkname.removeprefix("./") if member.islnk() else member.linkname
        base.addfile(member, tree.extractfile(member) if member.isreg() else None)
    for name, contents in sorted(made.items()):
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(contents), 0o644
        base.addfile(member, io.BytesIO(contents))
    for name, to in LINKS.items():
        if str(Path(name).parent / to).lstrip("/") not in (*kept, *made):
            continue
        member = tarfile.TarInfo(name)
        member.type, member.linkname = tarfile.SYMTYPE, to
        base.addfile(member)


def _folders(files: Iterable[str], there: Iterable[str]) -> Iterator[tuple[str, tarfile.TarInfo]]:
    """Those above the files that are missing."""
    have = set(there)
    for path in (str(above) for name in files for above in Path(name).parents):
        if path != "." and path not in have:
            member = tarfile.TarInfo(path)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            yield path, member


def _contents(tree: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    found = tree.extractfile(member) if member.isreg() else None
    return found.read() if found is not None else b""


def _is_below(name: str, folders: Iterable[str]) -> bool:
    return any(name == each or name.startswith(f"{each}/") for each in folders)
