// Package managers says what the oracle asks of a kubelet's code.
//
// The objects are the kubelet's own and are used directly wherever all minors agree. Constructors and calls whose
// signatures differ go through the interfaces here; each minor answers them in one adapter file, mostly line by line.
package managers

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// Machine is a minor's own cadvisor description of a machine; its type is known to the adapter only.
type Machine any

// HintMap is a manager's answer to the topology manager.
type HintMap = map[string][]topologymanager.TopologyHint

// Kubelet is all of one minor.
type Kubelet interface {
	// Machine reads a machine from cadvisor's JSON.
	Machine(description []byte) (Machine, error)
	Topology
	Provider
	CPUPolicy
	MemoryPolicy
	CPUManager
	MemoryManager
	DeviceManager
}

// Topology is the topology manager.
type Topology interface {
	NewTopologyManager(machine Machine, policy, scope string, options map[string]string) (topologymanager.Manager, error)
	Merge(policy topologymanager.Policy, hints []HintMap) (topologymanager.TopologyHint, bool)
	Register(manager topologymanager.Manager, provider topologymanager.HintProvider)
	Admit(manager topologymanager.Manager, pod *v1.Pod) lifecycle.PodAdmitResult
	Affinity(manager topologymanager.Manager, pod *v1.Pod, container *v1.Container) topologymanager.TopologyHint
	TopologyStarted(manager topologymanager.Manager, pod *v1.Pod, container *v1.Container, id string)
}

// Provider is what CPU, memory and device manager have in common.
type Provider interface {
	Hints(provider topologymanager.HintProvider, pod *v1.Pod, container *v1.Container) HintMap
	PodHints(provider topologymanager.HintProvider, pod *v1.Pod) HintMap
	Allocate(provider topologymanager.HintProvider, pod *v1.Pod, container *v1.Container) error
}
