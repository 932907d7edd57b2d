// Managers with their checkpoints, as a kubelet process has them.

package managers

import (
	v1 "k8s.io/api/core/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// Isolation levels, for minors that do not name them.
const (
	IsolationHost      = "host"
	IsolationPod       = "pod"
	IsolationContainer = "container"
)

// IsolatedIf is the level of a container before pods could be served as a whole: its own where it holds something.
func IsolatedIf(held bool) string {
	if held {
		return IsolationContainer
	}
	return IsolationHost
}

// NodeSetup is what CPU and memory manager are made of.
type NodeSetup struct {
	Machine        Machine
	Affinity       topologymanager.Store
	StateDir       string
	Reservation    v1.ResourceList
	CPUPolicy      string
	CPUOptions     map[string]string
	ReservedCPUs   cpuset.CPUSet
	MemoryPolicy   string
	ReservedMemory []kubeletconfig.MemoryReservation
}

// CPUManager is the CPU manager with its checkpoint.
type CPUManager interface {
	NewCPUManager(setup NodeSetup) (cpumanager.Manager, error)
	StartCPUManager(manager cpumanager.Manager, active cpumanager.ActivePodsFunc) error
	CPUStarted(manager cpumanager.Manager, pod *v1.Pod, container *v1.Container, id string)
	CPUIsolation(manager cpumanager.Manager, pod *v1.Pod, container *v1.Container) string
	// PodCPUs are those of a pod that is served as a whole.
	PodCPUs(manager cpumanager.Manager, pod *v1.Pod) (cpuset.CPUSet, bool)
}

// MemoryManager is the memory manager with its checkpoint.
type MemoryManager interface {
	NewMemoryManager(setup NodeSetup) (memorymanager.Manager, error)
	StartMemoryManager(manager memorymanager.Manager, active memorymanager.ActivePodsFunc) error
	MemoryStarted(manager memorymanager.Manager, pod *v1.Pod, container *v1.Container, id string)
	MemoryIsolation(manager memorymanager.Manager, pod *v1.Pod, container *v1.Container) string
	// PodMemory is that of a pod that is served as a whole.
	PodMemory(manager memorymanager.Manager, pod *v1.Pod) []memorystate.Block
}

// DeviceManager is the device manager with its checkpoint; its folder is fixed in the kubelet's code.
type DeviceManager interface {
	NewDeviceManager(machine Machine, affinity topologymanager.Store) (*devicemanager.ManagerImpl, error)
	// StoreOf makes a store of a single hint.
	StoreOf(stored *Stored) topologymanager.Store
	StartDeviceManager(manager *devicemanager.ManagerImpl, active devicemanager.ActivePodsFunc) error
	StopDeviceManager(manager *devicemanager.ManagerImpl) error
	Connect(manager *devicemanager.ManagerImpl, plugin plugin.DevicePlugin) error
	ListDevices(manager *devicemanager.ManagerImpl, resource string, devices []*pluginapi.Device)
	// CollectDevices frees what inactive pods hold.
	CollectDevices(manager *devicemanager.ManagerImpl)
}
