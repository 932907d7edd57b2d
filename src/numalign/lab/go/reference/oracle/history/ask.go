package history

import (
	"encoding/json"
	"fmt"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numalign.io/lab/reference/oracle/apiserver"
	"numalign.io/lab/reference/oracle/plugin"
)

const family = "reference"

// defaultProfile is the profile of a history that names none.
const defaultProfile = "topo-aware-scheduler"

// Ask plays one history.
func Ask(given string, line []byte) (any, error) {
	if given != family {
		return nil, fmt.Errorf("family %q is not %q", given, family)
	}
	var h History
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, err
	}
	return h, h.play()
}

func (h *History) play() error {
	args, refused := readArgs(h.Args)
	if refused != nil {
		h.InitError = refused.Error()
		return nil
	}
	c := &cluster{server: apiserver.New(), nodes: map[string]*framework.NodeInfo{}}
	if err := c.fill(h); err != nil {
		return err
	}
	profiles := h.ProfileNames
	if len(profiles) == 0 {
		profiles = []string{defaultProfile}
	}
	built, refused := plugin.New(args, profiles, c.server)
	if refused != nil {
		h.InitError = refused.Error()
		return nil
	}
	defer built.Stop()
	c.plugin = built
	if err := built.Start(); err != nil {
		return err
	}
	return c.take(h.Steps)
}

// cluster is the world of one run.
type cluster struct {
	server *apiserver.Server
	plugin *plugin.Plugin
	order  []string
	nodes  map[string]*framework.NodeInfo
}

func (c *cluster) fill(h *History) error {
	for _, text := range h.Nodes {
		node := &v1.Node{}
		if err := read(text, node); err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
		info := framework.NewNodeInfo()
		info.SetNode(node)
		c.order, c.nodes[node.Name] = append(c.order, node.Name), info
	}
	for _, text := range h.NRTs {
		if err := c.put(apiserver.NRTs, text, &topology.NodeResourceTopology{}); err != nil {
			return fmt.Errorf("nrts: %w", err)
		}
	}
	for _, text := range h.Pods {
		if err := c.put(apiserver.Pods, text, &v1.Pod{}); err != nil {
			return fmt.Errorf("pods: %w", err)
		}
	}
	return nil
}

func (c *cluster) take(steps []Step) error {
	for i := range steps {
		act, known := acts[steps[i].Op]
		if !known {
			return fmt.Errorf("steps[%d]: op %q is not known", i, steps[i].Op)
		}
		answer, err := act(c, &steps[i])
		if err != nil {
			return fmt.Errorf("steps[%d]: %w", i, err)
		}
		steps[i].Answer = answer
	}
	return nil
}

func (c *cluster) put(path string, text json.RawMessage, into metav1.Object) error {
	if err := read(text, into); err != nil {
		return err
	}
	if into.GetName() == "" {
		return fmt.Errorf("an object without metadata.name cannot be stored")
	}
	return c.server.Put(path, into)
}

func read(text json.RawMessage, into any) error {
	if len(text) == 0 {
		return fmt.Errorf("needs a %T", into)
	}
	return json.Unmarshal(text, into)
}
