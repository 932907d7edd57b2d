// Machines as the kubelet learns of them: through cadvisor.

package cases

import "encoding/json"

// Minors import cadvisor's types from different places, but the JSON is one and the same: machines travel to the
// managers in that form.
type cadvisorMachine struct {
	NumCores   int            `json:"num_cores"`
	NumSockets int            `json:"num_sockets"`
	Topology   []cadvisorNode `json:"topology"`
}

type cadvisorNode struct {
	ID        int            `json:"node_id"`
	Memory    uint64         `json:"memory"`
	HugePages []cadvisorHuge `json:"hugepages"`
	Cores     []cadvisorCore `json:"cores"`
	Distances []uint64       `json:"distances"`
}

type cadvisorHuge struct {
	PageSize uint64 `json:"page_size"`
	NumPages uint64 `json:"num_pages"`
}

type cadvisorCore struct {
	ID       int             `json:"core_id"`
	Threads  []int           `json:"thread_ids"`
	Uncore   []cadvisorCache `json:"uncore_caches"`
	SocketID int             `json:"socket_id"`
}

type cadvisorCache struct {
	ID    int    `json:"id"`
	Type  string `json:"type"`
	Level int    `json:"level"`
}

// Describe puts CPUs and memory together into the description that cadvisor would give of the machine. Zones that
// only have memory follow those of the topology.
func Describe(topology Topology, memory []MemoryNode) ([]byte, error) {
	machine := cadvisorMachine{NumCores: topology.NumCPUs, NumSockets: topology.NumSockets}
	position := map[int]int{}
	for _, zone := range topology.NUMA {
		position[zone.ID] = len(machine.Topology)
		machine.Topology = append(machine.Topology, cadvisorNode{ID: zone.ID, Distances: zone.Distances, Cores: cores(zone)})
	}
	for _, node := range memory {
		at, known := position[node.ID]
		if !known {
			at = len(machine.Topology)
			machine.Topology = append(machine.Topology, cadvisorNode{ID: node.ID})
		}
		machine.Topology[at].Memory = node.Memory
		machine.Topology[at].HugePages = hugePages(node)
	}
	return json.Marshal(machine)
}

// DescribeZones is a machine of which only the zones matter.
func DescribeZones(ids []int) ([]byte, error) {
	machine := cadvisorMachine{}
	for _, id := range ids {
		machine.Topology = append(machine.Topology, cadvisorNode{ID: id})
	}
	return json.Marshal(machine)
}

func cores(zone Zone) []cadvisorCore {
	listed := make([]cadvisorCore, len(zone.Cores))
	for i, core := range zone.Cores {
		listed[i] = cadvisorCore{ID: i, Threads: core.CPUs, SocketID: core.Socket}
		if core.Uncore != nil {
			listed[i].Uncore = []cadvisorCache{{ID: *core.Uncore, Type: "Unified", Level: 3}}
		}
	}
	return listed
}

func hugePages(node MemoryNode) []cadvisorHuge {
	pages := make([]cadvisorHuge, len(node.HugePages))
	for i, size := range node.HugePages {
		pages[i] = cadvisorHuge{PageSize: size.PageSizeKB, NumPages: size.NumPages}
	}
	return pages
}
