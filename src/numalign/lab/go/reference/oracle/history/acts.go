package history

import (
	"context"
	"fmt"
	"sort"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numalign.io/lab/reference/oracle/apiserver"
)

var (
	ctx       = context.Background()
	kindOfNRT = metav1.TypeMeta{APIVersion: topology.SchemeGroupVersion.String(), Kind: "NodeResourceTopology"}
)

// acts is what can happen, by op. Each returns after the plugin has dealt with it.
var acts = map[string]func(*cluster, *Step) (any, error){
	"nrt_update":            (*cluster).putNRT,
	"nrt_delete":            (*cluster).deleteNRT,
	"pod_add":               (*cluster).putPod,
	"pod_update":            (*cluster).putPod,
	"pod_delete":            (*cluster).deletePod,
	"filter":                (*cluster).filter,
	"score":                 (*cluster).score,
	"reserve":               (*cluster).reserve,
	"unreserve":             (*cluster).unreserve,
	"postbind":              (*cluster).postBind,
	"resync":                (*cluster).resync,
	"desynced":              (*cluster).desynced,
	"get_nrt":               (*cluster).getNRT,
	"node_rejected":         (*cluster).nodeRejected,
	"node_has_foreign_pods": (*cluster).nodeHasForeignPods,
}

func (c *cluster) putNRT(s *Step) (any, error) {
	if err := c.put(apiserver.NRTs, s.NRT, &topology.NodeResourceTopology{}); err != nil {
		return nil, err
	}
	return nil, c.plugin.NRTsSeen()
}

func (c *cluster) deleteNRT(s *Step) (any, error) {
	c.server.Delete(apiserver.NRTs, "", s.Node)
	return nil, c.plugin.NRTsSeen()
}

func (c *cluster) putPod(s *Step) (any, error) {
	if err := c.put(apiserver.Pods, s.Pod, &v1.Pod{}); err != nil {
		return nil, err
	}
	return nil, c.plugin.PodsSeen()
}

func (c *cluster) deletePod(s *Step) (any, error) {
	pod, err := readPod(s.Pod)
	if err != nil {
		return nil, err
	}
	c.server.Delete(apiserver.Pods, pod.Namespace, pod.Name)
	return nil, c.plugin.PodsSeen()
}

func (c *cluster) filter(s *Step) (any, error) {
	return c.eachNode(s, func(pod *v1.Pod, node *framework.NodeInfo) any {
		return statusOf(c.plugin.Filter(ctx, framework.NewCycleState(), pod, node))
	})
}

func (c *cluster) score(s *Step) (any, error) {
	return c.eachNode(s, func(pod *v1.Pod, node *framework.NodeInfo) any {
		score, status := c.plugin.Score(ctx, framework.NewCycleState(), pod, node)
		if !status.IsSuccess() {
			return statusOf(status)
		}
		return Score{Score: score}
	})
}

// eachNode asks about the nodes of a step, or about all of them.
func (c *cluster) eachNode(s *Step, ask func(*v1.Pod, *framework.NodeInfo) any) (any, error) {
	pod, err := readPod(s.Pod)
	if err != nil {
		return nil, err
	}
	names := s.Nodes
	if names == nil {
		names = c.order
	}
	answers := map[string]any{}
	for _, name := range names {
		answers[name] = surviving(func() any { return ask(pod, c.info(name)) })
	}
	return answers, nil
}

func surviving(ask func() any) (said any) {
	defer func() {
		if cause := recover(); cause != nil {
			said = Panicked{Panic: fmt.Sprint(cause)}
		}
	}()
	return ask()
}

func (c *cluster) reserve(s *Step) (any, error) {
	pod, err := readPod(s.Pod)
	if err != nil {
		return nil, err
	}
	return statusOf(c.plugin.Reserve(ctx, framework.NewCycleState(), pod, s.Node)), nil
}

func (c *cluster) unreserve(s *Step) (any, error) {
	pod, err := readPod(s.Pod)
	if err != nil {
		return nil, err
	}
	c.plugin.Unreserve(ctx, framework.NewCycleState(), pod, s.Node)
	return nil, nil
}

func (c *cluster) postBind(s *Step) (any, error) {
	pod, err := readPod(s.Pod)
	if err != nil {
		return nil, err
	}
	c.plugin.PostBind(ctx, framework.NewCycleState(), pod, s.Node)
	return nil, nil
}

// resync is one round of the loop. Caches that have none stay as they are.
func (c *cluster) resync(*Step) (any, error) {
	if over := c.plugin.OverReserve(); over != nil {
		over.Resync()
		return Resynced{Generation: c.plugin.Desynced().Generation, Desynced: c.waiting()}, nil
	}
	return nil, nil
}

func (c *cluster) desynced(*Step) (any, error) {
	if c.plugin.OverReserve() == nil {
		return nil, nil
	}
	return c.waiting(), nil
}

func (c *cluster) waiting() Desynced {
	found := c.plugin.Desynced()
	sort.Strings(found.MaybeOverReserved)
	sort.Strings(found.ConfigChanged)
	return Desynced{MaybeOverReserved: found.MaybeOverReserved, ConfigChanged: found.ConfigChanged}
}

// getNRT looks into the cache as Filter does. The answer names the kind, which clients drop, and not the server's version.
func (c *cluster) getNRT(s *Step) (any, error) {
	nrt, info := c.plugin.Cache.GetCachedNRTCopy(ctx, s.Node, &v1.Pod{})
	said := Cached{Fresh: info.Fresh, Generation: info.Generation}
	if nrt != nil {
		nrt.TypeMeta, nrt.ResourceVersion = kindOfNRT, ""
		said.NRT = nrt
	}
	return said, nil
}

func (c *cluster) nodeRejected(s *Step) (any, error) {
	c.plugin.Cache.NodeMaybeOverReserved(s.Node, &v1.Pod{})
	return nil, nil
}

func (c *cluster) nodeHasForeignPods(s *Step) (any, error) {
	c.plugin.Cache.NodeHasForeignPods(s.Node, &v1.Pod{})
	return nil, nil
}

// info is the scheduler's view of a node; of an unknown one it has no node object.
func (c *cluster) info(name string) *framework.NodeInfo {
	if known := c.nodes[name]; known != nil {
		return known
	}
	return framework.NewNodeInfo()
}

func statusOf(status *fwk.Status) Status {
	said := Status{Code: status.Code().String(), Reasons: []string{}}
	if status != nil {
		said.Reasons = append(said.Reasons, status.Reasons()...)
	}
	return said
}
