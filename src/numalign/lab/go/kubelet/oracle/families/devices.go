// Family device_hints: the device manager, op by op.

package families

import (
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
	"numalign.io/lab/kubelet/oracle/plugin"
)

// deviceRun is one device manager with its plugins and pods.
type deviceRun struct {
	kubelet managers.Kubelet
	manager *devicemanager.ManagerImpl
	stored  *managers.Stored
	active  *managers.Active
	plugins map[string]*plugin.Scripted
	pods    map[string]*v1.Pod
}

func (b *Bench) devices(given cases.Device) (cases.DeviceAnswer, error) {
	answer := cases.DeviceAnswer{Device: given, Ops: []cases.DeviceOpAnswer{}}
	run, err := b.deviceRun(given)
	if err != nil {
		return answer, err
	}
	defer b.Kubelet.StopDeviceManager(run.manager)
	for i, op := range given.Ops {
		said, err := run.do(op)
		if err != nil {
			return answer, fmt.Errorf("ops[%d]: %w", i, err)
		}
		answer.Ops = append(answer.Ops, said)
	}
	return answer, nil
}

func (b *Bench) deviceRun(given cases.Device) (*deviceRun, error) {
	description, err := cases.DescribeZones(given.NUMANodes)
	if err != nil {
		return nil, err
	}
	machine, err := b.Kubelet.Machine(description)
	if err != nil {
		return nil, err
	}
	run := &deviceRun{kubelet: b.Kubelet, stored: &managers.Stored{}, active: &managers.Active{}}
	if run.pods, err = podsByUID(given.Pods); err != nil {
		return nil, err
	}
	if _, err := b.Folders(); err != nil {
		return nil, err
	}
	for _, one := range given.Pods {
		run.active.Add(run.pods[one.UID])
	}
	if run.manager, err = b.Kubelet.NewDeviceManager(machine, b.Kubelet.StoreOf(run.stored)); err != nil {
		return nil, err
	}
	if err := b.Kubelet.StartDeviceManager(run.manager, run.active.List); err != nil {
		return nil, err
	}
	run.plugins, err = connect(b.Kubelet, run.manager, given.Resources)
	return run, err
}

// connect registers a scripted plugin per resource and hands its devices over.
func connect(kubelet managers.DeviceManager, manager *devicemanager.ManagerImpl, given map[string]cases.Plugin) (map[string]*plugin.Scripted, error) {
	plugins := make(map[string]*plugin.Scripted, len(given))
	for resource, described := range given {
		scripted := plugin.New(resource, described)
		if err := kubelet.Connect(manager, scripted); err != nil {
			return nil, fmt.Errorf("plugin of %s: %w", resource, err)
		}
		kubelet.ListDevices(manager, resource, scripted.Devices())
		plugins[resource] = scripted
	}
	return plugins, nil
}

func (r *deviceRun) do(op cases.DeviceOp) (cases.DeviceOpAnswer, error) {
	said := cases.DeviceOpAnswer{DeviceOp: op}
	pod, container, err := subject(r.pods, op.Pod, op.Container)
	switch {
	case err != nil:
		return said, err
	case op.Op == "pod_hints":
		said.Hints = cases.HintMapOf(r.kubelet.PodHints(r.manager, pod))
	case op.Op == "remove_pod":
		r.active.Remove(op.Pod)
	case container == nil:
		return said, fmt.Errorf("%s needs a container", op.Op)
	case op.Op == "hints":
		said.Hints = cases.HintMapOf(r.kubelet.Hints(r.manager, pod, container))
	case op.Op == "allocate":
		return said, r.allocate(&said, pod, container)
	default:
		return said, fmt.Errorf("op %q is not known", op.Op)
	}
	return said, nil
}

func (r *deviceRun) allocate(said *cases.DeviceOpAnswer, pod *v1.Pod, container *v1.Container) error {
	if said.Affinity == nil {
		return fmt.Errorf("allocate needs an affinity")
	}
	hint, err := said.Affinity.Kubelet()
	if err != nil {
		return err
	}
	r.stored.Hint = hint
	failure := r.kubelet.Allocate(r.manager, pod, container)
	said.PreferredCalls = r.asked()
	if failure != nil {
		said.Error = failure.Error()
		return nil
	}
	said.Devices, said.ClassCounts = r.held(pod, container, said.Affinity.Mask)
	return nil
}

// asked collects the questions to all plugins, by resource: the kubelet's own order is random.
func (r *deviceRun) asked() []cases.PreferredCall {
	var calls []cases.PreferredCall
	for _, scripted := range r.plugins {
		calls = append(calls, scripted.Asked()...)
	}
	sort.SliceStable(calls, func(i, j int) bool { return calls[i].Resource < calls[j].Resource })
	return calls
}

func (r *deviceRun) held(pod *v1.Pod, container *v1.Container, mask []int) (map[string][]string, map[string]cases.ClassCounts) {
	named, counted := map[string][]string{}, map[string]cases.ClassCounts{}
	for resource, devices := range r.manager.GetDevices(string(pod.UID), container.Name) {
		scripted, known := r.plugins[resource]
		if known && !scripted.Prefers() {
			counted[resource] = scripted.Classes(cases.IDs(devices), mask)
			continue
		}
		named[resource] = cases.IDs(devices)
	}
	return named, counted
}
