// Families cpu_static and cpu_distribute: the static CPU policy, container by container.

package families

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/admission"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
)

// cpuRun is one static CPU policy and the pod that it places.
type cpuRun struct {
	kubelet managers.Kubelet
	policy  cpumanager.Policy
	state   state.State
	stored  *managers.Stored
	pod     *v1.Pod
	hinting bool
}

func (b *Bench) cpuStatic(given cases.CPU) (cases.CPUAnswer, error) { return b.cpu(given, true) }

// cpuDistribute leaves the hints out: with up to eight zones they would be most of the answer.
func (b *Bench) cpuDistribute(given cases.CPU) (cases.CPUAnswer, error) { return b.cpu(given, false) }

func (b *Bench) cpu(given cases.CPU, hinting bool) (cases.CPUAnswer, error) {
	answer := cases.CPUAnswer{CPU: given}
	run := &cpuRun{kubelet: b.Kubelet, hinting: hinting}
	setup, err := b.cpuSetup(given)
	if err != nil {
		return answer, err
	}
	run.stored = setup.Stored
	if run.policy, err = b.Kubelet.NewCPUPolicy(setup); err != nil {
		answer.PolicyError = err.Error()
		return answer, nil
	}
	if given.Pod == nil {
		return answer, fmt.Errorf("pod: missing")
	}
	if run.pod, err = given.Pod.Kubelet(); err != nil {
		return answer, err
	}
	if err := run.fill(given); err != nil {
		return answer, err
	}
	return answer, run.walk(&answer)
}

func (b *Bench) cpuSetup(given cases.CPU) (managers.CPUSetup, error) {
	setup := managers.CPUSetup{NumReserved: given.NumReserved, Options: given.Options, Stored: &managers.Stored{}}
	var err error
	if setup.Machine, err = b.machine(given.Topology, nil); err != nil {
		return setup, err
	}
	if setup.Reserved, err = cpuset.Parse(given.ReservedCPUs); err != nil {
		return setup, fmt.Errorf("reserved_cpus: %w", err)
	}
	info := &topologymanager.NUMAInfo{}
	setup.Stored.Policy, err = policyNamed(given.TMPolicy, info, topologymanager.PolicyOptions{})
	return setup, err
}

// fill puts the policy's state where the case wants it.
func (r *cpuRun) fill(given cases.CPU) error {
	shared, err := cpuset.Parse(given.Default)
	if err != nil {
		return fmt.Errorf("default: %w", err)
	}
	taken := state.ContainerCPUAssignments{}
	for uid, containers := range given.Assignments {
		taken[uid] = map[string]cpuset.CPUSet{}
		for name, text := range containers {
			if taken[uid][name], err = cpuset.Parse(text); err != nil {
				return fmt.Errorf("assignments of %s, %s: %w", uid, name, err)
			}
		}
	}
	r.state = r.kubelet.NewCPUState()
	r.state.SetDefaultCPUSet(shared)
	r.state.SetCPUAssignments(taken)
	return nil
}

func (r *cpuRun) walk(answer *cases.CPUAnswer) error {
	answer.Allocatable = r.policy.GetAllocatableCPUs(r.state).String()
	answer.PodHints = r.podHints()
	for _, step := range answer.CPU.Steps {
		said, err := r.step(step)
		if err != nil {
			return err
		}
		answer.Steps = append(answer.Steps, said)
		if said.Error != "" {
			break
		}
	}
	answer.PodHintsAfter = r.podHints()
	for _, removal := range answer.CPU.Removals {
		// Only who holds CPUs gives some back; who does is not known when a case is made up.
		if _, held := r.state.GetCPUSet(string(r.pod.UID), removal.Container); !held {
			continue
		}
		if err := r.kubelet.CPURemove(r.policy, r.state, string(r.pod.UID), removal.Container); err != nil {
			return fmt.Errorf("removing %s: %w", removal.Container, err)
		}
		shared := r.state.GetDefaultCPUSet().String()
		answer.Removals = append(answer.Removals, cases.CPURemovalAnswer{CPURemoval: removal, DefaultAfter: shared})
	}
	return nil
}

func (r *cpuRun) step(step cases.CPUStep) (cases.CPUStepAnswer, error) {
	said := cases.CPUStepAnswer{CPUStep: step}
	container, err := cases.Find(r.pod, step.Container)
	if err != nil {
		return said, err
	}
	if r.hinting {
		said.Hints = cases.HintMapOf(r.kubelet.CPUHints(r.policy, r.state, r.pod, container))
	}
	if r.stored.Hint, err = step.Affinity.Kubelet(); err != nil {
		return said, fmt.Errorf("affinity of %s: %w", step.Container, err)
	}
	if err := r.kubelet.CPUAllocate(r.policy, r.state, r.pod, container); err != nil {
		said.Error, said.ErrorType = err.Error(), admission.GetPodAdmitResult(err).Reason
	}
	said.CPUs = exclusive(r.state, r.pod, container)
	said.DefaultAfter = r.state.GetDefaultCPUSet().String()
	return said, nil
}

func (r *cpuRun) podHints() cases.HintMap {
	if !r.hinting {
		return nil
	}
	return cases.HintMapOf(r.kubelet.CPUPodHints(r.policy, r.state, r.pod))
}

// exclusive is the CPU set recorded for a container, nil if there is none.
func exclusive(state state.Reader, pod *v1.Pod, container *v1.Container) *string {
	cpus, held := state.GetCPUSet(string(pod.UID), container.Name)
	if !held {
		return nil
	}
	text := cpus.String()
	return &text
}
