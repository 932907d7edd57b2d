// Family device_hints, and the plugins that sequences have too.

package cases

import (
	"sort"

	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// Device asks the device manager, op by op, with scripted plugins behind it.
type Device struct {
	ID        string            `json:"id"`
	NUMANodes []int             `json:"numa_nodes"`
	Resources map[string]Plugin `json:"resources"`
	Pods      []Pod             `json:"pods"`
	Ops       []DeviceOp        `json:"ops"`
}

// Plugin is one resource and its devices.
type Plugin struct {
	PreferredAllocation bool         `json:"preferred_allocation"`
	Devices             []DeviceUnit `json:"devices"`
}

// DeviceUnit is one device: nil zones = no topology object, no zones = a topology object without nodes.
type DeviceUnit struct {
	ID      string  `json:"id"`
	Healthy bool    `json:"healthy"`
	NUMA    []int64 `json:"numa"`
}

// DeviceOp is one of pod_hints, hints, allocate and remove_pod.
type DeviceOp struct {
	Op        string `json:"op"`
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Affinity  *Hint  `json:"affinity,omitempty"`
}

// DeviceAnswer is the case with every op answered.
type DeviceAnswer struct {
	Device
	Ops []DeviceOpAnswer `json:"ops"`
}

// DeviceOpAnswer is what one op said or did. Where the plugin has no say the choice is random: only classes are told.
type DeviceOpAnswer struct {
	DeviceOp
	Hints          HintMap                `json:"hints,omitempty"`
	Devices        map[string][]string    `json:"devices,omitempty"`
	ClassCounts    map[string]ClassCounts `json:"class_counts,omitempty"`
	PreferredCalls []PreferredCall        `json:"preferred_calls,omitempty"`
	Error          string                 `json:"error,omitempty"`
}

// ClassCounts counts devices by class: aligned, unaligned and no_topology, or total where there was no mask.
type ClassCounts map[string]int

// PreferredCall is one question to a plugin and its answer, all ids sorted.
type PreferredCall struct {
	Resource    string   `json:"resource"`
	Available   []string `json:"available"`
	MustInclude []string `json:"must_include"`
	Size        int      `json:"size"`
	Returned    []string `json:"returned"`
}

// IDs lists device ids in order.
func IDs(devices devicemanager.DeviceInstances) []string {
	ids := make([]string, 0, len(devices))
	for id := range devices {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	return ids
}
