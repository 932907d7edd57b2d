"""Runs the exec plugins of a kubeconfig (client.authentication.k8s.io v1 and v1beta1).

`kubeconfig` turns an `exec` block into a credential source here. Errors never show the plugin's output, which is a
secret; they show its standard error, which is meant for people."""

import asyncio
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Literal

import msgspec
from msgspec import Struct

from numalign.api import errors
from numalign.api.decode import decode
from numalign.api.decode.structs import Wire
from numalign.kube.clock import Clock
from numalign.kube.errors import on_one_line
from numalign.kube.transport import auth
from numalign.kube.transport.auth import Identity, Obtained
from numalign.kube.transport.tls import Certificate

GROUP: Final = "client.authentication.k8s.io"
VERSIONS: Final = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
KIND: Final = "ExecCredential"
INFO: Final = "KUBERNETES_EXEC_INFO"
PATIENCE: Final = 60.0
AHEAD: Final = 10.0
"""Seconds before its expiry at which a credential is renewed, so that none expires while a call is in flight."""

InteractiveMode = Literal["", "Never", "IfAvailable", "Always"]


class EnvVar(Wire, frozen=True):
    name: str = ""
    value: str = ""

    def __repr__(self) -> str:
        return f"EnvVar({self.name})"


class Plugin(Wire, frozen=True):
    api_version: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: InteractiveMode = ""


class CredentialStatus(Wire, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str | None = None

    def __repr__(self) -> str:
        return "CredentialStatus(...)"


class Credential(Wire, frozen=True):
    api_version: str = ""
    kind: str = ""
    status: CredentialStatus | None = None


class PluginCall(Struct, frozen=True):
    """The plugin, the file that configures it, and the cluster information that it may get."""

    plugin: Plugin
    source: str
    cluster: Mapping[str, object]

    def bad(self, why: str) -> errors.BadObject:
        return errors.BadObject("Kubeconfig", self.source, "exec", f"{errors.clipped(self.plugin.command)} {why}")


def source(asked: PluginCall, clock: Clock) -> auth.Source:
    if asked.plugin.api_version not in VERSIONS:
        raise asked.bad(f"wants apiVersion {errors.echo(asked.plugin.api_version)}; known are {' and '.join(VERSIONS)}")

    async def obtain() -> Obtained:
        return obtained(asked, await _printed(asked), clock.wall())

    return obtain


def obtained(asked: PluginCall, printed: bytes, now: datetime) -> Obtained:
    """The identity in the plugin's output."""
    try:
        credential = decode.decode(Credential, printed)
    except errors.BadObject as problem:
        raise asked.bad(f"printed no {KIND}: {problem.field or 'output'} is invalid") from None
    if (credential.kind, credential.api_version) != (KIND, asked.plugin.api_version):
        named = f"{errors.echo(credential.kind)} of {errors.echo(credential.api_version)}"
        raise asked.bad(f"printed {named}; expected {KIND} of {asked.plugin.api_version}")
    status = credential.status or CredentialStatus()
    if not (status.token or status.client_certificate_data):
        raise asked.bad("printed neither status.token nor status.clientCertificateData")
    if bool(status.client_certificate_data) != bool(status.client_key_data):
        raise asked.bad("printed only one of status.clientCertificateData and status.clientKeyData")
    return Obtained(_identity(asked, status), _good_for(asked, status, now))


def _identity(asked: PluginCall, status: CredentialStatus) -> Identity:
    pair = status.client_certificate_data.encode(), status.client_key_data.encode()
    token = auth.token_text(status.token, asked.source, "exec, status.token") if status.token else ""
    return Identity(auth.bearer(token) if token else (), Certificate(*pair) if all(pair) else None)


def _good_for(asked: PluginCall, status: CredentialStatus, now: datetime) -> float | None:
    if status.expiration_timestamp is None:
        return None
    try:
        end = datetime.fromisoformat(status.expiration_timestamp)
    except ValueError:
        raise asked.bad("printed a status.expirationTimestamp that is not an RFC 3339 time") from None
    end = end if end.tzinfo else end.replace(tzinfo=UTC)
    return max(0.0, (end - now).total_seconds() - AHEAD)


async def _printed(asked: PluginCall) -> bytes:
    interactive = _interactive(asked)
    try:
        process = await asyncio.create_subprocess_exec(
            asked.plugin.command,
            *asked.plugin.args,
            stdin=None if interactive else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=None if interactive else asyncio.subprocess.PIPE,
            env=_environment(asked, interactive),
        )
    except (OSError, ValueError) as problem:
        hint = f"; {on_one_line(asked.plugin.install_hint)}" if asked.plugin.install_hint else ""
        raise asked.bad(f"cannot be started: {getattr(problem, 'strerror', None) or 'not a command'}{hint}") from None
    return await _result(asked, process)


async def _result(asked: PluginCall, process: asyncio.subprocess.Process) -> bytes:
    try:
        async with asyncio.timeout(PATIENCE):
            printed, complaint = await process.communicate()
    except TimeoutError:
        raise asked.bad(f"did not exit within {PATIENCE:.0f} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        stderr = on_one_line((complaint or b"").decode("utf-8", "replace").strip())
        raise asked.bad(f"ended with {process.returncode}{f': {stderr}' if stderr else ''}")
    return printed


def _interactive(asked: PluginCall) -> bool:
    mode, terminal = asked.plugin.interactive_mode, sys.stdin is not None and sys.stdin.isatty()
    if mode == "Always" and not terminal:
        raise asked.bad("needs a terminal (interactiveMode Always), and there is none")
    return terminal and mode in ("Always", "IfAvailable")


def _environment(asked: PluginCall, interactive: bool) -> dict[str, str]:
    spec: dict[str, object] = {"interactive": interactive}
    if asked.plugin.provide_cluster_info:
        spec["cluster"] = asked.cluster
    info = {"apiVersion": asked.plugin.api_version, "kind": KIND, "spec": spec}
    named = {each.name: each.value for each in asked.plugin.env}
    return {**os.environ, **named, INFO: msgspec.json.encode(info).decode()}
