package main

import (
	"fmt"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"numalign.io/lab/reference/oracle/apiserver"
)

// Every zone has 64 CPUs, 256 GiB of memory and 64 devices of each other kind; of each of them up to 8 parts of 64 are in
// use. Amounts below are in such parts, of which one is a CPU, 4 GiB or a device.
const (
	parts    = 64
	mostUsed = 8
	gibs     = 4
	maxPods  = 512
)

// cluster is what a run works on. benchmarks/_cluster.py makes the same from the same numbers.
type cluster struct {
	sizes
	nodes []*framework.NodeInfo
}

// sizes is how large a cluster is and what drew it.
type sizes struct {
	nodes, zones, containers, resources, shapes int
	seed                                        uint64
}

func newCluster(of sizes, server *apiserver.Server) (*cluster, error) {
	made := &cluster{sizes: of}
	for node := range of.nodes {
		if err := server.Put(apiserver.NRTs, of.topology(node)); err != nil {
			return nil, err
		}
		info := framework.NewNodeInfo()
		info.SetNode(of.node(node))
		made.nodes = append(made.nodes, info)
	}
	return made, nil
}

// free is how many parts of the resource are free in the zone.
func (s sizes) free(node, zone, number int) int64 {
	return parts - int64(draw(s.seed, node, zone, number)%(mostUsed+1))
}

// freeCPUs is all of them in the cluster: whoever made another one is found out.
func (s sizes) freeCPUs() (total int64) {
	for node := range s.nodes {
		for zone := range s.zones {
			total += s.free(node, zone, 0)
		}
	}
	return total
}

func (s sizes) node(node int) *v1.Node {
	offered := v1.ResourceList{v1.ResourcePods: *resource.NewQuantity(maxPods, resource.DecimalSI)}
	for number := range s.resources {
		offered[name(number)] = amount(number, int64(s.zones)*parts)
	}
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(node)},
		Status:     v1.NodeStatus{Capacity: offered, Allocatable: offered},
	}
}

func (s sizes) topology(node int) *topology.NodeResourceTopology {
	made := &topology.NodeResourceTopology{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(node)},
		Attributes: topology.AttributeList{
			{Name: "topologyManagerPolicy", Value: "single-numa-node"},
			{Name: "topologyManagerScope", Value: "container"},
		},
	}
	for zone := range s.zones {
		described := topology.Zone{Name: fmt.Sprint("node-", zone), Type: "Node"}
		for number := range s.resources {
			described.Resources = append(described.Resources, topology.ResourceInfo{
				Name:        string(name(number)),
				Capacity:    amount(number, parts),
				Allocatable: amount(number, parts),
				Available:   amount(number, s.free(node, zone, number)),
			})
		}
		made.Zones = append(made.Zones, described)
	}
	return made
}

// pod is Guaranteed. Without a number of shapes each pod is one of its own.
func (s sizes) pod(number int) *v1.Pod {
	shape := number
	if s.shapes > 0 {
		shape = number % s.shapes
	}
	made := &v1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprint("pod-", number), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", number))}}
	for container := range s.containers {
		asked := s.asked(shape + container)
		made.Spec.Containers = append(made.Spec.Containers, v1.Container{
			Name:      fmt.Sprint("c", container),
			Resources: v1.ResourceRequirements{Requests: asked, Limits: asked},
		})
	}
	return made
}

// asked is 1 to 4 CPUs, 64 MiB and a page per step of memory, and one or two devices of each kind.
func (s sizes) asked(step int) v1.ResourceList {
	asked := v1.ResourceList{}
	for number := range s.resources {
		switch number {
		case 0:
			asked[name(number)] = *resource.NewQuantity(int64(1+step%4), resource.DecimalSI)
		case 1:
			asked[name(number)] = *resource.NewQuantity(64<<20+int64(step)<<12, resource.BinarySI)
		default:
			asked[name(number)] = *resource.NewQuantity(int64(1+(step>>number)%2), resource.DecimalSI)
		}
	}
	return asked
}

func nodeName(node int) string { return fmt.Sprintf("node-%05d", node) }

func name(number int) v1.ResourceName {
	switch number {
	case 0:
		return v1.ResourceCPU
	case 1:
		return v1.ResourceMemory
	}
	return v1.ResourceName(fmt.Sprint("example.com/dev-", number-2))
}

func amount(number int, count int64) resource.Quantity {
	if number == 1 {
		return *resource.NewQuantity(count*gibs<<30, resource.BinarySI)
	}
	return *resource.NewQuantity(count, resource.DecimalSI)
}

// draw hashes the seed and the numbers one after the other, with the last step of SplitMix64.
func draw(seed uint64, numbers ...int) uint64 {
	state := seed
	for _, number := range numbers {
		state = (state ^ uint64(number)) + 0x9E3779B97F4A7C15
		state = (state ^ state>>30) * 0xBF58476D1CE4E5B9
		state = (state ^ state>>27) * 0x94D049BB133111EB
		state ^= state >> 31
	}
	return state
}
