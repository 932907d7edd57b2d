// Families sequence and sequence_podlevel.

package cases

import "encoding/json"

// Sequence is the life of a node: all managers wired together, pods that come and go, kubelets that restart.
type Sequence struct {
	ID          string            `json:"id"`
	Topology    json.RawMessage   `json:"topology"`
	Config      Config            `json:"config"`
	MemoryNodes []MemoryNode      `json:"memory_nodes"`
	Devices     map[string]Plugin `json:"devices"`
	Ops         []SequenceOp      `json:"ops"`
}

// Config is the kubelet's configuration.
type Config struct {
	TMPolicy         string            `json:"tm_policy"`
	TMScope          string            `json:"tm_scope"`
	TMOptions        map[string]string `json:"tm_options"`
	CPUPolicy        string            `json:"cpu_policy"`
	CPUOptions       map[string]string `json:"cpu_options"`
	ReservedCPUs     string            `json:"reserved_cpus"`
	ReservedCPUMilli int64             `json:"reserved_cpu_milli"`
	MemoryPolicy     string            `json:"memory_policy"`
	ReservedMemory   []ReservedMemory  `json:"reserved_memory"`
	PodLevelManagers bool              `json:"gate_pod_level_resource_managers"`
}

// ReservedMemory is what one zone keeps back.
type ReservedMemory struct {
	NUMA   int32            `json:"numa"`
	Limits map[string]int64 `json:"limits"`
}

// SequenceOp is one of admit, remove, start and restart.
type SequenceOp struct {
	Op  string `json:"op"`
	UID string `json:"uid,omitempty"`
	Pod *Pod   `json:"pod,omitempty"`
}

// SequenceAnswer is the life as it went. Where the managers refuse to start there is none.
type SequenceAnswer struct {
	Sequence
	InitError   string     `json:"init_error,omitempty"`
	InitialNode *Snapshot  `json:"initial_node,omitempty"`
	Ops         []OpAnswer `json:"ops,omitzero"`
}

// OpAnswer is what came of one op. Admit is nil for ops that are no admission.
type OpAnswer struct {
	SequenceOp
	Admit      *bool             `json:"admit,omitempty"`
	Reason     string            `json:"reason,omitempty"`
	Message    string            `json:"message,omitempty"`
	Containers map[string]Placed `json:"containers,omitempty"`
	PodCPUs    *string           `json:"pod_cpus,omitempty"`
	PodMemory  []Block           `json:"pod_memory,omitempty"`
	Node       *Snapshot         `json:"node,omitempty"`
	Readmit    []OpAnswer        `json:"readmit,omitempty"`
}

// Placed is what one container holds.
type Placed struct {
	Affinity        Hint                `json:"affinity"`
	ExclusiveCPUs   *string             `json:"exclusive_cpus"`
	Memory          []Block             `json:"memory"`
	Devices         map[string][]string `json:"devices,omitempty"`
	CPUIsolation    string              `json:"cpu_isolation"`
	MemoryIsolation string              `json:"memory_isolation"`
}

// Snapshot is the node right after an op.
type Snapshot struct {
	DefaultCPUs  string               `json:"default_cpus"`
	Memory       map[string]ZoneState `json:"memory,omitempty"`
	DevicesInUse map[string][]string  `json:"devices_in_use,omitempty"`
}
