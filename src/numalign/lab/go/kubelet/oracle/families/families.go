// Package families puts cases to the managers of one kubelet, one file per family.
//
// An asker reads a case from its JSON, makes fresh objects, does what the case says and returns the case with its
// outputs. What the kubelet refuses is an output; an error is a case that could not be asked. Panics and endless loops
// of the kubelet's code are left to the caller.
package families

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
)

// Bench is what cases are asked with.
type Bench struct {
	Kubelet    managers.Kubelet
	Topologies cases.Topologies
	// Folders gives fresh checkpoint folders, the device manager's among them, or says why there are none.
	Folders func() (stateDir string, err error)
}

var askers = map[string]func(*Bench, []byte) (any, error){
	"tm_merge":          asking((*Bench).merge),
	"cpu_static":        asking((*Bench).cpuStatic),
	"cpu_distribute":    asking((*Bench).cpuDistribute),
	"mem_static":        asking((*Bench).memory),
	"device_hints":      asking((*Bench).devices),
	"sequence":          asking((*Bench).sequence),
	"sequence_podlevel": asking((*Bench).sequence),
}

// Ask puts one case to the managers.
func (b *Bench) Ask(family string, line []byte) (any, error) {
	ask, known := askers[family]
	if !known {
		return nil, fmt.Errorf("family %q is not one of %s", family, strings.Join(Names(), ", "))
	}
	return ask(b, line)
}

// Names lists the families.
func Names() []string {
	var names []string
	for name := range askers {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func asking[Case, Answer any](ask func(*Bench, Case) (Answer, error)) func(*Bench, []byte) (any, error) {
	return func(b *Bench, line []byte) (any, error) {
		var given Case
		if err := json.Unmarshal(line, &given); err != nil {
			return nil, err
		}
		return ask(b, given)
	}
}

func (b *Bench) machine(topology json.RawMessage, memory []cases.MemoryNode) (managers.Machine, error) {
	found, err := b.Topologies.Find(topology)
	if err != nil {
		return nil, err
	}
	description, err := cases.Describe(found, memory)
	if err != nil {
		return nil, err
	}
	return b.Kubelet.Machine(description)
}
