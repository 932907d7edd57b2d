// Families sequence and sequence_podlevel: a node's life over any number of kubelet processes.

package families

import (
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
	"numalign.io/lab/oracle/program"
)

const podLevelManagers = "PodLevelResourceManagers"

// life is one node from its first pod on. Pods that were ever seen are remembered: what a pod held shows in snapshots
// until it is collected.
type life struct {
	*node
	kubelet managers.Kubelet
	site    site
	seen    []*v1.Pod
}

func (b *Bench) sequence(given cases.Sequence) (cases.SequenceAnswer, error) {
	answer := cases.SequenceAnswer{Sequence: given}
	if err := setPodLevelManagers(given.Config.PodLevelManagers); err != nil {
		return answer, err
	}
	defer setPodLevelManagers(false)
	l, err := b.life(given)
	if err != nil {
		return answer, err
	}
	if err := l.boot(); err != nil {
		answer.InitError = err.Error()
		return answer, notRefusal(err)
	}
	defer func() { _ = l.stop() }()
	answer.InitialNode = l.snapshot()
	answer.Ops = []cases.OpAnswer{}
	for i, op := range given.Ops {
		said, err := l.do(op)
		if err != nil {
			return answer, fmt.Errorf("ops[%d]: %w", i, err)
		}
		answer.Ops = append(answer.Ops, said)
		if op.Op == "restart" && said.Message != "" {
			break
		}
	}
	return answer, nil
}

func (b *Bench) life(given cases.Sequence) (*life, error) {
	machine, err := b.machine(given.Topology, given.MemoryNodes)
	if err != nil {
		return nil, err
	}
	folder, err := b.Folders()
	if err != nil {
		return nil, err
	}
	s := site{machine: machine, config: given.Config, devices: given.Devices, active: &managers.Active{}, folder: folder}
	return &life{kubelet: b.Kubelet, site: s}, nil
}

func (l *life) boot() (err error) {
	l.node, err = boot(l.kubelet, l.site)
	return err
}

func (l *life) do(op cases.SequenceOp) (cases.OpAnswer, error) {
	said := cases.OpAnswer{SequenceOp: op}
	switch op.Op {
	case "admit":
		return said, l.arrive(&said)
	case "remove":
		l.site.active.Remove(op.UID)
	case "start":
		// Starting a pod that was refused or has left starts nothing.
		if pod := l.site.active.Find(op.UID); pod != nil {
			for _, container := range cases.InOrder(pod) {
				l.started(pod, container)
			}
		}
		said.Node = l.snapshot()
	case "restart":
		return said, l.restart(&said)
	default:
		return said, fmt.Errorf("op %q is not known", op.Op)
	}
	return said, nil
}

func (l *life) arrive(said *cases.OpAnswer) error {
	if said.Pod == nil {
		return fmt.Errorf("admit needs a pod")
	}
	pod, err := said.Pod.Kubelet()
	if err != nil {
		return err
	}
	classified := *said.Pod
	classified.QoS = string(qos.GetPodQOS(pod))
	said.Pod = &classified
	l.seen = append(l.seen, pod)
	l.site.active.Add(pod)
	l.admit(pod, said)
	return nil
}

// admit runs the topology manager on an active pod; a refused pod is active no longer.
func (l *life) admit(pod *v1.Pod, said *cases.OpAnswer) {
	result := l.kubelet.Admit(l.topology, pod)
	l.describe(pod, result, said)
	if !result.Admit {
		l.site.active.Remove(string(pod.UID))
	}
}

func (l *life) describe(pod *v1.Pod, result lifecycle.PodAdmitResult, said *cases.OpAnswer) {
	said.Admit, said.Reason, said.Message = &result.Admit, result.Reason, result.Message
	said.Node = l.snapshot()
	if !result.Admit {
		return
	}
	said.Containers = map[string]cases.Placed{}
	for _, container := range cases.InOrder(pod) {
		said.Containers[container.Name] = l.placed(pod, container)
	}
	said.PodCPUs = l.podCPUs(pod)
	said.PodMemory = cases.BlocksOf(l.kubelet.PodMemory(l.memory, pod))
}

// restart is a new kubelet process on the same checkpoints. Its pods are admitted again in their old order.
func (l *life) restart(said *cases.OpAnswer) error {
	if err := l.stop(); err != nil {
		return err
	}
	if err := l.boot(); err != nil {
		said.Message = err.Error()
		return notRefusal(err)
	}
	l.collect()
	said.Node = l.snapshot()
	for _, pod := range l.site.active.List() {
		again := cases.OpAnswer{SequenceOp: cases.SequenceOp{Op: "admit", UID: string(pod.UID)}}
		l.admit(pod, &again)
		said.Readmit = append(said.Readmit, again)
	}
	return nil
}

func (l *life) snapshot() *cases.Snapshot {
	shot := &cases.Snapshot{DefaultCPUs: l.cpu.State().GetDefaultCPUSet().String(), DevicesInUse: l.inUse()}
	if l.config.MemoryPolicy == "Static" {
		shot.Memory = cases.ZoneStatesOf(l.memory.State().GetMachineState())
	}
	return shot
}

func setPodLevelManagers(on bool) error {
	if _, known := utilfeature.DefaultMutableFeatureGate.GetAll()[podLevelManagers]; !known {
		if on {
			return program.Refused{Why: "this kubelet has no gate " + podLevelManagers}
		}
		return nil
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{podLevelManagers: on})
}

// notRefusal is nil where a kubelet refused to start: that is an answer.
func notRefusal(err error) error {
	var refused *startRefusal
	if errors.As(err, &refused) {
		return nil
	}
	return err
}
