// Static policies of CPU and memory manager, asked without a manager around them.

package managers

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// Stored is the topology manager as a policy sees it: one hint, whoever asks, and the name of a policy. The adapter adds
// GetAffinity, whose arguments differ.
type Stored struct {
	Hint   topologymanager.TopologyHint
	Policy topologymanager.Policy
}

// GetPolicy is the topology manager's policy.
func (s *Stored) GetPolicy() topologymanager.Policy { return s.Policy }

// Name is the scope; minors that ask for it have a constant for it, but not all have one.
func (s *Stored) Name() string { return "container" }

// CPUSetup is what a static CPU policy is made of.
type CPUSetup struct {
	Machine     Machine
	NumReserved int
	Reserved    cpuset.CPUSet
	Options     map[string]string
	Stored      *Stored
}

// CPUPolicy is the static CPU policy without its manager, on a state in memory.
type CPUPolicy interface {
	NewCPUState() cpustate.State
	NewCPUPolicy(setup CPUSetup) (cpumanager.Policy, error)
	CPUHints(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod, container *v1.Container) HintMap
	CPUPodHints(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod) HintMap
	CPUAllocate(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod, container *v1.Container) error
	CPURemove(policy cpumanager.Policy, state cpustate.State, uid, container string) error
}

// MemoryReserved is the system's share of memory by zone and type.
type MemoryReserved = map[int]map[v1.ResourceName]uint64

// MemoryPolicy is the static memory policy without its manager, on a state in memory.
type MemoryPolicy interface {
	NewMemoryState() memorystate.State
	// NewMemoryPolicy also starts the policy, which fills the state.
	NewMemoryPolicy(machine Machine, reserved MemoryReserved, stored *Stored, state memorystate.State) (memorymanager.Policy, error)
	MemoryHints(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod, container *v1.Container) HintMap
	MemoryPodHints(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod) HintMap
	MemoryAllocate(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod, container *v1.Container) error
	MemoryRemove(policy memorymanager.Policy, state memorystate.State, uid, container string)
}
