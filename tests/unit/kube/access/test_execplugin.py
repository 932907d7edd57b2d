"""Credentials from exec plugins: their input, their output, and the errors when they fail."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from numalign.api.errors import BadObject
from numalign.kube.access import execplugin
from numalign.kube.access.execplugin import EnvVar, Plugin, PluginCall
from numalign.kube.transport.auth import Identity, Login, Obtained
from numalign.kube.transport.tls import Certificate
from tests.unit.kube.clocks import START, HandClock, run

V1, V1BETA1 = execplugin.VERSIONS


def asked(script: str = "", version: str = V1, **rest: Any) -> PluginCall:
    plugin = Plugin(api_version=version, command=sys.executable, args=("-c", script), **rest)
    return PluginCall(plugin, "config", {"server": "https://kube.test"})


def credential(version: str = V1, **status: Any) -> bytes:
    return json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status}).encode()


def obtained(plugin: PluginCall) -> Obtained:
    async def run_it() -> Obtained:
        return await execplugin.source(plugin, HandClock())()

    return run(run_it())


@pytest.mark.parametrize("version", execplugin.VERSIONS)
def test_a_token_is_taken(version: str) -> None:
    found = execplugin.obtained(asked(version=version), credential(version, token="abc"), START)
    assert found.identity == Identity((("Authorization", "Bearer abc"),))
    assert found.good_for is None


def test_a_certificate_is_taken() -> None:
    printed = credential(clientCertificateData="CERT", clientKeyData="KEY")
    assert execplugin.obtained(asked(), printed, START).identity == Identity((), Certificate(b"CERT", b"KEY"))


def test_a_credential_is_renewed_shortly_before_it_ends() -> None:
    end = (START + timedelta(seconds=100)).isoformat().replace("+00:00", "Z")
    found = execplugin.obtained(asked(), credential(token="abc", expirationTimestamp=end), START)
    assert found.good_for == 90.0


BAD: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "printed no ExecCredential"),
    "no JSON": (b"token: abc", "printed no ExecCredential"),
    "a token that is a number": (credential(token=7), "printed no ExecCredential: status.token"),
    "another kind": (b'{"kind":"Pod","apiVersion":"v1"}', 'printed "Pod" of "v1"; expected ExecCredential of'),
    "another version": (credential(V1BETA1, token="abc"), "expected ExecCredential of client.authentication.k8s.io/v1"),
    "no status": (b'{"kind":"ExecCredential","apiVersion":"%s"}' % V1.encode(), "printed neither status.token nor"),
    "half a certificate": (credential(clientCertificateData="CERT"), "printed only one of"),
    "a time that is none": (credential(token="abc", expirationTimestamp="soon"), "status.expirationTimestamp"),
    "a token of two lines": (credential(token="a\nb"), "exec, status.token: holds no token"),
}


@pytest.mark.parametrize("printed, why", BAD.values(), ids=BAD)
def test_output_that_cannot_be_used_is_named_and_not_shown(printed: bytes, why: str) -> None:
    with pytest.raises(BadObject) as raised:
        execplugin.obtained(asked(), printed, START)
    assert why in str(raised.value)
    assert "abc" not in str(raised.value)


TOLD = {
    "the cluster, if it asks for it": (True, '"cluster":{"server":"https://kube.test"}'),
    "nothing of it, if it does not": (False, '"spec":{"interactive":false}'),
}


@pytest.mark.parametrize("wanted, told", TOLD.values(), ids=TOLD)
def test_the_plugin_gets_the_exec_info(wanted: bool, told: str) -> None:
    script = 'import os, sys; sys.exit(os.environ["NAMED"] + os.environ["KUBERNETES_EXEC_INFO"])'
    with pytest.raises(BadObject, match="ended with 1: here") as raised:
        obtained(asked(script, env=(EnvVar("NAMED", "here"),), provide_cluster_info=wanted))
    assert told in str(raised.value)


def test_what_the_program_prints_is_used_until_it_ends(tmp_path: Path) -> None:
    counter, clock = tmp_path / "calls", HandClock()
    end = (START + timedelta(seconds=100)).isoformat()
    script = (
        f"import json, pathlib; calls = pathlib.Path({str(counter)!r}); calls.open('a').write('x'); print(json.dumps("
        f"dict(apiVersion={V1!r}, kind='ExecCredential', "
        f"status=dict(token=calls.read_text(), expirationTimestamp={end!r}))))"
    )
    login = Login(execplugin.source(asked(script), clock), clock)

    async def check() -> list[str]:
        seen = []
        for clock.time in (0.0, 89.0, 91.0):
            seen.append((await login.identity()).headers[0][1])
        return seen

    assert run(check()) == ["Bearer x", "Bearer x", "Bearer xx"]


def test_a_program_that_is_not_there_comes_with_its_hint() -> None:
    plugin = Plugin(api_version=V1, command="no-such-program", install_hint="install it\nlike this")
    with pytest.raises(
        BadObject, match=r"exec: no-such-program cannot be started: No such file.*; install it\\nlike this"
    ):
        obtained(PluginCall(plugin, "config", {}))


def test_a_program_that_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execplugin, "PATIENCE", 0.05)
    with pytest.raises(BadObject, match="did not exit within"):
        obtained(asked("import signal; signal.pause()"))


def test_questions_need_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadObject, match="needs a terminal"):
        obtained(asked(interactive_mode="Always"))
