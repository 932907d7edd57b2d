// Machines as cases describe them, by name or in full.

package cases

import (
	"encoding/json"
	"fmt"
	"os"
)

// Topology is a machine's CPUs, zone by zone.
type Topology struct {
	Name       string `json:"name"`
	NumCPUs    int    `json:"num_cpus"`
	NumSockets int    `json:"num_sockets"`
	NUMA       []Zone `json:"numa"`
}

// Zone is one NUMA node; distances are indexed by node id.
type Zone struct {
	ID        int      `json:"id"`
	Distances []uint64 `json:"distances"`
	Cores     []Core   `json:"cores"`
}

// Core is a physical core; without an uncore cache the kubelet takes the socket for one.
type Core struct {
	Socket int   `json:"socket"`
	Uncore *int  `json:"uncore"`
	CPUs   []int `json:"cpus"`
}

// MemoryNode is the memory of one zone.
type MemoryNode struct {
	ID        int         `json:"id"`
	Memory    uint64      `json:"memory"`
	HugePages []HugePages `json:"hugepages"`
}

// HugePages are the pages of one size in one zone.
type HugePages struct {
	PageSizeKB uint64 `json:"page_size_kb"`
	NumPages   uint64 `json:"num_pages"`
}

// Topologies are the machines that cases may name.
type Topologies map[string]Topology

// ReadTopologies reads a table of machines: a JSON array of topologies.
func ReadTopologies(path string) (Topologies, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var listed []Topology
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	table := make(Topologies, len(listed))
	for _, topology := range listed {
		table[topology.Name] = topology
	}
	return table, nil
}

// Find reads a case's topology: the name of one in the table, or the machine itself.
func (t Topologies) Find(given json.RawMessage) (Topology, error) {
	var name string
	if json.Unmarshal(given, &name) == nil && name != "" {
		if found, known := t[name]; known {
			return found, nil
		}
		return Topology{}, fmt.Errorf("topology %q is not in the table of machines; give the table or the machine itself", name)
	}
	var topology Topology
	if err := json.Unmarshal(given, &topology); err != nil {
		return Topology{}, fmt.Errorf("topology: neither a name nor a machine: %w", err)
	}
	return topology, nil
}
