package rte

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/k8stopologyawareschedwg/podfingerprint"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/podres"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/podres/filter/numalocality"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/podres/middleware/podexclude"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/podres/middleware/sharedcpuspool"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/podres/middleware/terminalpods"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/resourcemonitor"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/sysinfo"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"numalign.io/lab/exporter/node"
)

// Suites are the tables that RTE answers; separated is why there is no /sys to write to, if so.
func Suites(separated error) node.Suites {
	return node.Suites{
		"exporter.scan":                       node.Of(scan(separated)),
		"exporter.cpu_to_numa":                node.Of(cpus),
		"exporter.normalize":                  node.Of(normalize),
		"exporter.exclusive_filter":           node.Of(exclusive),
		"exporter.locality_present":           node.Of(local),
		"exporter.fingerprint_method_derived": node.Of(signed),
		"exporter.pod_exclude":                node.Of(excluded),
		"exporter.terminal_filter":            node.Of(unfinished),
		"exporter.parse_endpoint":             node.Of(endpoint),
		"exporter.reference_container":        node.Of(reference),
		"exporter.shared_pool_derived":        node.Of(shared),
		"sysinfo.memory_tree":                 node.Of(inFolder(tree)),
		"sysinfo.meminfo_parse_derived":       node.Of(inFolder(total)),
		"sysinfo.hugepage_resource_name":      node.Of(pages),
	}
}

// inFolder lends a folder for the time of an answer.
func inFolder[Row any](answer func(Row, string) (any, error)) func(Row) (any, error) {
	return func(row Row) (any, error) {
		folder, err := os.MkdirTemp("", "oracle-exporter-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(folder)
		return answer(row, folder)
	}
}

func cpus(row struct{ Topology node.Topology }) (any, error) {
	return node.Columns{"map": resourcemonitor.MakeCoreIDToNodeIDMap(row.Topology.Info())}, nil
}

type entry struct {
	Resource string   `json:"resource"`
	IDs      []string `json:"ids"`
	Numa     []int64  `json:"numa"`
}

func normalize(row struct {
	Topology    node.Topology
	Allocatable node.Allocatable
}) (any, error) {
	told, known := row.Allocatable.Response(), resourcemonitor.MakeCoreIDToNodeIDMap(row.Topology.Info())
	entries := []entry{}
	for _, each := range resourcemonitor.NormalizeContainerDevices(klog.V(9), told.Devices, told.Memory, told.CpuIds, known) {
		made := entry{Resource: each.ResourceName, IDs: append([]string{}, each.DeviceIds...)}
		if each.Topology != nil {
			made.Numa = []int64{}
			for _, zone := range each.Topology.Nodes {
				made.Numa = append(made.Numa, zone.ID)
			}
		}
		entries = append(entries, made)
	}
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(
			cmp.Compare(a.Resource, b.Resource), slices.Compare(a.Numa, b.Numa), slices.Compare(a.IDs, b.IDs),
		)
	})
	return node.Columns{"expected": entries}, nil
}

func exclusive(row struct{ Pod *node.Pod }) (any, error) {
	var listed *podresources.PodResources
	if row.Pod != nil {
		listed = row.Pod.Listed()
	}
	return node.Columns{"allow": numalocality.Verify(listed).Allow}, nil
}

func local(row struct{ Numa []int64 }) (any, error) {
	return node.Columns{"present": numalocality.IsPresent(node.Places(row.Numa))}, nil
}

func signed(row struct {
	Method string
	Pods   []node.Pod
}) (any, error) {
	included, pods := [][2]string{}, podfingerprint.NewFingerprint(0)
	for _, pod := range row.Pods {
		listed := pod.Listed()
		if row.Method != podfingerprint.MethodAll && !numalocality.Verify(listed).Allow {
			continue
		}
		included = append(included, [2]string{pod.Namespace, pod.Name})
		if err := pods.AddPod(listed); err != nil {
			return nil, err
		}
	}
	return node.Columns{"included": included, "fingerprint": pods.Sign()}, nil
}

func excluded(row struct {
	Patterns        podexclude.List
	Namespace, Name string
}) (any, error) {
	return node.Columns{"excluded": podexclude.ShouldExclude(row.Patterns, row.Namespace, row.Name, false)}, nil
}

func unfinished(row struct{ Terminal, Listed [][2]string }) (any, error) {
	response, gone := &podresources.ListPodResourcesResponse{}, []*core.Pod{}
	for _, pod := range row.Listed {
		response.PodResources = append(response.PodResources, &podresources.PodResources{Namespace: pod[0], Name: pod[1]})
	}
	for _, pod := range row.Terminal {
		gone = append(gone, &core.Pod{ObjectMeta: meta.ObjectMeta{Namespace: pod[0], Name: pod[1]}})
	}
	terminalpods.FilterFrom(response, gone)
	kept := [][2]string{}
	for _, pod := range response.PodResources {
		kept = append(kept, [2]string{pod.Namespace, pod.Name})
	}
	return node.Columns{"kept": kept}, nil
}

func endpoint(row struct{ Endpoint string }) (any, error) {
	_, path, err := podres.ParseEndpoint(row.Endpoint)
	if err != nil {
		return node.Columns{"path": nil, "error": "unsupported-protocol"}, nil
	}
	return node.Columns{"path": path, "error": nil}, nil
}

func reference(row struct{ Text string }) (any, error) {
	found, err := sharedcpuspool.ContainerIdentFromString(row.Text)
	switch {
	case err != nil:
		return node.Columns{"error": true}, nil
	case found == nil:
		return node.Columns{"result": nil}, nil
	}
	return node.Columns{"result": []string{found.Namespace, found.PodName, found.ContainerName}}, nil
}

func shared(row struct {
	Reference  [3]string
	Containers []struct {
		ID   [3]string
		CPUs []int64
	}
}) (any, error) {
	kubelet, named := node.Kubelet{}, []string{}
	for _, each := range row.Containers {
		container := node.Container{Name: each.ID[2], CPUs: each.CPUs}
		kubelet.Pods = append(kubelet.Pods, node.Pod{
			Namespace: each.ID[0], Name: each.ID[1], Containers: []node.Container{container},
		})
		named = append(named, strings.Join(each.ID[:], "/"))
	}
	known := &sharedcpuspool.ContainerIdent{Namespace: row.Reference[0], PodName: row.Reference[1], ContainerName: row.Reference[2]}
	listed, err := sharedcpuspool.NewFromLister(kubelet, false, known).List(context.Background(), nil)
	if err != nil {
		return nil, err
	}
	own := map[string][]int64{}
	for place, pod := range listed.PodResources {
		own[named[place]] = pod.Containers[0].CpuIds
	}
	return node.Columns{"expected": own}, nil
}

// total reads one meminfo. What is wrong with a text is told apart by words of the program's own error.
func total(row struct{ Text string }, folder string) (any, error) {
	files := treed{Files: map[string]string{"devices/system/node/node0/meminfo": row.Text}}
	if _, err := tree(files, folder); err != nil {
		return nil, err
	}
	found, err := sysinfo.MemoryForNode(sysinfo.Handle{Root: folder}, 0)
	switch {
	case err == nil:
		return node.Columns{"bytes": found}, nil
	case strings.Contains(err.Error(), "failed to find"):
		return node.Columns{"error": "missing"}, nil
	case strings.Contains(err.Error(), "failed to convert"):
		return node.Columns{"error": "not-a-number"}, nil
	}
	return node.Columns{"error": "bad-format"}, nil
}

func pages(row struct {
	Size int `json:"size_kb"`
}) (any, error) {
	return node.Columns{"name": sysinfo.HugepageResourceNameFromSize(row.Size)}, nil
}
