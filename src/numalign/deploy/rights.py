"""The rights of numalign's programs at the API server: RBAC rules, and a policy for what RBAC cannot express.

A lab grants them to its accounts, `objects` and `examples/rbac.yaml` to service accounts. Tests compare the tables with
the documentation and, in both directions, with the requests that the programs make.

All agents of a DaemonSet share one service account, so RBAC cannot limit an agent to the report of its own node. A
ValidatingAdmissionPolicy does: the API server adds the node of a pod to the identity of the pod's token."""

from collections.abc import Collection, Iterable
from typing import Any, Final, Literal

from msgspec import Struct, structs

from numalign.api.nrt import wire
from numalign.api.schedulerconfig import configuration

GROUP: Final = "rbac.authorization.k8s.io"
API_VERSION: Final = f"{GROUP}/v1"
KINDS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
LOOK: Final = ("list", "watch")
NOTE: Final = ("create", "patch")
REPORTS: Final = ("noderesourcetopologies",)
STORAGE: Final = ("storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments")
ROOM: Final = ("nodes", "pods", "namespaces", "services", "replicationcontrollers")
VOLUMES: Final = ("persistentvolumes", "persistentvolumeclaims")
LEASES: Final = "coordination.k8s.io"


class Right(Struct, frozen=True):
    group: str
    resources: tuple[str, ...]
    """With their subresource, as in `pods/status`."""
    verbs: tuple[str, ...]
    own: bool = False
    """Only for objects with the holder's own name, where each holder has an account."""
    namespace: str = ""
    """The namespace where it is needed; empty means all, or a resource without namespace."""
    names: tuple[str, ...] = ()
    """Only for objects of these names; empty means all."""
    option: str = ""
    """The setting that needs it; empty means always."""


class Holder(Struct, frozen=True):
    kind: Literal["User", "Group", "ServiceAccount"]
    name: str
    namespace: str = ""
    """Of a service account."""

    def subject(self) -> dict[str, str]:
        if self.kind == "ServiceAccount":
            return {"kind": self.kind, "name": self.name, "namespace": self.namespace}
        return {"apiGroup": GROUP, "kind": self.kind, "name": self.name}


PAGES: Final = "pages over TLS"
UNTAINT: Final = "--remove-startup-taint"
CONFIGZ: Final = "--configz"
ENFORCE: Final = "--direct-mode"
FIND: Final = "--find-devices"
CLUSTER: Final = (
    Right("", (*ROOM, *VOLUMES), LOOK),
    Right("apps", ("replicasets", "statefulsets"), LOOK),
    Right("storage.k8s.io", STORAGE, LOOK),
    Right("policy", ("poddisruptionbudgets",), LOOK),
    Right("resource.k8s.io", ("deviceclasses",), LOOK),
    Right(wire.GROUP, REPORTS, LOOK),
)
"""What scheduling decisions depend on."""
REVIEWS: Final = (
    Right("authentication.k8s.io", ("tokenreviews",), ("create",), option=PAGES),
    Right("authorization.k8s.io", ("subjectaccessreviews",), ("create",), option=PAGES),
)
KOORDINATOR: Final = "koordinatorAnnotations"
DEVICES: Final = (Right("scheduling.koordinator.sh", ("devices",), LOOK, option=KOORDINATOR),)
PROVISIONING: Final = "--provisioning-class"
PROVISIONED: Final = (
    Right("autoscaling.x-k8s.io", ("provisioningrequests",), LOOK, option=PROVISIONING),
    Right("autoscaling.x-k8s.io", ("provisioningrequests/status",), ("patch",), option=PROVISIONING),
    Right("", ("podtemplates",), LOOK, option=PROVISIONING),
)
SCHEDULER: Final = (
    *CLUSTER,
    Right("", ("pods",), ("get", "delete")),
    Right("", ("pods/binding",), ("create",)),
    Right("", ("pods/status", *VOLUMES), ("patch",)),
    Right("events.k8s.io", ("events",), NOTE),
    # RBAC cannot limit a creation to a name: the name is in the body of the request.
    Right(LEASES, ("leases",), ("create",), namespace="kube-system"),
    Right(LEASES, ("leases",), ("get", "update"), namespace="kube-system", names=(configuration.NAME,)),
    *REVIEWS,
    *PROVISIONED,
    *DEVICES,
)
BINDS: Final = "bind verb"
EVICTS: Final = "--preemption numalign"
EXTENDER: Final = (
    *CLUSTER,
    Right("", ("pods",), ("get",), option=BINDS),
    Right("", ("pods/binding",), ("create",), option=BINDS),
    # The nomination of a pod that was refused and fits now.
    Right("", ("pods/status",), ("patch",)),
    Right("", ("pods",), ("delete",), option=EVICTS),
    Right("events.k8s.io", ("events",), ("create",), option=EVICTS),
    *REVIEWS,
    *PROVISIONED,
    *DEVICES,
)
AGENT: Final = (
    Right("", ("nodes",), ("get",), own=True),
    Right("", ("pods",), ("list",)),
    Right("", ("nodes",), ("patch",), own=True, option=UNTAINT),
    # The capacity of devices that the kubelet does not know of.
    Right("", ("nodes/status",), ("patch",), own=True, option=FIND),
    # Only /configz: the right to nodes/proxy would include running commands in every pod of the node.
    Right("", ("nodes/configz",), ("get",), own=True, option=CONFIGZ),
    # Server-side apply also needs the right to create by name.
    Right(wire.GROUP, REPORTS, ("get", "create", "patch"), own=True),
    # Events of a Node, which has no namespace, are in this namespace.
    Right("events.k8s.io", ("events",), NOTE, namespace="default"),
    # Events of pods whose decision is not applied are in the namespaces of the pods.
    Right("events.k8s.io", ("events",), NOTE, option=ENFORCE),
)
COLLECTOR: Final = (
    Right("", ("nodes",), ("get", *LOOK)),
    Right(wire.GROUP, REPORTS, ("get", "list", "delete")),
)


OPERATED: Final = "numalign-system"
"""The namespace of the operator and its operands, unless another is given."""
OPERANDS: Final = ("numalign-agent", "numalign-scheduler")
CUSTOM: Final = "nodetopology.openshift.io"
ADMISSION_POLICIES: Final = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
APPLY: Final = ("get", "create", "patch")
"""To apply an object that may not exist yet, and to see first whose it is."""
POLICIES: Final = (f"{OPERANDS[0]}-own-report", f"{OPERANDS[0]}-decisions")
OPERATOR: Final = (
    Right(CUSTOM, ("numaresourcesoperators", "numaresourcesschedulers"), LOOK),
    Right(CUSTOM, ("numaresourcesoperators/status", "numaresourcesschedulers/status"), ("patch",)),
    Right("", ("nodes",), LOOK),
    # Those that wait for a scheduler whose name is not served any more.
    Right("", ("pods",), ("list",)),
    Right("", ("serviceaccounts", "configmaps", "services"), LOOK, namespace=OPERATED),
    Right("apps", ("daemonsets", "deployments"), LOOK, namespace=OPERATED),
    Right("policy", ("poddisruptionbudgets",), LOOK, namespace=OPERATED),
    Right("networking.k8s.io", ("networkpolicies",), LOOK, namespace=OPERATED),
    Right(GROUP, ("roles", "rolebindings", "clusterroles", "clusterrolebindings"), LOOK),
    Right("admissionregistration.k8s.io", ADMISSION_POLICIES, LOOK),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), LOOK),
    # What has a fixed name is written by this name; DaemonSets are named after their node groups.
    Right("", ("serviceaccounts",), APPLY, namespace=OPERATED, names=OPERANDS),
    Right("", ("serviceaccounts",), ("delete",), namespace=OPERATED, names=OPERANDS[:1]),
    Right("", ("configmaps", "services"), APPLY, namespace=OPERATED, names=OPERANDS[1:]),
    Right("apps", ("daemonsets",), (*APPLY, "delete"), namespace=OPERATED),
    Right("apps", ("deployments",), APPLY, namespace=OPERATED, names=OPERANDS[1:]),
    Right("policy", ("poddisruptionbudgets",), (*APPLY, "delete"), namespace=OPERATED, names=OPERANDS[1:]),
    Right("networking.k8s.io", ("networkpolicies",), APPLY, namespace=OPERATED, names=OPERANDS),
    Right("networking.k8s.io", ("networkpolicies",), ("delete",), namespace=OPERATED, names=OPERANDS[:1]),
    Right(GROUP, ("roles", "rolebindings"), APPLY, namespace=OPERATED, names=OPERANDS[1:]),
    Right(GROUP, ("roles", "rolebindings"), (*APPLY, "delete"), namespace="default", names=OPERANDS[:1]),
    Right(GROUP, ("clusterroles", "clusterrolebindings"), APPLY, names=OPERANDS),
    Right(GROUP, ("clusterroles", "clusterrolebindings"), ("delete",), names=OPERANDS[:1]),
    Right("admissionregistration.k8s.io", ADMISSION_POLICIES, (*APPLY, "delete"), names=POLICIES),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), APPLY, names=(f"{REPORTS[0]}.{wire.GROUP}",)),
    Right(wire.GROUP, REPORTS, ("list", "delete")),
    # About the custom resources, which have no namespace, and about the lease.
    Right("events.k8s.io", ("events",), NOTE, namespace="default"),
    Right("events.k8s.io", ("events",), ("create",), namespace=OPERATED),
    Right(LEASES, ("leases",), ("create",), namespace=OPERATED),
    Right(LEASES, ("leases",), ("get", "update"), namespace=OPERATED, names=("numalign-operator",)),
)


def in_namespace(rights: Iterable[Right], namespace: str) -> tuple[Right, ...]:
    """The operator's rights where it and its operands are in another namespace."""
    return tuple(
        structs.replace(right, namespace=namespace) if right.namespace == OPERATED else right for right in rights
    )


def needed(rights: Iterable[Right], options: Collection[str] = ()) -> tuple[Right, ...]:
    """The rights of a program with these options."""
    return tuple(right for right in rights if not right.option or right.option in options)


def by_lease(rights: Iterable[Right], namespace: str, name: str) -> tuple[Right, ...]:
    """The rights of a program that leads by this lease; an empty name: by none."""
    kept = (right for right in rights if name or right.group != LEASES)
    return tuple(_of_lease(right, namespace, name) if right.group == LEASES else right for right in kept)


def _of_lease(right: Right, namespace: str, name: str) -> Right:
    return structs.replace(right, namespace=namespace, names=(name,) if right.names else ())


FIX: Final = "--fix"
ROLE_KINDS: Final = ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
DOCTOR: Final = (
    Right("", ("nodes", "pods"), ("list",)),
    Right("apps", ("daemonsets", "deployments"), ("list",)),
    Right(wire.GROUP, REPORTS, ("list",)),
    Right("apiextensions.k8s.io", ("customresourcedefinitions",), ("get",), names=(f"{REPORTS[0]}.{wire.GROUP}",)),
    Right(GROUP, ROLE_KINDS, ("list",)),
    Right(LEASES, ("leases",), ("list",), namespace="kube-node-lease"),
    # Those that schedulers name: their leases, and the configurations that they mount.
    Right(LEASES, ("leases",), ("get",)),
    Right("", ("configmaps",), ("get",)),
    # Every user has this right by default.
    Right("authentication.k8s.io", ("selfsubjectreviews",), ("create",)),
    # The API server asks for all of nodes/proxy before it passes /configz on. Without it, kubelets that no report of
    # our agent describes are not judged.
    Right("", ("nodes/proxy",), ("get",), option="kubelets without our agent"),
    Right("", ("pods",), ("delete",), option=FIX),
    Right("", ("nodes",), ("get", "patch"), option=FIX),
    Right(wire.GROUP, REPORTS, ("delete",), option=FIX),
    # The API server lets a client grant only rights that the client has itself.
    Right(GROUP, ROLE_KINDS, ("create", "patch"), option=FIX),
)


def roles(holder: Holder, rights: Iterable[Right], own: str = "", *, name: str = "") -> list[dict[str, Any]]:
    """A role and its binding for all namespaces, and for each namespace of a limited right. `own` is the name of the
    holder's own objects; empty: not known, as for the agents of a DaemonSet. `name` is that of the roles; empty: that
    of the holder."""
    by_namespace: dict[str, list[dict[str, Any]]] = {}
    for right in rights:
        by_namespace.setdefault(right.namespace, []).append(_rule(right, own))
    return [
        each
        for namespace, rules in by_namespace.items()
        for each in _granted(holder, name or holder.name, namespace, rules)
    ]


def _rule(right: Right, own: str) -> dict[str, Any]:
    rule = {"apiGroups": [right.group], "resources": [*right.resources], "verbs": [*right.verbs]}
    names = [own] if right.own and own else [*right.names]
    return rule | ({"resourceNames": names} if names else {})


def _granted(holder: Holder, name: str, namespace: str, rules: list[dict[str, Any]]) -> list[dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    role = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": API_VERSION,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [holder.subject()],
    }
    return [role, binding]


ADMISSION: Final = "admissionregistration.k8s.io/v1"
POLICY: Final = "numalign-agent-own-report"
NODE_OF_TOKEN: Final = "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][?0].orValue('')"


def own_report_policy(agent: Holder, name: str = POLICY) -> list[dict[str, Any]]:
    """Lets the service account write a report, and a Node, only with the token of a pod on the node of that name."""
    user = f"system:serviceaccount:{agent.namespace}:{agent.name}"
    reports = {
        "apiGroups": [wire.GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": [*REPORTS],
    }
    # RBAC lets agents that remove a taint or offer devices change every Node.
    nodes = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": ["nodes", "nodes/status"],
    }
    policy = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [reports, nodes]},
        "matchConditions": [{"name": "agent", "expression": f"request.userInfo.username == '{user}'"}],
        "variables": [
            {"name": "node", "expression": NODE_OF_TOKEN},
            {"name": "report", "expression": "(object != null ? object : oldObject).metadata.name"},
        ],
        "validations": [
            {
                "expression": "variables.node != '' && variables.node == variables.report",
                "messageExpression": "'an agent on node ' + variables.node + ' may not write '"
                " + (request.resource.resource == 'nodes' ? '' : 'the report of ') + 'node ' + variables.report",
                "reason": "Forbidden",
            }
        ],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        {"apiVersion": ADMISSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding))
    ]


NAMESPACE: Final = "kube-system"
SCHEDULER_ACCOUNT: Final = Holder("ServiceAccount", "numalign-scheduler", NAMESPACE)
AGENT_ACCOUNT: Final = Holder("ServiceAccount", "numalign-agent", NAMESPACE)
COLLECTOR_ACCOUNT: Final = Holder("ServiceAccount", "numalign-gc", NAMESPACE)


def manifest() -> list[dict[str, Any]]:
    """The content of examples/rbac.yaml."""
    # The agents of a DaemonSet share an account, so the right to patch a Node would be for all Nodes.
    agent = tuple(right for right in AGENT if right.option not in (UNTAINT, ENFORCE, FIND))
    scheduler = needed(SCHEDULER, [PAGES])
    tables = {SCHEDULER_ACCOUNT: scheduler, AGENT_ACCOUNT: agent, COLLECTOR_ACCOUNT: COLLECTOR}
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": each.name, "namespace": each.namespace}}
        for each in tables
    ]
    granted = [each for holder, rights in tables.items() for each in roles(holder, rights)]
    return [*accounts, *granted, *own_report_policy(AGENT_ACCOUNT)]
