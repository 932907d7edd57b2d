"""kubectl looks at an embedded cluster: every way to ask that people use, and what they see."""

from __future__ import annotations

import json

import pytest

from tests.embedded.clusters import Up
from tests.embedded.kubectl import Kubectl, Like

DEPLOYED = "create deployment web --image=nginx:1.29 --replicas=2"


@pytest.fixture(scope="module")
def shown(anywhere: Kubectl, embedded: Up) -> Kubectl:
    """A namespace with a deployment that runs."""
    kubectl = anywhere._replace(namespace=embedded.namespace("shown"))
    kubectl.said(DEPLOYED)
    kubectl.said("rollout status deployment/web --timeout=170s")
    return kubectl


GETTING = {
    "pods": (
        "get pods",
        """NAME      READY  STATUS   RESTARTS  AGE
           web-...   1/1    Running  0         ...s
           web-...   1/1    Running  0         ...s""",
    ),
    "wide": (
        "get pods -o wide",
        """NAME      READY  STATUS   RESTARTS  AGE    IP      NODE      NOMINATED NODE  READINESS GATES
           web-...   1/1    Running  0         ...s   10...   node-...  <none>          <none>
           web-...   1/1    Running  0         ...s   10...   node-...  <none>          <none>""",
    ),
    "all": (
        "get all",
        """NAME          READY  STATUS   RESTARTS  AGE
           pod/web-...   1/1    Running  0         ...s
           pod/web-...   1/1    Running  0         ...s

           NAME                 READY  UP-TO-DATE  AVAILABLE  AGE
           deployment.apps/web  2/2    2           2          ...s

           NAME                     DESIRED  CURRENT  READY  AGE
           replicaset.apps/web-...  2        2        2      ...s""",
    ),
    "everywhere": ("get deployments -A", "NAMESPACE NAME READY UP-TO-DATE AVAILABLE AGE...shown web 2/2 2 2 ..."),
    "names by label": ("get pods -l app=web -o name", "pod/web-...\npod/web-...\n"),
    "nothing by label": ("get pods -l app!=web", "No resources found in shown namespace.\n"),
    "by phase": ("get pods --field-selector=status.phase=Running -o name", "pod/web-...\npod/web-...\n"),
    "not by phase": ("get pods --field-selector=status.phase=Failed", "No resources found in shown namespace.\n"),
    "labels": ("get deployments --show-labels", "NAME READY UP-TO-DATE AVAILABLE AGE LABELS web 2/2 2 2 ...s app=web"),
    "a label's column": ("get deploy -L app", "NAME READY UP-TO-DATE AVAILABLE AGE APP web 2/2 2 2 ...s web"),
    "a JSON path": ("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}", "nginx:1.29"),
    "custom columns": (
        "get deploy -o custom-columns=NAME:.metadata.name,WANTED:.spec.replicas",
        "NAME WANTED\nweb 2\n",
    ),
    "sorted": ("get deploy --sort-by=.metadata.name -o name", "deployment.apps/web\n"),
    "YAML": (
        "get deploy web -o yaml",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:...name: web...replicas: 2...readyReplicas: 2...",
    ),
    "the scale": ("get deploy web --subresource=scale", "NAME DESIRED AVAILABLE AGE\nweb 2 2 ...s\n"),
    "events": (
        "get events --field-selector=involvedObject.kind=Deployment",
        """LAST SEEN  TYPE    REASON             OBJECT          MESSAGE
           ...s       Normal  ScalingReplicaSet  deployment/web  Scaled up replica set web-... from 0 to 2""",
    ),
    "events by their own command": (
        "events --for deployment/web",
        """LAST SEEN  TYPE    REASON             OBJECT          MESSAGE
           ...s       Normal  ScalingReplicaSet  Deployment/web  Scaled up replica set web-... from 0 to 2""",
    ),
    "nodes": (
        "get nodes node-0 node-1",
        """NAME    STATUS  ROLES   AGE   VERSION
           node-0  Ready   <none>  ...   v1...
           node-1  Ready   <none>  ...   v1...""",
    ),
    "wide nodes": (
        "get node node-0 -o wide",
        """NAME    STATUS  ROLES   AGE   VERSION  INTERNAL-IP  EXTERNAL-IP  OS-IMAGE  KERNEL-VERSION  CONTAINER-RUNTIME
           node-0  Ready   <none>  ...   v1...    172.16.0.1   <none>       numalign simulated node  ...  containerd://...""",
    ),
    "reports of topology": (
        "get noderesourcetopologies node-0",
        "NAME POLICY SCOPE FREE-CPU-1 FREE-CPU-2 HEARTBEAT AGE\nnode-0 single-numa-node container 15 16 ...\n",
    ),
    "a zone's CPUs": (
        """get node-res-topo node-0 -o 'jsonpath={.zones[0].name}:{.zones[0].resources[?(@.name=="cpu")].capacity}'""",
        "node-0:16",
    ),
    "namespaces": ("get ns kube-system", "NAME STATUS AGE\nkube-system Active ...\n"),
    "a raw path": ("get --raw /healthz", "ok"),
}


@pytest.mark.parametrize("line, text", GETTING.values(), ids=GETTING)
def test_what_get_shows(shown: Kubectl, line: str, text: str) -> None:
    assert shown(line) == (0, Like(text))


def test_json_is_the_object(shown: Kubectl) -> None:
    tree = json.loads(shown.said("get deployment web -o json"))
    assert (tree["apiVersion"], tree["kind"], tree["status"]["availableReplicas"]) == ("apps/v1", "Deployment", 2)


def test_a_watch_shows_what_is_there_and_ends_in_time(shown: Kubectl) -> None:
    code, text = shown("get pods -w --request-timeout=5s -o name")
    assert (code, text) == (0, Like("pod/web-...\npod/web-...\n"))


DESCRIBED = {
    "a deployment": (
        "describe deployment web",
        """Name: web
Namespace: shown
...
Replicas: 2 desired | 2 updated | 2 total | 2 available | 0 unavailable
...
  Available      True    MinimumReplicasAvailable
  Progressing    True    NewReplicaSetAvailable
OldReplicaSets:  <none>
NewReplicaSet:   web-... (2/2 replicas created)
Events:
...deployment-controller  Scaled up replica set web-... from 0 to 2
""",
    ),
    "pods": (
        "describe pods -l app=web --show-events",
        """Name: web-...
Node: node-.../172.16.0...
...
Status: Running
...
Controlled By: ReplicaSet/web-...
...
QoS Class: BestEffort
...
Events:
...default-scheduler Successfully assigned shown/web-... to node-...
""",
    ),
    "a node": (
        "describe node node-0",
        """Name: node-0
...
Lease:
  HolderIdentity:  node-0
...
  Ready True ... KubeletReady kubelet is posting ready status
...
Capacity:
  cpu: 32
...
Allocated resources:
...
Events:
...
""",
    ),
    "a namespace": ("describe namespace shown", "Name: shown\n...Status: Active\n...No LimitRange resource.\n"),
    "a report": ("describe noderesourcetopology node-0", "Name: node-0\n...Kind: NodeResourceTopology\n...Zones:\n..."),
}


@pytest.mark.parametrize("line, text", DESCRIBED.values(), ids=DESCRIBED)
def test_what_describe_tells(shown: Kubectl, line: str, text: str) -> None:
    assert shown(line) == (0, Like(text))


ABOUT = {
    "version": (
        "version",
        "Client Version: v1...\nKustomize Version: ...\nServer Version: v1.37.1+numalign-embedded\n",
    ),
    "cluster-info": (
        "cluster-info",
        "Kubernetes control plane is running at https://127.0.0.1:...cluster-info dump'.\n",
    ),
    "api-versions": (
        "api-versions",
        "admissionregistration.k8s.io/v1\napiextensions.k8s.io/v1\napps/v1\n...policy/v1\n...topology.node.k8s.io/v1alpha2\nv1\n",
    ),
    "api-resources": (
        "api-resources --api-group=apps",
        """NAME                 SHORTNAMES  APIVERSION  NAMESPACED  KIND
           controllerrevisions              apps/v1     true        ControllerRevision
           daemonsets           ds          apps/v1     true        DaemonSet
           deployments          deploy      apps/v1     true        Deployment
           replicasets          rs          apps/v1     true        ReplicaSet
           statefulsets         sts         apps/v1     true        StatefulSet""",
    ),
    "custom resources among them": (
        "api-resources --api-group=topology.node.k8s.io -o name",
        "noderesourcetopologies.topology.node.k8s.io\n",
    ),
    "explain": (
        "explain pod.spec.containers.image",
        "KIND: Pod\nVERSION: v1\n\nFIELD: image <string>\n...",
    ),
    "explain a tree": (
        "explain deployment.spec.strategy --recursive",
        "GROUP: apps\nKIND: Deployment\n...rollingUpdate <RollingUpdateDeployment>\n maxSurge <IntOrString>\n...",
    ),
    "explain a custom resource": (
        "explain noderesourcetopologies.zones.resources",
        "GROUP: topology.node.k8s.io\nKIND: NodeResourceTopology\n...FIELD: resources <[]Object>\n...",
    ),
    "may I": ("auth can-i create pods", "yes\n"),
    "what may I": ("auth can-i --list", "Resources Non-Resource URLs Resource Names Verbs\n*.* [] [] [*]\n..."),
    "who am I": ("auth whoami", "ATTRIBUTE VALUE\nUsername admin\n..."),
    "metrics": ("get --raw /metrics", "...apiserver_request_total{verb=...,code=...} ..."),
}


@pytest.mark.parametrize("line, text", ABOUT.values(), ids=ABOUT)
def test_what_the_server_says_of_itself(anywhere: Kubectl, line: str, text: str) -> None:
    assert anywhere(line) == (0, Like(text))


LEFT_OUT = {
    "top": ("top pods", "error: Metrics API not available\n"),
    "logs": (
        "logs deploy/web",
        "Found 2 pods, using pod/web-...\nError from server (NotImplemented): the embedded API server does not serve "
        "the log of pods: its nodes are simulated\n",
    ),
    "exec": (
        "exec deploy/web -- ls",
        "error: unable to upgrade connection: the embedded API server does not serve the exec of pods: its nodes are "
        "simulated\n",
    ),
    "port-forward": ("port-forward deploy/web 0:80", "error: ...does not serve the portforward of pods...\n"),
    "a kind that is left out": ("get ingresses", """error: the server doesn't have a resource type "ingresses"\n"""),
}


@pytest.mark.parametrize("line, text", LEFT_OUT.values(), ids=LEFT_OUT)
def test_what_is_left_out_is_refused_politely(shown: Kubectl, line: str, text: str) -> None:
    assert shown(line) == (1, Like(text))
