// One kubelet process of a sequence: its managers, made, wired and started.

package families

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
)

// node is the managers of one kubelet process, wired as the kubelet wires them. Its checkpoints outlive it.
type node struct {
	kubelet  managers.Kubelet
	topology topologymanager.Manager
	cpu      cpumanager.Manager
	memory   memorymanager.Manager
	device   *devicemanager.ManagerImpl
	config   cases.Config
}

// site is what a kubelet process finds when it starts.
type site struct {
	machine managers.Machine
	config  cases.Config
	devices map[string]cases.Plugin
	active  *managers.Active
	folder  string
}

// boot makes and starts the managers. The error is the kubelet's own, with the manager that refused in front.
func boot(kubelet managers.Kubelet, s site) (*node, error) {
	n := &node{kubelet: kubelet, config: s.config}
	setup, err := nodeSetup(s)
	if err != nil {
		return nil, err
	}
	if n.topology, err = kubelet.NewTopologyManager(s.machine, s.config.TMPolicy, s.config.TMScope, s.config.TMOptions); err != nil {
		return nil, refusal("topologymanager", err)
	}
	setup.Affinity = n.topology
	if n.device, err = kubelet.NewDeviceManager(s.machine, n.topology); err != nil {
		return nil, refusal("devicemanager", err)
	}
	if n.cpu, err = kubelet.NewCPUManager(setup); err != nil {
		return nil, refusal("cpumanager", err)
	}
	if n.memory, err = kubelet.NewMemoryManager(setup); err != nil {
		return nil, refusal("memorymanager", err)
	}
	// Hints are asked for and resources allocated in this order (kubelet spec 1).
	kubelet.Register(n.topology, n.device)
	kubelet.Register(n.topology, n.cpu)
	kubelet.Register(n.topology, n.memory)
	return n, n.start(s)
}

func (n *node) start(s site) error {
	list, reconciled := s.active.List, func() {}
	if s.config.CPUPolicy != string(cpumanager.PolicyNone) {
		list, reconciled = s.active.ForReconciling()
	}
	if err := n.kubelet.StartCPUManager(n.cpu, list); err != nil {
		return refusal("cpumanager", err)
	}
	reconciled()
	if err := n.kubelet.StartMemoryManager(n.memory, s.active.List); err != nil {
		return refusal("memorymanager", err)
	}
	if err := n.kubelet.StartDeviceManager(n.device, s.active.List); err != nil {
		return refusal("devicemanager", err)
	}
	_, err := connect(n.kubelet, n.device, s.devices)
	return err
}

// collect drops what inactive pods held, as each manager does before it hints or allocates; CPUs are collected at start.
// The memory manager does it when asked for hints, and a pod without containers asks for nothing else.
func (n *node) collect() {
	n.kubelet.PodHints(n.memory, &v1.Pod{})
	n.kubelet.CollectDevices(n.device)
}

// stop ends the process; nothing is written that is not in the checkpoints already. One that was never made has ended.
func (n *node) stop() error {
	if n == nil {
		return nil
	}
	return n.kubelet.StopDeviceManager(n.device)
}

// started runs the hooks for a container that is about to start.
func (n *node) started(pod *v1.Pod, container *v1.Container) {
	id := string(pod.UID) + "-" + container.Name
	n.kubelet.CPUStarted(n.cpu, pod, container, id)
	n.kubelet.MemoryStarted(n.memory, pod, container, id)
	n.kubelet.TopologyStarted(n.topology, pod, container, id)
}

// placed is what a container holds.
func (n *node) placed(pod *v1.Pod, container *v1.Container) cases.Placed {
	uid := string(pod.UID)
	return cases.Placed{
		Affinity:        cases.HintOf(n.kubelet.Affinity(n.topology, pod, container)),
		ExclusiveCPUs:   exclusive(n.cpu.State(), pod, container),
		Memory:          cases.BlocksOf(n.memory.State().GetMemoryBlocks(uid, container.Name)),
		Devices:         n.devicesOf(pod, container),
		CPUIsolation:    n.kubelet.CPUIsolation(n.cpu, pod, container),
		MemoryIsolation: n.kubelet.MemoryIsolation(n.memory, pod, container),
	}
}

func (n *node) devicesOf(pod *v1.Pod, container *v1.Container) map[string][]string {
	held := map[string][]string{}
	for resource, devices := range n.device.GetDevices(string(pod.UID), container.Name) {
		held[resource] = cases.IDs(devices)
	}
	return held
}

// podCPUs are those of a pod served as a whole, nil if there are none.
func (n *node) podCPUs(pod *v1.Pod) *string {
	cpus, held := n.kubelet.PodCPUs(n.cpu, pod)
	if !held {
		return nil
	}
	text := cpus.String()
	return &text
}

func nodeSetup(s site) (managers.NodeSetup, error) {
	c := s.config
	setup := managers.NodeSetup{
		Machine: s.machine, StateDir: s.folder,
		CPUPolicy: c.CPUPolicy, CPUOptions: c.CPUOptions, MemoryPolicy: c.MemoryPolicy,
		Reservation: v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(c.ReservedCPUMilli, resource.DecimalSI)},
	}
	var err error
	if setup.ReservedCPUs, err = cpuset.Parse(c.ReservedCPUs); err != nil {
		return setup, fmt.Errorf("config: reserved_cpus: %w", err)
	}
	for _, given := range c.ReservedMemory {
		reservation := kubeletconfig.MemoryReservation{NumaNode: given.NUMA, Limits: v1.ResourceList{}}
		for kind, size := range given.Limits {
			quantity := *resource.NewQuantity(size, resource.DecimalSI)
			reservation.Limits[v1.ResourceName(kind)] = quantity
			// What the zones keep back must add up to what the node keeps back (kubelet spec 6.8).
			total := setup.Reservation[v1.ResourceName(kind)]
			total.Add(quantity)
			setup.Reservation[v1.ResourceName(kind)] = total
		}
		setup.ReservedMemory = append(setup.ReservedMemory, reservation)
	}
	return setup, nil
}

// startRefusal is a kubelet that does not start: an answer, unlike other errors.
type startRefusal struct {
	manager string
	err     error
}

func refusal(manager string, err error) error { return &startRefusal{manager: manager, err: err} }

func (r *startRefusal) Error() string { return r.manager + " start: " + r.err.Error() }
