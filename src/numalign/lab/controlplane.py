"""Runs etcd and a real kube-apiserver on loopback, in a folder of their own.

Benchmarks and tests that compare with the real server enter `running`, which ends both programs. A lab starts the same
programs as two of its parts (`programs_of`), with an account per component and RBAC. etcd does not sync to disk.
Requests without a token are refused (lab spec, "Control plane")."""

import contextlib
import http.client
import random
import socket
import ssl
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.lab import build
from numalign.lab.errors import LabError
from numalign.lab.processes import Part, ProgramSpec, end_all
from numalign.process import certificates
from numalign.process.certificates import CryptographyMissing

TOKEN: Final = "loopback"
ADMINS: Final = "system:masters"
SECONDS_TO_START: Final = 90
PORTS: Final = range(20_000, 30_000)
"""Below the ephemeral ports, from which an outgoing connection could take one before its server does."""

# The plugin waits for an object that kube-controller-manager creates.
WITHOUT_CONTROLLERS: Final = "--disable-admission-plugins=ServiceAccount"


class ServerBinaries(Struct, frozen=True):
    etcd: Path
    apiserver: Path


class ControlPlane(Struct, frozen=True):
    port: int
    token: str
    authority: Path
    """The server's self-signed certificate."""
    pids: dict[str, int]


class Account(Struct, frozen=True):
    """A user of the server, with token and group."""

    user: str
    token: str
    group: str = ""


class ServerPlan(Struct, frozen=True, kw_only=True):
    """How a server is started."""

    folder: Path
    etcd_port: int
    peer_port: int
    port: int
    authorization: str = "AlwaysAllow"
    flags: tuple[str, ...] = (WITHOUT_CONTROLLERS,)
    """Further flags of the server."""

    @property
    def authority(self) -> Path:
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def key(self) -> Path:
        """The key that signs service account tokens, and its public half."""
        return self.folder / "service-accounts.key"


def programs() -> ServerBinaries | None:
    """The programs, built if they are missing; None without Go."""
    if not build.found():
        return None
    etcd, apiserver = build.build(build.chosen(["etcd", "kube-apiserver"]), lambda _: None)
    return ServerBinaries(etcd.path, apiserver.path)


@contextlib.contextmanager
def running(folder: Path, found: ServerBinaries) -> Iterator[ControlPlane]:
    plan = ServerPlan(folder=folder, etcd_port=free_port(), peer_port=free_port(), port=free_port())
    prepare(plan, [Account("admin", TOKEN, ADMINS)])
    parts = [Part(program) for program in programs_of(plan, found)]
    try:
        for part in parts:
            part.start()
        until = time.monotonic() + SECONDS_TO_START
        while not is_ready(plan.port, TOKEN):
            require_start(parts, until)
            time.sleep(0.2)
        pids = {part.program.name: part.pid or 0 for part in parts}
        yield ControlPlane(plan.port, TOKEN, plan.authority, pids)
    finally:
        end_all(parts)


def require_start(parts: Iterable[Part], until: float) -> None:
    """LabError if a program has ended or the time is over."""
    for part in parts:
        part.require()
        if time.monotonic() > until:
            raise LabError(f"{part.program.title} is not ready: {part.last_words()}")


def prepare(plan: ServerPlan, accounts: Iterable[Account]) -> None:
    """Write the files that the server reads at start."""
    plan.folder.mkdir(parents=True, exist_ok=True)
    _keep(plan.folder / "tokens.csv", (f'{each.token},{each.user},{each.user},"{each.group}"\n' for each in accounts))
    try:
        signing = certificates.signing_key()
    except CryptographyMissing as problem:
        raise LabError(str(problem)) from None
    # The public half separately: the server does not derive it from a private key in this format.
    _keep(plan.key, (signing.private, signing.public))


def _keep(path: Path, secrets: Iterable[str]) -> None:
    path.touch(mode=0o600)
    path.write_text("".join(secrets))


def programs_of(plan: ServerPlan, found: ServerBinaries) -> tuple[ProgramSpec, ProgramSpec]:
    etcd = (str(found.etcd), *_etcd_flags(plan))
    server = (str(found.apiserver), *_api_flags(plan))
    return (
        ProgramSpec(name="etcd", command=etcd, log=plan.folder / "etcd.log"),
        ProgramSpec(name="kube-apiserver", command=server, log=plan.folder / "kube-apiserver.log"),
    )


def is_ready(port: int, token: str) -> bool:
    # The server creates its certificate at start, so there is none to verify with.
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {token}"})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def free_port() -> int:
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise LabError(
        f"no free port on 127.0.0.1 between {PORTS.start} and {PORTS.stop}; stop the programs that listen there"
    )


def _etcd_flags(plan: ServerPlan) -> list[str]:
    at, among = f"http://127.0.0.1:{plan.etcd_port}", f"http://127.0.0.1:{plan.peer_port}"
    return [
        f"--data-dir={plan.folder / 'data'}",
        f"--listen-client-urls={at}",
        f"--advertise-client-urls={at}",
        f"--listen-peer-urls={among}",
        f"--initial-advertise-peer-urls={among}",
        f"--initial-cluster=default={among}",
        "--unsafe-no-fsync",
    ]


def _api_flags(plan: ServerPlan) -> list[str]:
    return [
        f"--etcd-servers=http://127.0.0.1:{plan.etcd_port}",
        f"--secure-port={plan.port}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={plan.folder / 'certificates'}",
        f"--token-auth-file={plan.folder / 'tokens.csv'}",
        f"--authorization-mode={plan.authorization}",
        "--service-account-issuer=https://loopback",
        f"--service-account-signing-key-file={plan.key}",
        f"--service-account-key-file={plan.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        *plan.flags,
    ]
