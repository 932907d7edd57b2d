// Family mem_static: the static memory policy, op by op.

package families

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
)

// memoryRun is one static memory policy and its pods.
type memoryRun struct {
	kubelet managers.Kubelet
	policy  memorymanager.Policy
	state   state.State
	stored  *managers.Stored
	pods    map[string]*v1.Pod
}

func (b *Bench) memory(given cases.Memory) (cases.MemoryAnswer, error) {
	answer := cases.MemoryAnswer{Memory: given, Ops: []cases.MemoryOpAnswer{}}
	run, err := b.memoryRun(given)
	if err != nil {
		return answer, err
	}
	answer.InitialState = cases.MemoryZonesOf(run.state.GetMachineState())
	for i, op := range given.Ops {
		said, err := run.do(op)
		if err != nil {
			return answer, fmt.Errorf("ops[%d]: %w", i, err)
		}
		answer.Ops = append(answer.Ops, said)
	}
	return answer, nil
}

func (b *Bench) memoryRun(given cases.Memory) (*memoryRun, error) {
	description, err := cases.Describe(cases.Topology{}, given.Nodes)
	if err != nil {
		return nil, err
	}
	machine, err := b.Kubelet.Machine(description)
	if err != nil {
		return nil, err
	}
	run := &memoryRun{kubelet: b.Kubelet, stored: &managers.Stored{}, state: b.Kubelet.NewMemoryState()}
	if run.pods, err = podsByUID(given.Pods); err != nil {
		return nil, err
	}
	if run.policy, err = b.Kubelet.NewMemoryPolicy(machine, reserved(given), run.stored, run.state); err != nil {
		return nil, fmt.Errorf("the policy does not start: %w", err)
	}
	return run, nil
}

func (r *memoryRun) do(op cases.MemoryOp) (cases.MemoryOpAnswer, error) {
	said := cases.MemoryOpAnswer{MemoryOp: op}
	pod, container, err := subject(r.pods, op.Pod, op.Container)
	if err != nil {
		return said, err
	}
	switch {
	case op.Op == "pod_hints":
		said.Hints = cases.HintMapOf(r.kubelet.MemoryPodHints(r.policy, r.state, pod))
		return said, nil
	case container == nil:
		return said, fmt.Errorf("%s needs a container", op.Op)
	case op.Op == "hints":
		said.Hints = cases.HintMapOf(r.kubelet.MemoryHints(r.policy, r.state, pod, container))
		return said, nil
	case op.Op == "allocate":
		err = r.allocate(&said, pod, container)
	case op.Op == "remove":
		r.kubelet.MemoryRemove(r.policy, r.state, op.Pod, op.Container)
	default:
		err = fmt.Errorf("op %q is not known", op.Op)
	}
	said.MachineState = cases.ZoneStatesOf(r.state.GetMachineState())
	return said, err
}

func (r *memoryRun) allocate(said *cases.MemoryOpAnswer, pod *v1.Pod, container *v1.Container) error {
	if said.Affinity == nil {
		return fmt.Errorf("allocate needs an affinity")
	}
	hint, err := said.Affinity.Kubelet()
	if err != nil {
		return err
	}
	r.stored.Hint = hint
	if err := r.kubelet.MemoryAllocate(r.policy, r.state, pod, container); err != nil {
		said.Error = err.Error()
	}
	for name, blocks := range r.state.GetMemoryAssignments()[string(pod.UID)] {
		if said.PodBlocks == nil {
			said.PodBlocks = map[string][]cases.Block{}
		}
		said.PodBlocks[name] = cases.BlocksOf(blocks)
	}
	return nil
}

func reserved(given cases.Memory) managers.MemoryReserved {
	withheld := managers.MemoryReserved{}
	for id, kinds := range given.Reserved {
		withheld[id] = map[v1.ResourceName]uint64{}
		for kind, size := range kinds {
			withheld[id][v1.ResourceName(kind)] = size
		}
	}
	return withheld
}

func podsByUID(given []cases.Pod) (map[string]*v1.Pod, error) {
	pods := make(map[string]*v1.Pod, len(given))
	for _, one := range given {
		pod, err := one.Kubelet()
		if err != nil {
			return nil, err
		}
		pods[one.UID] = pod
	}
	return pods, nil
}

// subject is the pod and, where one is named, the container that an op is about.
func subject(pods map[string]*v1.Pod, uid, name string) (*v1.Pod, *v1.Container, error) {
	pod, known := pods[uid]
	if !known {
		return nil, nil, fmt.Errorf("pod %q is not among the pods", uid)
	}
	if name == "" {
		return pod, nil, nil
	}
	container, err := cases.Find(pod, name)
	return pod, container, err
}
