"""What can be set in an installation: the types and defaults of a values file.

`values` reads files into them, `render` makes objects of them, and the operator fills them from its own objects.
`charts/numalign/values.yaml` has the same defaults, and `values.schema.json` is made from these structs. Pieces of
Kubernetes objects (resources, tolerations, affinity) are passed on as they are."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

LINUX: Final = {"kubernetes.io/os": "linux"}

Fragment = dict[str, Any]
LabelKey = Annotated[
    str,
    Meta(
        pattern=r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        max_length=317,
    ),
]
LabelValue = Annotated[str, Meta(pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$", max_length=63)]
AMOUNTS: Final = {
    "type": "object",
    "additionalProperties": {
        "anyOf": [
            {"type": "number"},
            {"type": "string", "pattern": r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"},
        ]
    },
}
Resources = Annotated[Fragment, Meta(extra_json_schema={"patternProperties": {"^(requests|limits)$": AMOUNTS}})]
"""Of a container; `values` reads the amounts."""
Labels = dict[LabelKey, LabelValue]
Annotations = dict[LabelKey, str]
Port = Annotated[int, Meta(ge=1, le=65535)]
Seconds = Annotated[int, Meta(ge=1, le=86400)]
Delay = Annotated[int, Meta(ge=0, le=86400)]
Count = Annotated[int, Meta(ge=1, le=1000)]
Label = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
OptionalLabel = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$", max_length=63)]
GroupName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=20)]
Subdomain = Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)]
SchedulerName = Annotated[str, Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=63)]
Folder = Annotated[str, Meta(pattern=r"^(/[^:]*[^:/])?$", max_length=1000)]
"""An absolute path without a slash at its end, or empty."""
HostFile = Annotated[str, Meta(pattern=r"^/[^:]*[^:/]$", max_length=1000)]
Duration = Annotated[str, Meta(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
OptionalDuration = Annotated[str, Meta(pattern=r"^(([0-9]+(\.[0-9]+)?(ms|s|m|h))+)?$")]
WORD: Final = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
REPOSITORY: Final = rf"{WORD}(?:/{WORD})*"
TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
"""Parts of an image reference, as container runtimes read them."""
HOST: Final = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9.]*[A-Za-z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]{1,5})?"
Registry = Annotated[str, Meta(pattern=rf"^({HOST}(?:/{REPOSITORY})?)?$", max_length=255)]
"""A host and, for mirrors, a path; or empty."""
Repository = Annotated[str, Meta(pattern=rf"^{REPOSITORY}$", max_length=255)]
OptionalTag = Annotated[str, Meta(pattern=rf"^({TAG})?$")]
Digest = Annotated[str, Meta(pattern=r"^(sha256:[0-9a-f]{64})?$")]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]
DnsPolicy = Literal["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]
LogFormat = Literal["text", "json"]
Preset = Literal["kubeadm", "k3s", "rke2", "k0s", "microk8s", "eks", "bottlerocket", "gke", "aks", "openshift", "talos"]
ReportMode = Literal["own", "rte", "nfd"]
ReportVersion = Literal["v1alpha1", "v1alpha2"]


class Part(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of everything that a values file can set."""


class Image(Part, frozen=True, kw_only=True):
    registry: Registry = "localhost"
    """`global.imageRegistry` replaces it."""
    repository: Repository
    tag: OptionalTag = ""
    """Empty: `global.imageTag`, else the version of the program."""
    digest: Digest = ""
    """Stands instead of the tag."""
    pull_policy: PullPolicy = "IfNotPresent"
    pull_secrets: list[str] = []
    """With those of `global.imagePullSecrets`."""


class Global(Struct, frozen=True, kw_only=True, rename="camel"):
    """Shared with other charts where this one is a part of a larger one, so it may have more fields."""

    image_registry: Registry = ""
    image_tag: OptionalTag = ""
    image_pull_secrets: list[str] = []


class Crds(Part, frozen=True, kw_only=True):
    install: bool = True
    keep: bool = True
    """Not deleted with the release: with the definition all reports would go."""


class Namespace(Part, frozen=True, kw_only=True):
    create: bool = False
    """Helm has `--create-namespace`, which cannot set labels."""
    pod_security: Literal["", "privileged", "baseline", "restricted"] = "privileged"
    """The agent mounts folders of the host, which `baseline` forbids."""
    labels: Labels = {}


class Rbac(Part, frozen=True, kw_only=True):
    create: bool = True


class ServiceAccount(Part, frozen=True, kw_only=True):
    create: bool = True
    name: Subdomain = ""
    """Empty: the name of the component."""
    annotations: Annotations = {}


class Probe(Part, frozen=True, kw_only=True):
    initial_delay_seconds: Delay = 0
    period_seconds: Seconds = 10
    timeout_seconds: Seconds = 5
    failure_threshold: Count = 3


class Pdb(Part, frozen=True, kw_only=True):
    enabled: bool = True
    """Only with more than one replica: it would keep a node from being drained otherwise."""
    max_unavailable: Count = 1


def _pod_security(user: int) -> Fragment:
    base: Fragment = {"runAsUser": user, "runAsGroup": user, "seccompProfile": {"type": "RuntimeDefault"}}
    return base | ({"runAsNonRoot": True} if user else {})


def _container_security() -> Fragment:
    return {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}


class Pods(Part, frozen=True, kw_only=True):
    """What the pods of every component have."""

    verbosity: Annotated[int, Meta(ge=0, le=10)] = 2
    log_format: LogFormat = "text"
    node_selector: Labels = msgspec.field(default_factory=lambda: dict(LINUX))
    affinity: Fragment = {}
    host_network: bool = False
    dns_policy: DnsPolicy = ""
    """Empty: ClusterFirstWithHostNet in the network of the host, else that of Kubernetes."""
    security_context: Fragment = msgspec.field(default_factory=_container_security)
    service_account: ServiceAccount = ServiceAccount()
    annotations: Annotations = {}
    """Of the workload."""
    pod_annotations: Annotations = {}
    pod_labels: Labels = {}
    termination_grace_period_seconds: Delay = 30
    extra_args: list[str] = []
    extra_env: list[Fragment] = []
    extra_volumes: list[Fragment] = []
    extra_volume_mounts: list[Fragment] = []
    init_containers: list[Fragment] = []


class CertManager(Part, frozen=True, kw_only=True):
    enabled: bool = False
    issuer_ref: Fragment = {}
    """`name`, `kind` and `group` of an issuer of cert-manager."""


class Tls(Part, frozen=True, kw_only=True):
    """The certificate of the scheduler's pages. Without a setting the scheduler signs one itself."""

    secret_name: Subdomain = ""
    """A Secret of type kubernetes.io/tls."""
    cert_manager: CertManager = CertManager()


class LeaderElection(Part, frozen=True, kw_only=True):
    lease_duration: Duration = "15s"
    renew_deadline: Duration = "10s"
    retry_period: Duration = "2s"
    resource_name: Subdomain = ""
    """Empty: the name of the Deployment; in mode `only` the lease of kube-scheduler."""
    resource_namespace: OptionalLabel = ""
    """Empty: the namespace of the release; in mode `only` kube-system."""


class ScoredResource(Part, frozen=True, kw_only=True):
    name: str
    weight: Annotated[int, Meta(ge=1, le=100)] = 1


class ScoringStrategy(Part, frozen=True, kw_only=True):
    type: Literal[
        "", "LeastAllocated", "MostAllocated", "BalancedAllocation", "LeastNUMANodes", "LeastFragmentation"
    ] = ""
    resources: list[ScoredResource] = []


class PluginCache(Part, frozen=True, kw_only=True):
    """The cache of the Go plugin, for flavour `reference`."""

    resync_period_seconds: Delay = 0
    resync_method: Literal["", "Autodetect", "All", "OnlyExclusiveResources"] = ""
    foreign_pods_detect: Literal["", "None", "All", "OnlyExclusiveResources"] = ""
    informer_mode: Literal["", "Shared", "Dedicated"] = ""


class Extender(Part, frozen=True, kw_only=True):
    """For mode `extender`. kube-scheduler and the extender know each other by certificates."""

    port: Port = 8443
    client_ca_secret: Subdomain = ""
    """A Secret whose `ca.crt` verifies the client certificate of kube-scheduler."""
    cluster_ip: Annotated[str, Meta(pattern=r"^[0-9a-f.:]*$")] = ""
    """A fixed address of the Service: kube-scheduler asks by address, because it does not use the cluster's DNS."""
    bind: bool = True
    """Whether the extender binds the pods that it is asked about, which needs the right to do so."""
    hold: Annotated[int, Meta(ge=1, le=600)] = 5
    preemption: Literal["none", "numalign", "kube-scheduler"] = "none"
    """Who evicts pods to make room in a zone; `numalign` needs the right to delete pods."""


class Recording(Part, frozen=True, kw_only=True):
    """What the scheduler sees and decides, in a folder that lasts as long as the pod. Not in mode `extender`."""

    enabled: bool = False
    size: Annotated[str, Meta(pattern=r"^[1-9][0-9]*[MG]i$")] = "256Mi"
    age: Annotated[str, Meta(pattern=r"^[1-9][0-9]*[mh]$")] = "24h"


class Service(Part, frozen=True, kw_only=True):
    enabled: bool = True
    annotations: Annotations = {}


class Scheduler(Pods, frozen=True, kw_only=True):
    enabled: bool = True
    mode: Literal["secondary", "only", "extender"] = "secondary"
    """`secondary`: beside kube-scheduler, for pods that name it; `only`: for all pods, by kube-scheduler's lease;
    `extender`: schedules nothing, and answers a kube-scheduler that asks about zones."""
    name: SchedulerName = "numalign"
    """What pods write into spec.schedulerName."""
    replicas: Annotated[int, Meta(ge=0, le=10)] = 2
    """At most one counts in mode `extender`: two would not know of each other's charges."""
    config: Fragment = {}
    """Fields of a KubeSchedulerConfiguration. Each replaces the field that the settings below make; those of
    leaderElection one by one."""
    flavour: Literal["exact", "reference"] = "exact"
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    nodes_without_report: Literal["wait", "allow", "refuse"] = "wait"
    first_report_grace_period: OptionalDuration = ""
    delete_rejected_pods: bool = False
    preemption_mode: Literal["", "Enabled", "Disabled"] = ""
    cache: PluginCache = PluginCache()
    leader_election: LeaderElection = LeaderElection()
    extender: Extender = Extender()
    expander_port: Annotated[int, Meta(ge=0, le=65535)] = 0
    """The port of cluster-autoscaler's gRPC expander, which needs `tls`; 0: none."""
    provisioning_class: Annotated[str, Meta(pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", max_length=253)] = ""
    """The class of the ProvisioningRequests that are answered; empty: none."""
    recording: Recording = Recording()
    direct_mode_policy: bool = False
    """Wrong annotations for direct mode are refused when a pod is created, and only the scheduler writes decisions;
    Kubernetes 1.32 and newer."""
    bind_address: str = "0.0.0.0"
    port: Port = 10259
    tls: Tls = Tls()
    service: Service = Service()
    image: Image = Image(repository="numalign/scheduler")
    resources: Resources = msgspec.field(default_factory=lambda: {"requests": {"cpu": "100m", "memory": "256Mi"}})
    tolerations: list[Fragment] = msgspec.field(
        default_factory=lambda: [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
    )
    topology_spread_constraints: list[Fragment] = []
    """Empty: over hosts where possible, with more than one replica."""
    pdb: Pdb = Pdb()
    priority_class_name: str = "system-cluster-critical"
    pod_security_context: Fragment = msgspec.field(default_factory=lambda: _pod_security(65532))
    update_strategy: Fragment = {}
    liveness_probe: Probe = Probe(initial_delay_seconds=10)
    readiness_probe: Probe = Probe()


class Configz(Part, frozen=True, kw_only=True):
    enabled: bool = False
    """Read the kubelet's configuration from its server. Some presets need it and turn it on."""
    certificate_authority: Folder = ""
    """A file of the host. Empty: that of the preset, else pki/kubelet.crt below the kubelet's folder."""


class HostPath(Part, frozen=True, kw_only=True):
    path: HostFile
    type: Literal["Directory", "File", "DirectoryOrCreate"] = "Directory"


class NodeGroup(Part, frozen=True, kw_only=True):
    """Nodes with settings of their own. What is not set is as in `agent`; the node selector is added to that one."""

    name: GroupName
    node_selector: Labels = {}
    tolerations: list[Fragment] | UnsetType = UNSET
    affinity: Fragment | UnsetType = UNSET
    preset: Preset | UnsetType = UNSET
    kubelet_dir: Folder | UnsetType = UNSET
    kubelet_config: Folder | UnsetType = UNSET
    pod_resources_socket: Folder | UnsetType = UNSET
    host_paths: list[HostPath] | UnsetType = UNSET
    configz: Configz | UnsetType = UNSET
    mode: ReportMode | UnsetType = UNSET
    api_version: ReportVersion | UnsetType = UNSET
    period: Annotated[int, Meta(ge=1, le=300)] | UnsetType = UNSET
    exclude: Fragment | UnsetType = UNSET
    remove_startup_taint: bool | UnsetType = UNSET
    direct_mode: bool | UnsetType = UNSET
    resources: Resources | UnsetType = UNSET
    extra_args: list[str] | UnsetType = UNSET
    pod_annotations: Annotations | UnsetType = UNSET
    pod_labels: Labels | UnsetType = UNSET


class Agent(Pods, frozen=True, kw_only=True):
    enabled: bool = True
    node_groups: list[NodeGroup] = []
    """A DaemonSet each; empty: one DaemonSet for all nodes."""
    preset: Preset = "kubeadm"
    """Where the kubelet of a distribution has its files."""
    kubelet_dir: Folder = ""
    """Empty, as the next ones: that of the preset."""
    kubelet_config: Folder = ""
    pod_resources_socket: Folder = ""
    host_paths: list[HostPath] = []
    """More files and folders of the host that the kubelet's command line names."""
    configz: Configz = Configz()
    mode: ReportMode = "own"
    api_version: ReportVersion = "v1alpha2"
    period: Annotated[int, Meta(ge=1, le=300)] = 60
    exclude: Fragment = {}
    """What the modes rte and nfd leave out, in the form of those programs."""
    remove_startup_taint: bool = False
    direct_mode: bool = False
    """Decisions of direct mode are enforced, where the kubelet's managers are off and the runtime has NRI."""
    nri_socket: HostFile = "/var/run/nri/nri.sock"
    decision_policy: bool = True
    """With direct mode, only the scheduler may write decisions; Kubernetes 1.32 and newer."""
    own_report_policy: bool = True
    """An agent may write the report of its own node alone; Kubernetes 1.32 and newer."""
    bind_address: str = "0.0.0.0"
    port: Port = 10261
    image: Image = Image(repository="numalign/agent")
    resources: Resources = msgspec.field(
        default_factory=lambda: {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    )
    tolerations: list[Fragment] = msgspec.field(default_factory=lambda: [{"operator": "Exists"}])
    priority_class_name: str = "system-node-critical"
    pod_security_context: Fragment = msgspec.field(default_factory=lambda: _pod_security(0))
    update_strategy: Fragment = msgspec.field(
        default_factory=lambda: {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}}
    )
    liveness_probe: Probe = Probe(initial_delay_seconds=10)
    readiness_probe: Probe = Probe()


class Gc(Pods, frozen=True, kw_only=True):
    """Deletes the reports of deleted nodes. Reports of numalign's agent go with their Node, so others need it."""

    enabled: bool = False
    interval: Seconds = 600
    grace: Delay = 300
    bind_address: str = "0.0.0.0"
    port: Port = 10262
    image: Image = Image(repository="numalign/agent")
    resources: Resources = msgspec.field(
        default_factory=lambda: {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "128Mi"}}
    )
    tolerations: list[Fragment] = []
    priority_class_name: str = ""
    pod_security_context: Fragment = msgspec.field(default_factory=lambda: _pod_security(65532))
    liveness_probe: Probe = Probe(initial_delay_seconds=10)


class Operator(Part, frozen=True, kw_only=True):
    """Runs agents and scheduler as NUMAResourcesOperator and NUMAResourcesScheduler objects say, instead of this
    installation."""

    enabled: bool = False
    image: Image = Image(repository="numalign/agent")
    values: Fragment = {}
    """Values for agents and scheduler, for what the custom resources do not say."""
    image_policy: Literal["any", "digest", "trusted", "own"] = "any"
    trusted_digests: list[Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$")]] = []
    verbosity: Annotated[int, Meta(ge=0, le=10)] = 2
    log_format: LogFormat = "text"


class NetworkPolicy(Part, frozen=True, kw_only=True):
    enabled: bool = False
    api_server_ports: Annotated[list[Port], Meta(min_length=1)] = msgspec.field(default_factory=lambda: [443, 6443])
    kubelet_port: Port = 10250
    """For agents with configz."""
    dns: bool = True
    ingress_from: list[Fragment] = []
    """Who may read metrics: peers of a NetworkPolicy; empty: everybody."""


class Monitor(Part, frozen=True, kw_only=True):
    """Rendered where the cluster has the API monitoring.coreos.com/v1."""

    enabled: bool = False
    labels: Labels = {}
    interval: OptionalDuration = ""
    scrape_timeout: OptionalDuration = ""
    relabelings: list[Fragment] = []
    metric_relabelings: list[Fragment] = []


class ServiceMonitor(Monitor, frozen=True, kw_only=True):
    """For the scheduler. Prometheus must be authorized to `get` the URL /metrics."""

    bearer_token_file: str = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    tls_config: Fragment = msgspec.field(default_factory=lambda: {"insecureSkipVerify": True})
    """The scheduler's own certificate cannot be verified; with `scheduler.tls`, name its authority here."""


class PrometheusRule(Part, frozen=True, kw_only=True):
    enabled: bool = False
    labels: Labels = {}
    additional_rules: list[Fragment] = []


class GrafanaDashboard(Part, frozen=True, kw_only=True):
    """A ConfigMap with a dashboard, for the sidecar of Grafana's chart, which finds it by a label."""

    enabled: bool = False
    labels: Labels = msgspec.field(default_factory=lambda: {"grafana_dashboard": "1"})
    annotations: Annotations = {}


class CriticalPodsQuota(Part, frozen=True, kw_only=True):
    """Clusters may allow the classes system-cluster-critical and system-node-critical only where a quota names them;
    GKE does."""

    enabled: bool = False
    pods: Annotated[int, Meta(ge=1, le=100000)] = 10000


class Openshift(Part, frozen=True, kw_only=True):
    """Rendered where the cluster has the API security.openshift.io/v1."""

    scc: bool = True
    se_linux_type: str = "container_device_plugin_t"


class Values(Part, frozen=True, kw_only=True):
    name_override: OptionalLabel = ""
    fullname_override: OptionalLabel = ""
    namespace_override: OptionalLabel = ""
    common_labels: Labels = {}
    common_annotations: Annotations = {}
    global_: Global = msgspec.field(default=Global(), name="global")
    crds: Crds = Crds()
    namespace: Namespace = Namespace()
    rbac: Rbac = Rbac()
    scheduler: Scheduler = msgspec.field(default_factory=Scheduler)
    agent: Agent = msgspec.field(default_factory=Agent)
    gc: Gc = msgspec.field(default_factory=Gc)
    operator: Operator = Operator()
    network_policy: NetworkPolicy = NetworkPolicy()
    pod_monitor: Monitor = Monitor()
    service_monitor: ServiceMonitor = msgspec.field(default_factory=ServiceMonitor)
    prometheus_rule: PrometheusRule = PrometheusRule()
    grafana_dashboard: GrafanaDashboard = msgspec.field(default_factory=GrafanaDashboard)
    critical_pods_quota: CriticalPodsQuota = CriticalPodsQuota()
    openshift: Openshift = Openshift()


def groups(agent: Agent) -> list[Agent]:
    """The settings of each DaemonSet, in the order of `node_groups`."""
    return [_for_group(agent, group) for group in agent.node_groups] or [agent]


def _for_group(agent: Agent, group: NodeGroup) -> Agent:
    own = {name: value for name, value in structs.asdict(group).items() if name != "name" and value is not UNSET}
    return structs.replace(agent, **(own | {"node_selector": agent.node_selector | group.node_selector}))
