// Families cpu_static and cpu_distribute.

package cases

import "encoding/json"

// CPU asks the static CPU policy to place one pod on a machine that is partly taken.
type CPU struct {
	ID           string                       `json:"id"`
	Topology     json.RawMessage              `json:"topology"`
	Options      map[string]string            `json:"options"`
	TMPolicy     string                       `json:"tm_policy"`
	NumReserved  int                          `json:"num_reserved"`
	ReservedCPUs string                       `json:"reserved_cpus"`
	Default      string                       `json:"default"`
	Assignments  map[string]map[string]string `json:"assignments"`
	Pod          *Pod                         `json:"pod,omitempty"`
	Steps        []CPUStep                    `json:"steps"`
	Removals     []CPURemoval                 `json:"removals"`
}

// CPUStep allocates one container; the affinity is what the topology manager would have stored for it.
type CPUStep struct {
	Container string `json:"container"`
	Affinity  Hint   `json:"affinity"`
}

// CPURemoval removes one container.
type CPURemoval struct {
	Container string `json:"container"`
}

// CPUAnswer tells what was hinted and taken. After a policy error nothing else is meaningful.
type CPUAnswer struct {
	CPU
	PolicyError   string             `json:"policy_error,omitempty"`
	Allocatable   string             `json:"allocatable"`
	PodHints      HintMap            `json:"pod_hints"`
	Steps         []CPUStepAnswer    `json:"steps,omitempty"`
	PodHintsAfter HintMap            `json:"pod_hints_after"`
	Removals      []CPURemovalAnswer `json:"removals,omitempty"`
}

// CPUStepAnswer is one container's share; nil CPUs means that it runs on the shared set.
type CPUStepAnswer struct {
	CPUStep
	Hints        HintMap `json:"hints"`
	CPUs         *string `json:"cpus"`
	Error        string  `json:"error,omitempty"`
	ErrorType    string  `json:"error_type,omitempty"`
	DefaultAfter string  `json:"default_after"`
}

// CPURemovalAnswer is the shared set once the container is gone.
type CPURemovalAnswer struct {
	CPURemoval
	DefaultAfter string `json:"default_after"`
}
