// Family mem_static, and how the memory manager's state is written down in every family.

package cases

import (
	"sort"
	"strconv"

	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
)

// Memory asks the static memory policy, op by op.
type Memory struct {
	ID       string                    `json:"id"`
	Nodes    []MemoryNode              `json:"nodes"`
	Reserved map[int]map[string]uint64 `json:"reserved"`
	Pods     []Pod                     `json:"pods"`
	Ops      []MemoryOp                `json:"ops"`
}

// MemoryOp is one of pod_hints, hints, allocate and remove.
type MemoryOp struct {
	Op        string `json:"op"`
	Pod       string `json:"pod"`
	Container string `json:"container,omitempty"`
	Affinity  *Hint  `json:"affinity,omitempty"`
}

// MemoryAnswer is the state before the first op, and what came of each.
type MemoryAnswer struct {
	Memory
	InitialState map[string]MemoryZone `json:"initial_state"`
	Ops          []MemoryOpAnswer      `json:"ops"`
}

// MemoryOpAnswer is what one op said or did.
type MemoryOpAnswer struct {
	MemoryOp
	Hints        HintMap              `json:"hints"`
	PodBlocks    map[string][]Block   `json:"pod_blocks,omitempty"`
	Error        string               `json:"error,omitempty"`
	MachineState map[string]ZoneState `json:"machine_state,omitempty"`
}

// Block is memory of one type, given to a container from some zones.
type Block struct {
	NUMA []int  `json:"numa"`
	Type string `json:"type"`
	Size uint64 `json:"size"`
}

// ZoneState is a zone's state in short: what is free, and which group the zone belongs to.
type ZoneState struct {
	Assignments int               `json:"assignments"`
	Cells       []int             `json:"cells"`
	Free        map[string]uint64 `json:"free"`
}

// MemoryZone is a zone's state in full.
type MemoryZone struct {
	Assignments int                    `json:"assignments"`
	Cells       []int                  `json:"cells"`
	Memory      map[string]MemoryTable `json:"memory"`
}

// MemoryTable is the accounting of one type in one zone.
type MemoryTable struct {
	Allocatable uint64 `json:"allocatable"`
	Free        uint64 `json:"free"`
	Reserved    uint64 `json:"reserved"`
}

// BlocksOf writes blocks down in the order of their types; no blocks are nil.
func BlocksOf(held []state.Block) []Block {
	var blocks []Block
	for _, block := range held {
		zones := append([]int{}, block.NUMAAffinity...)
		blocks = append(blocks, Block{NUMA: zones, Type: string(block.Type), Size: block.Size})
	}
	sort.SliceStable(blocks, func(i, j int) bool { return blocks[i].Type < blocks[j].Type })
	return blocks
}

// ZoneStatesOf writes the machine state down in short.
func ZoneStatesOf(machine state.NUMANodeMap) map[string]ZoneState {
	zones := make(map[string]ZoneState, len(machine))
	for id, node := range machine {
		free := make(map[string]uint64, len(node.MemoryMap))
		for kind, table := range node.MemoryMap {
			free[string(kind)] = table.Free
		}
		zones[strconv.Itoa(id)] = ZoneState{Assignments: node.NumberOfAssignments, Cells: sorted(node.Cells), Free: free}
	}
	return zones
}

// MemoryZonesOf writes the machine state down in full.
func MemoryZonesOf(machine state.NUMANodeMap) map[string]MemoryZone {
	zones := make(map[string]MemoryZone, len(machine))
	for id, node := range machine {
		tables := make(map[string]MemoryTable, len(node.MemoryMap))
		for kind, table := range node.MemoryMap {
			tables[string(kind)] = MemoryTable{Allocatable: table.Allocatable, Free: table.Free, Reserved: table.Reserved}
		}
		zones[strconv.Itoa(id)] = MemoryZone{Assignments: node.NumberOfAssignments, Cells: sorted(node.Cells), Memory: tables}
	}
	return zones
}

func sorted(ids []int) []int {
	ids = append([]int{}, ids...)
	sort.Ints(ids)
	return ids
}
