"""Kubeconfigs: what they mean, and the errors of invalid ones."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numalign.api.errors import BadObject
from numalign.kube.access import access, execplugin, kubeconfig
from numalign.kube.transport.auth import Identity
from numalign.kube.transport.dial import Proxy
from numalign.kube.transport.tls import Certificate
from tests.strategies import hostileyaml
from tests.unit.kube import certificates
from tests.unit.kube.clocks import HandClock, run

CA = b64encode(certificates.AUTHORITY.encode()).decode()
CERT = b64encode(certificates.CLIENT.encode()).decode()
KEY = b64encode(certificates.CLIENT_KEY.encode()).decode()
PLAIN = {"server": "https://kube.test:6443"}


def config(cluster: Any = PLAIN, user: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user or {}}],
    } | more


def written(folder: Path, document: Any, name: str = "config") -> str:
    path = folder / name
    path.write_bytes(document if isinstance(document, bytes) else msgspec.yaml.encode(document))
    return str(path)


def identity(folder: Path, user: Any) -> Identity:
    found = kubeconfig.access([written(folder, config(user=user))], environment={})
    return run(found.login.identity())


def header(value: str) -> Identity:
    return Identity((("Authorization", value),))


USERS: dict[str, tuple[dict[str, Any], Identity]] = {
    "nobody": ({}, Identity()),
    "a token": ({"token": "abc"}, header("Bearer abc")),
    "a token file": ({"tokenFile": "token", "token": "old"}, header("Bearer from-file")),
    "a password": ({"username": "me", "password": "pw"}, header("Basic bWU6cHc=")),
    "a certificate": (
        {"client-certificate-data": CERT, "client-key-data": KEY},
        Identity((), Certificate(certificates.CLIENT.encode(), certificates.CLIENT_KEY.encode())),
    ),
    "certificate files": (
        {"client-certificate": "client.crt", "client-key": "client.key"},
        Identity((), Certificate(certificates.CLIENT.encode(), certificates.CLIENT_KEY.encode())),
    ),
    "somebody else": (
        {"as": "other", "as-groups": ["a", "b"]},
        Identity((("Impersonate-User", "other"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b"))),
    ),
    "somebody else with more to tell": (
        {"as": "other", "as-user-extra": {"acme.test/team": ["a", "b"]}},
        Identity(
            (
                ("Impersonate-User", "other"),
                ("Impersonate-Extra-acme.test%2Fteam", "a"),
                ("Impersonate-Extra-acme.test%2Fteam", "b"),
            )
        ),
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("from-file\n")
    (tmp_path / "client.crt").write_text(certificates.CLIENT)
    (tmp_path / "client.key").write_text(certificates.CLIENT_KEY)
    (tmp_path / "ca.crt").write_text(certificates.AUTHORITY)
    return tmp_path


@pytest.mark.parametrize("user, expected", USERS.values(), ids=USERS)
def test_who_we_are(folder: Path, user: dict[str, Any], expected: Identity) -> None:
    assert identity(folder, user) == expected


def test_where_the_server_is(folder: Path) -> None:
    cluster = PLAIN | {"tls-server-name": "inner", "proxy-url": "http://p:1", "certificate-authority": "ca.crt"}
    found = kubeconfig.access([written(folder, config(cluster))], environment={})
    assert (found.server.authority, found.server.tls_name, found.server.proxy) == (
        "kube.test:6443",
        "inner",
        Proxy("p", 1),
    )
    assert found.namespace == "team"
    assert found.contexts is not None
    assert not found.contexts.trust.insecure


def test_verification_is_off_only_where_it_is_asked_for(folder: Path) -> None:
    insecure = config(PLAIN | {"insecure-skip-tls-verify": True})
    found = kubeconfig.access([written(folder, insecure)], environment={})
    assert found.contexts is not None
    assert found.contexts.trust.insecure


def test_of_several_files_the_first_that_has_an_entry_wins(folder: Path) -> None:
    first = written(folder, {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}]}, "first")
    second = written(folder, config({"server": "https://second"}), "second")
    environment = {"KUBECONFIG": f"{first}:{folder}/missing:{second}"}
    assert kubeconfig.access(environment=environment).server.host == "first"


def test_a_context_can_be_named(folder: Path) -> None:
    contexts = [{"name": "there", "context": {"cluster": "c"}}]
    found = kubeconfig.access([written(folder, config(contexts=contexts))], "there", environment={})
    assert found.namespace == "default"


def test_a_token_file_is_read_again_every_minute(folder: Path) -> None:
    clock = HandClock()
    login = kubeconfig.access([written(folder, config(user={"tokenFile": "token"}))], clock=clock, environment={}).login

    async def check() -> list[str]:
        seen = [(await login.identity()).headers[0][1]]
        (folder / "token").write_text("rotated")
        for later in (59.0, 61.0):
            clock.time = later
            seen.append((await login.identity()).headers[0][1])
        return seen

    assert run(check()) == ["Bearer from-file", "Bearer from-file", "Bearer rotated"]


BAD: dict[str, tuple[Any, str]] = {
    "not YAML": (b"a: [", "config, line 2, column 1: is not YAML"),
    "binary": (b"\xff\xfe\x00", "config: is not YAML"),
    "a list": ([1], "config: holds no object with clusters, users and contexts"),
    "empty": (b"", "config: holds no object"),
    "a cluster that is text": (config("x"), "config, clusters[0].cluster: expected an object"),
    "no current context": (config(**{"current-context": ""}), "config, current-context: is not set"),
    "an unknown context": (
        config(contexts=[]),
        'config, current-context: names "here", and contexts has no such entry',
    ),
    "an unknown cluster": (config(clusters=[]), 'config, contexts[here]: names "c", and clusters has no such entry'),
    "an unknown user": (config(users=[]), 'config, contexts[here]: names "u", and users has no such entry'),
    "no server": (config({}), 'config, clusters[c].server: "" is not a URL'),
    "a strange proxy": (config(PLAIN | {"proxy-url": "ftp://p"}), "config, clusters[c].proxy-url: is not a URL"),
    "authority not base64": (
        config(PLAIN | {"certificate-authority-data": "!"}),
        "config, clusters[c].certificate-authority-data: is not base64",
    ),
    "authority no certificate": (
        config(PLAIN | {"certificate-authority-data": "eA=="}),
        "config, certificate-authority-data: holds no certificate in PEM",
    ),
    "authority missing": (
        config(PLAIN | {"certificate-authority": "nowhere"}),
        "nowhere: No such file",
    ),
    "authority and no verification": (
        config(PLAIN | {"certificate-authority-data": CA, "insecure-skip-tls-verify": True}),
        "clusters[c].insecure-skip-tls-verify: contradicts the certificate authority",
    ),
    "token file missing": (config(user={"tokenFile": "nowhere"}), "users[u].tokenFile: "),
    "an empty token": (config(user={"token": " "}), "users[u].token: holds no token"),
    "a token of two lines": (config(user={"token": "a\nb"}), "users[u].token: holds no token"),
    "a certificate without key": (config(user={"client-certificate-data": CERT}), "users[u].client-key: is missing"),
    "a key without certificate": (config(user={"client-key-data": KEY}), "users[u].client-certificate: is missing"),
    "a legacy provider": (config(user={"auth-provider": {"name": "gcp"}}), "users[u].auth-provider: is not supported"),
    "extra fields of nobody": (
        config(user={"as-user-extra": {"a": ["b"]}}),
        "users[u].as: is missing beside",
    ),
    "a plugin of an old version": (
        config(user={"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}),
        'exec: x wants apiVersion "client.authentication.k8s.io/v1alpha1"',
    ),
}


@pytest.mark.parametrize("document, why", BAD.values(), ids=BAD)
def test_what_is_wrong_is_named_with_file_and_field(folder: Path, document: Any, why: str) -> None:
    file = written(folder, document)
    with pytest.raises(BadObject) as raised:
        kubeconfig.access([file], environment={})
    assert why in str(raised.value)
    assert f"Kubeconfig {folder}/config" in str(raised.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BadObject, match="Kubeconfig nowhere: nowhere cannot be read: No such file"):
        kubeconfig.access(["nowhere"], environment={})


SECRET = "s3cr3t"


@pytest.mark.parametrize("user", [{"token": SECRET}, {"username": "u", "password": SECRET}], ids=["token", "password"])
def test_no_secret_is_shown(folder: Path, user: dict[str, Any]) -> None:
    found = kubeconfig.access([written(folder, config(user=user))], environment={})
    shown = repr((found, run(found.login.identity()), found.login))
    assert SECRET not in shown
    assert b64encode(f"u:{SECRET}".encode()).decode() not in shown


SECRETIVE = {
    "user": kubeconfig.User(token=SECRET, password=SECRET, client_key_data=SECRET),
    "cluster": kubeconfig.Cluster(proxy_url=f"http://u:{SECRET}@proxy"),
    "plugin": execplugin.Plugin(env=(execplugin.EnvVar("KEY", SECRET),)),
    "credential": execplugin.Credential(status=execplugin.CredentialStatus(token=SECRET)),
}


@pytest.mark.parametrize("thing", SECRETIVE.values(), ids=SECRETIVE)
def test_no_part_on_the_way_shows_a_secret(thing: object) -> None:
    assert SECRET not in repr(thing)


def test_a_file_that_is_no_yaml_shows_none_of_its_lines(folder: Path) -> None:
    with pytest.raises(BadObject) as raised:
        kubeconfig.access([written(folder, f"token: {SECRET}: [".encode())], environment={})
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize("text", [text for text, _ in hostileyaml.ATTACKS.values()], ids=hostileyaml.ATTACKS)
def test_hostile_yaml_is_refused_and_not_quoted(folder: Path, text: str) -> None:
    with pytest.raises(BadObject, match="is not YAML that kubectl reads") as raised:
        kubeconfig.access([written(folder, text.encode())], environment={})
    assert (raised.value.kind, "python/tuple" in str(raised.value)) == ("Kubeconfig", False)


RISKS = {
    "no verification": ({"server": "https://10.0.0.1", "insecure-skip-tls-verify": True}, {}, "does not verify"),
    "a token over HTTP": ({"server": "http://10.0.0.1"}, {"token": SECRET}, "without TLS"),
    "a password over HTTP": ({"server": "http://10.0.0.1"}, {"username": "u", "password": SECRET}, "without TLS"),
    "a token over HTTP on this machine": ({"server": "http://127.0.0.1:1"}, {"token": SECRET}, ""),
    "nothing secret over HTTP": ({"server": "http://10.0.0.1"}, {}, ""),
    "verified": ({"server": "https://10.0.0.1"}, {"token": SECRET}, ""),
}


@pytest.mark.parametrize("cluster, user, warning", RISKS.values(), ids=RISKS)
def test_what_others_on_the_way_could_read_or_forge_is_warned_of(
    folder: Path, cluster: dict[str, Any], user: dict[str, Any], warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    document = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    kubeconfig.access([written(folder, document)], environment={})
    assert [warning in each.getMessage() for each in caplog.records] == [True] * bool(warning)
    assert SECRET not in caplog.text


POD = {access.HOST: "10.0.0.1", access.PORT: "443"}


def test_in_a_pod_its_service_account_is_taken(folder: Path) -> None:
    (folder / "namespace").write_text("kube-system")
    clock = HandClock()
    found = access.in_cluster(POD, str(folder), clock)

    async def check() -> list[str]:
        used = await found.login.identity()
        (folder / "token").write_text("rotated")
        found.login.refuse(used)
        return [used.headers[0][1], (await found.login.identity()).headers[0][1]]

    assert run(check()) == ["Bearer from-file", "Bearer rotated"]
    assert (found.namespace, found.server.authority) == ("kube-system", "10.0.0.1:443")


def test_outside_a_pod_the_error_says_so(folder: Path) -> None:
    with pytest.raises(BadObject, match="in-cluster, environment: KUBERNETES_SERVICE_HOST"):
        access.in_cluster({}, str(folder))


def test_a_pod_without_a_token_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadObject, match=r"in-cluster, token: .*token cannot be read"):
        access.in_cluster(POD, str(tmp_path))


def test_a_named_file_goes_before_the_pod(folder: Path) -> None:
    assert access.default(written(folder, config()), environment=POD).server.host == "kube.test"


def test_the_context_that_is_used_has_a_name_except_in_a_pod(folder: Path) -> None:
    file = written(folder, config())
    assert access.context_name(file) == "here"
    assert access.context_name(file, "there") == "there"
    assert access.context_name(environment=POD | {kubeconfig.VARIABLE: file}) == "here"
    assert access.context_name(environment=POD) == ""
