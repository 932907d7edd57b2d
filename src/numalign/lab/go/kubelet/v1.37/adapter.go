// Signatures of Kubernetes 1.37: how its managers are made and called.

package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/lib/model"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"
	"numalign.io/lab/kubelet/oracle/managers"
)

// kubelet answers managers.Kubelet for 1.37: every call takes a logger or a context, and most the operation.
type kubelet struct{}

var (
	logger  = logr.Discard()
	ctx     = context.Background()
	running = containermap.NewContainerMap
	add     = lifecycle.AddOperation
)

type store struct{ *managers.Stored }

func (s store) GetAffinity(logr.Logger, string, string) topologymanager.TopologyHint { return s.Hint }

func (kubelet) StoreOf(stored *managers.Stored) topologymanager.Store { return store{stored} }

func (kubelet) Machine(description []byte) (managers.Machine, error) {
	info := &cadvisorapi.MachineInfo{}
	return info, json.Unmarshal(description, info)
}

func info(machine managers.Machine) *cadvisorapi.MachineInfo {
	return machine.(*cadvisorapi.MachineInfo)
}

func (kubelet) NewTopologyManager(machine managers.Machine, policy, scope string, options map[string]string) (topologymanager.Manager, error) {
	return topologymanager.NewManager(logger, info(machine).Topology, policy, scope, options)
}

func (kubelet) Merge(policy topologymanager.Policy, hints []managers.HintMap) (topologymanager.TopologyHint, bool) {
	return policy.Merge(logger, hints)
}

func (kubelet) Register(manager topologymanager.Manager, provider topologymanager.HintProvider) {
	manager.AddHintProvider(logger, provider)
}

func (kubelet) Admit(manager topologymanager.Manager, pod *v1.Pod) lifecycle.PodAdmitResult {
	return manager.Admit(ctx, &lifecycle.PodAdmitAttributes{Pod: pod, Operation: add})
}

func (kubelet) Affinity(manager topologymanager.Manager, pod *v1.Pod, container *v1.Container) topologymanager.TopologyHint {
	return manager.GetAffinity(logger, string(pod.UID), container.Name)
}

func (kubelet) TopologyStarted(manager topologymanager.Manager, pod *v1.Pod, container *v1.Container, id string) {
	manager.AddContainer(logger, pod, container, id)
}

func (kubelet) Hints(provider topologymanager.HintProvider, pod *v1.Pod, container *v1.Container) managers.HintMap {
	return provider.GetTopologyHints(logger, pod, container, add)
}

func (kubelet) PodHints(provider topologymanager.HintProvider, pod *v1.Pod) managers.HintMap {
	return provider.GetPodTopologyHints(logger, pod, add)
}

func (kubelet) Allocate(provider topologymanager.HintProvider, pod *v1.Pod, container *v1.Container) error {
	return provider.Allocate(ctx, pod, container, add)
}

func (kubelet) NewCPUState() cpustate.State { return cpustate.NewMemoryState(logger) }

func (kubelet) NewCPUPolicy(setup managers.CPUSetup) (cpumanager.Policy, error) {
	topology, err := cputopology.Discover(logger, info(setup.Machine))
	if err != nil {
		return nil, err
	}
	return cpumanager.NewStaticPolicy(logger, topology, setup.NumReserved, setup.Reserved, store{setup.Stored}, setup.Options)
}

func (kubelet) CPUHints(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod, container *v1.Container) managers.HintMap {
	return policy.GetTopologyHints(logger, state, pod, container, add)
}

func (kubelet) CPUPodHints(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod) managers.HintMap {
	return policy.GetPodTopologyHints(logger, state, pod, add)
}

func (kubelet) CPUAllocate(policy cpumanager.Policy, state cpustate.State, pod *v1.Pod, container *v1.Container) error {
	return policy.Allocate(logger, state, pod, container, add)
}

func (kubelet) CPURemove(policy cpumanager.Policy, state cpustate.State, uid, container string) error {
	return policy.RemoveContainer(logger, state, uid, container)
}

func (kubelet) NewMemoryState() memorystate.State { return memorystate.NewMemoryState(logger) }

func (kubelet) NewMemoryPolicy(machine managers.Machine, reserved managers.MemoryReserved, stored *managers.Stored, state memorystate.State) (memorymanager.Policy, error) {
	policy, err := memorymanager.NewPolicyStatic(logger, info(machine), reserved, store{stored})
	if err != nil {
		return nil, err
	}
	return policy, policy.Start(logger, state)
}

func (kubelet) MemoryHints(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod, container *v1.Container) managers.HintMap {
	return policy.GetTopologyHints(logger, state, pod, container, add)
}

func (kubelet) MemoryPodHints(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod) managers.HintMap {
	return policy.GetPodTopologyHints(logger, state, pod, add)
}

func (kubelet) MemoryAllocate(policy memorymanager.Policy, state memorystate.State, pod *v1.Pod, container *v1.Container) error {
	return policy.Allocate(ctx, state, pod, container, add)
}

func (kubelet) MemoryRemove(policy memorymanager.Policy, state memorystate.State, uid, container string) {
	policy.RemoveContainer(logger, state, uid, container)
}

func (kubelet) NewCPUManager(s managers.NodeSetup) (cpumanager.Manager, error) {
	return cpumanager.NewManager(logger, s.CPUPolicy, s.CPUOptions, time.Hour, info(s.Machine), s.ReservedCPUs, s.Reservation, s.StateDir, s.Affinity)
}

func (kubelet) StartCPUManager(manager cpumanager.Manager, active cpumanager.ActivePodsFunc) error {
	return manager.Start(ctx, active, managers.Ready{}, nil, nil, running())
}

func (kubelet) CPUStarted(manager cpumanager.Manager, pod *v1.Pod, container *v1.Container, id string) {
	manager.AddContainer(logger, pod, container, id)
}

func (kubelet) CPUIsolation(manager cpumanager.Manager, pod *v1.Pod, container *v1.Container) string {
	return string(manager.GetResourceIsolationLevel(pod, container))
}

func (kubelet) PodCPUs(manager cpumanager.Manager, pod *v1.Pod) (cpuset.CPUSet, bool) {
	return manager.State().GetPodCPUSet(string(pod.UID))
}

func (kubelet) NewMemoryManager(s managers.NodeSetup) (memorymanager.Manager, error) {
	return memorymanager.NewManager(logger, s.MemoryPolicy, info(s.Machine), s.Reservation, s.ReservedMemory, s.StateDir, s.Affinity)
}

func (kubelet) StartMemoryManager(manager memorymanager.Manager, active memorymanager.ActivePodsFunc) error {
	return manager.Start(ctx, active, managers.Ready{}, nil, nil, running())
}

func (kubelet) MemoryStarted(manager memorymanager.Manager, pod *v1.Pod, container *v1.Container, id string) {
	manager.AddContainer(logger, pod, container, id)
}

func (kubelet) MemoryIsolation(manager memorymanager.Manager, pod *v1.Pod, container *v1.Container) string {
	return string(manager.GetResourceIsolationLevel(pod, container))
}

func (kubelet) PodMemory(manager memorymanager.Manager, pod *v1.Pod) []memorystate.Block {
	return manager.State().GetPodMemoryBlocks(string(pod.UID))
}

func (kubelet) NewDeviceManager(machine managers.Machine, affinity topologymanager.Store) (*devicemanager.ManagerImpl, error) {
	return devicemanager.NewManagerImpl(logger, info(machine).Topology, affinity)
}

func (kubelet) StartDeviceManager(manager *devicemanager.ManagerImpl, active devicemanager.ActivePodsFunc) error {
	return manager.Start(logger, active, managers.Ready{}, running(), sets.New[string]())
}

func (kubelet) StopDeviceManager(manager *devicemanager.ManagerImpl) error {
	return manager.Stop(logger)
}

func (kubelet) Connect(manager *devicemanager.ManagerImpl, p plugin.DevicePlugin) error {
	return manager.PluginConnected(ctx, p.Resource(), p)
}

func (kubelet) ListDevices(manager *devicemanager.ManagerImpl, resource string, devices []*pluginapi.Device) {
	manager.PluginListAndWatchReceiver(logger, resource, &pluginapi.ListAndWatchResponse{Devices: devices})
}

func (kubelet) CollectDevices(manager *devicemanager.ManagerImpl) {
	manager.UpdateAllocatedDevices(logger)
}
