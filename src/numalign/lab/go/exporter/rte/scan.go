// Package rte asks the packages of the resource topology exporter.
package rte

import (
	"fmt"
	"strconv"

	"github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2/helper/attribute"
	"github.com/k8stopologyawareschedwg/podfingerprint"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/resourcemonitor"
	"github.com/k8stopologyawareschedwg/resource-topology-exporter/pkg/sysinfo"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"numalign.io/lab/exporter/node"
	"numalign.io/lab/exporter/sysfs"
)

// scanned is a row of exporter.scan.
type scanned struct {
	Node        string                      `json:"node"`
	Topology    node.Topology               `json:"topology"`
	SysMemory   map[string]map[string]int64 `json:"sys_memory"`
	Allocatable node.Allocatable            `json:"allocatable"`
	Pods        []node.Pod                  `json:"pods"`
	Exclude     map[string][]string         `json:"exclude"`
	Namespace   string                      `json:"namespace"`
	Method      string                      `json:"fingerprint_method"`
}

// scan asks for one report; separated is why there is no /sys to write to, if so.
func scan(separated error) func(scanned) (any, error) {
	return func(row scanned) (any, error) {
		if separated != nil {
			return nil, separated
		}
		files, err := memoryFiles(row)
		if err != nil {
			return nil, err
		}
		if err := sysfs.Write(files); err != nil {
			return nil, err
		}
		args := resourcemonitor.Args{Namespace: row.Namespace, PodSetFingerprint: true, PodSetFingerprintMethod: row.Method}
		monitor, err := resourcemonitor.NewResourceMonitor(
			resourcemonitor.Handle{PodResCli: node.Kubelet{Allocatable: row.Allocatable, Pods: row.Pods}},
			args,
			resourcemonitor.WithTopology(row.Topology.Info()),
			resourcemonitor.WithNodeName(row.Node),
		)
		if err != nil {
			return nil, err
		}
		found, err := monitor.Scan(row.Exclude)
		if err != nil {
			return nil, err
		}
		signature, _ := attribute.Get(found.Attributes, podfingerprint.Attribute)
		return node.Columns{"zones": node.Zones(found.Zones), "fingerprint": signature.Value}, nil
	}
}

// memoryFiles are the files in which RTE finds these amounts.
func memoryFiles(row scanned) (map[string]string, error) {
	files := map[string]string{}
	for _, zone := range row.Topology.Nodes {
		folder := fmt.Sprintf("devices/system/node/node%d/", zone.ID)
		total := row.SysMemory["memory"][strconv.Itoa(zone.ID)]
		files[folder+"meminfo"] = fmt.Sprintf("Node %d MemTotal:       %d kB\n", zone.ID, total>>10)
		files[folder+"hugepages/"] = ""
		for kind, amounts := range row.SysMemory {
			amount, told := amounts[strconv.Itoa(zone.ID)]
			if kind == "memory" || !told {
				continue
			}
			size, err := quantity.ParseQuantity(kind[len("hugepages-"):])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", kind, err)
			}
			file := fmt.Sprintf("%shugepages/hugepages-%dkB/nr_hugepages", folder, size.Value()>>10)
			files[file] = fmt.Sprintf("%d\n", amount/size.Value())
		}
	}
	return files, nil
}

// treed is a row of sysinfo.memory_tree.
type treed struct {
	Files map[string]string `json:"files"`
}

func tree(row treed, folder string) (any, error) {
	files := map[string]string{}
	for path, text := range row.Files {
		files["sys/"+path] = text
	}
	if err := sysfs.WriteBelow(folder, files); err != nil {
		return nil, err
	}
	found, err := sysinfo.GetMemoryResourceCounters(sysinfo.Handle{Root: folder})
	if err != nil {
		return node.Columns{"error": true}, nil
	}
	return node.Columns{"bytes_per_numa": found}, nil
}
