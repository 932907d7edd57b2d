"""What every namespace is born with: the `default` service account and the certificate of the cluster's authority."""

from collections.abc import Iterable, Sequence
from typing import Final

from numalign.simulator.apiserver.storage.resources import CONFIGMAPS, NAMESPACES, SERVICEACCOUNTS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework.actions import Action, Create, Update
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

DEFAULT: Final = "default"
ROOT_CA: Final = "kube-root-ca.crt"
DESCRIPTION: Final = {
    "kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using "
    "internal endpoints such as the internal service IP or kubernetes.default.svc. "
    "No other usage is guaranteed across distributions of Kubernetes clusters."
}


class ServiceAccounts:
    """Keys are namespaces: (namespace, "")."""

    name = "service-account-controller"

    def __init__(self, certificate: str = "") -> None:
        self._certificate = certificate

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        desk.views.watch(NAMESPACES, lambda change: desk.note((change.key[1], "")))
        desk.views.watch(SERVICEACCOUNTS, self._changed)
        desk.views.watch(CONFIGMAPS, self._changed)

    def _changed(self, change: Change) -> None:
        if change.key[1] in (DEFAULT, ROOT_CA) and change.kind != "ADDED":
            self._desk.note((change.key[0], ""))

    def look(self, key: Key) -> Iterable[Action]:
        views = self._desk.views
        namespace = views[NAMESPACES].get(("", key[0]))
        if namespace is None:
            return []
        account = views[SERVICEACCOUNTS].get((key[0], DEFAULT))
        return ensure_default_account(namespace, account, views[CONFIGMAPS].get((key[0], ROOT_CA)), self._certificate)


def ensure_default_account(
    namespace: Tree, account: Tree | None, bundle: Tree | None, certificate: str
) -> Sequence[Action]:
    if namespace["metadata"].get("deletionTimestamp"):
        return []
    home = namespace["metadata"]["name"]
    actions: list[Action] = []
    if account is None:
        metadata = {"name": DEFAULT, "namespace": home}
        actions.append(Create(SERVICEACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
    data = {"ca.crt": certificate}
    if bundle is None:
        metadata = {"name": ROOT_CA, "namespace": home, "annotations": DESCRIPTION}
        tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        actions.append(Create(CONFIGMAPS, tree))
    elif bundle.get("data") != data:
        actions.append(Update(CONFIGMAPS, bundle | {"data": data}))
    return actions
