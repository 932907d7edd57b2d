// Package node reads what the tables say of a node: its zones, what can be allocated, and what pods are listed with.
package node

import (
	"context"
	"encoding/json"
	"errors"
	"sort"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/cpu"
	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	"google.golang.org/grpc"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Answer fills in one row: the columns that are given in, the columns that come of them out.
type Answer func(input json.RawMessage) (any, error)

// Suites are answers by the names of tables.
type Suites map[string]Answer

// Columns are what came of a row, by name.
type Columns map[string]any

// Of makes an answer from a function of the columns in their Go form.
func Of[Row any](answer func(Row) (any, error)) Answer {
	return func(input json.RawMessage) (any, error) {
		var row Row
		if err := json.Unmarshal(input, &row); err != nil {
			return nil, err
		}
		return answer(row)
	}
}

// Topology is a machine: its zones with their CPUs.
type Topology struct {
	Nodes []struct {
		ID        int   `json:"id"`
		CPUs      []int `json:"cpus"`
		Distances []int `json:"distances"`
	} `json:"nodes"`
}

// Info is the machine in the form of the library that both programs use. Cores play no part.
func (t Topology) Info() *ghw.TopologyInfo {
	info := &ghw.TopologyInfo{}
	for _, zone := range t.Nodes {
		node := &ghw.TopologyNode{ID: zone.ID, Distances: zone.Distances}
		for place, logical := range zone.CPUs {
			node.Cores = append(node.Cores, &cpu.ProcessorCore{ID: place, LogicalProcessors: []int{logical}})
		}
		info.Nodes = append(info.Nodes, node)
	}
	return info
}

// Device is an entry for devices; Numa is nil where the topology is absent.
type Device struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
	Numa     []int64  `json:"numa"`
}

// Memory is a block.
type Memory struct {
	Type string  `json:"type"`
	Size uint64  `json:"size"`
	Numa []int64 `json:"numa"`
}

// Container is what one container is listed with.
type Container struct {
	Name    string   `json:"name"`
	CPUs    []int64  `json:"cpus"`
	Devices []Device `json:"devices"`
	Memory  []Memory `json:"memory"`
}

// Pod is what one pod is listed with.
type Pod struct {
	Name       string      `json:"name"`
	Namespace  string      `json:"namespace"`
	Containers []Container `json:"containers"`
}

// Allocatable is what pods can ever get.
type Allocatable struct {
	Devices []Device `json:"devices"`
	CPUs    []int64  `json:"cpus"`
	Memory  []Memory `json:"memory"`
}

// Response is the kubelet's answer that says so.
func (a Allocatable) Response() *podresources.AllocatableResourcesResponse {
	return &podresources.AllocatableResourcesResponse{Devices: devices(a.Devices), CpuIds: a.CPUs, Memory: memory(a.Memory)}
}

// Listed is the pod in the kubelet's list.
func (p Pod) Listed() *podresources.PodResources {
	listed := &podresources.PodResources{Name: p.Name, Namespace: p.Namespace}
	for _, c := range p.Containers {
		listed.Containers = append(listed.Containers, &podresources.ContainerResources{
			Name: c.Name, CpuIds: c.CPUs, Devices: devices(c.Devices), Memory: memory(c.Memory),
		})
	}
	return listed
}

// Places is the topology of an entry.
func Places(numa []int64) *podresources.TopologyInfo {
	if numa == nil {
		return nil
	}
	info := &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{}}
	for _, zone := range numa {
		info.Nodes = append(info.Nodes, &podresources.NUMANode{ID: zone})
	}
	return info
}

func devices(entries []Device) []*podresources.ContainerDevices {
	var made []*podresources.ContainerDevices
	for _, each := range entries {
		made = append(made, &podresources.ContainerDevices{
			ResourceName: each.Resource, DeviceIds: each.IDs, Topology: Places(each.Numa),
		})
	}
	return made
}

func memory(blocks []Memory) []*podresources.ContainerMemory {
	var made []*podresources.ContainerMemory
	for _, each := range blocks {
		made = append(made, &podresources.ContainerMemory{
			MemoryType: each.Type, Size: each.Size, Topology: Places(each.Numa),
		})
	}
	return made
}

// Kubelet answers as a kubelet's socket would.
type Kubelet struct {
	Allocatable Allocatable
	Pods        []Pod
	// Silent makes the list fail.
	Silent bool
}

// List names the pods, made anew for each caller: some programs change what they get.
func (k Kubelet) List(
	context.Context, *podresources.ListPodResourcesRequest, ...grpc.CallOption,
) (*podresources.ListPodResourcesResponse, error) {
	if k.Silent {
		return nil, errors.New("no list")
	}
	response := &podresources.ListPodResourcesResponse{}
	for _, pod := range k.Pods {
		response.PodResources = append(response.PodResources, pod.Listed())
	}
	return response, nil
}

// GetAllocatableResources says what pods can get.
func (k Kubelet) GetAllocatableResources(
	context.Context, *podresources.AllocatableResourcesRequest, ...grpc.CallOption,
) (*podresources.AllocatableResourcesResponse, error) {
	return k.Allocatable.Response(), nil
}

// Get is asked by nobody.
func (k Kubelet) Get(
	context.Context, *podresources.GetPodResourcesRequest, ...grpc.CallOption,
) (*podresources.GetPodResourcesResponse, error) {
	return nil, errors.New("not asked")
}

type zone struct {
	Name      string     `json:"name"`
	Type      string     `json:"type"`
	Costs     []cost     `json:"costs"`
	Resources []resource `json:"resources"`
}

type cost struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

type resource struct {
	Name        string `json:"name"`
	Capacity    int64  `json:"capacity"`
	Allocatable int64  `json:"allocatable"`
	Available   int64  `json:"available"`
}

// Zones are the zones of a report in the tables' form and order: by name, with plain numbers.
func Zones(list v1alpha2.ZoneList) any {
	zones := []zone{}
	for _, each := range list {
		made := zone{Name: each.Name, Type: each.Type, Costs: []cost{}, Resources: []resource{}}
		for _, c := range each.Costs {
			made.Costs = append(made.Costs, cost{c.Name, c.Value})
		}
		for _, r := range each.Resources {
			made.Resources = append(made.Resources, resource{
				r.Name, r.Capacity.Value(), r.Allocatable.Value(), r.Available.Value(),
			})
		}
		sort.Slice(made.Costs, func(i, j int) bool { return made.Costs[i].Name < made.Costs[j].Name })
		sort.Slice(made.Resources, func(i, j int) bool { return made.Resources[i].Name < made.Resources[j].Name })
		zones = append(zones, made)
	}
	sort.Slice(zones, func(i, j int) bool { return zones[i].Name < zones[j].Name })
	return zones
}
