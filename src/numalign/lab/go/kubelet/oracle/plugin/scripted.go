// Package plugin is a device plugin that prefers by a simple rule, in the place of one behind a socket.
//
// The device manager reaches plugins through a gRPC client interface; Scripted is that client, so that no call leaves
// the process. Asked for a preferred allocation it answers with the devices that must be included and then the
// smallest ids, and keeps the question.
package plugin

import (
	"context"
	"slices"
	"sort"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"numalign.io/lab/kubelet/oracle/cases"
)

// Scripted serves one resource.
type Scripted struct {
	pluginapi.DevicePluginClient // nil: what is not defined below is never called

	resource string
	prefers  bool
	units    []cases.DeviceUnit
	asked    []cases.PreferredCall
}

// New is a plugin for the resource as the case describes it.
func New(resource string, given cases.Plugin) *Scripted {
	return &Scripted{resource: resource, prefers: given.PreferredAllocation, units: given.Devices}
}

// API is the client that the device manager calls.
func (s *Scripted) API() pluginapi.DevicePluginClient { return s }

// Resource is the name of the resource.
func (s *Scripted) Resource() string { return s.resource }

// SocketPath is where a real plugin would listen.
func (s *Scripted) SocketPath() string { return pluginapi.DevicePluginPath + "scripted.sock" }

// Devices is what the plugin lists.
func (s *Scripted) Devices() []*pluginapi.Device {
	devices := make([]*pluginapi.Device, len(s.units))
	for i, unit := range s.units {
		devices[i] = &pluginapi.Device{ID: unit.ID, Health: health(unit), Topology: topology(unit)}
	}
	return devices
}

// Asked returns the questions since the last call.
func (s *Scripted) Asked() []cases.PreferredCall {
	asked := s.asked
	s.asked = nil
	return asked
}

// GetDevicePluginOptions says whether the plugin has preferences.
func (s *Scripted) GetDevicePluginOptions(context.Context, *pluginapi.Empty, ...grpc.CallOption) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: s.prefers}, nil
}

// GetPreferredAllocation follows the rule and keeps the question.
func (s *Scripted) GetPreferredAllocation(
	_ context.Context, in *pluginapi.PreferredAllocationRequest, _ ...grpc.CallOption,
) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, request := range in.ContainerRequests {
		call := cases.PreferredCall{
			Resource:    s.resource,
			Available:   sorted(request.AvailableDeviceIDs),
			MustInclude: sorted(request.MustIncludeDeviceIDs),
			Size:        int(request.AllocationSize),
		}
		call.Returned = preferred(call)
		s.asked = append(s.asked, call)
		response.ContainerResponses = append(response.ContainerResponses,
			&pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: call.Returned})
	}
	return response, nil
}

// Allocate grants whatever is asked.
func (s *Scripted) Allocate(_ context.Context, in *pluginapi.AllocateRequest, _ ...grpc.CallOption) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for range in.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{})
	}
	return response, nil
}

func preferred(call cases.PreferredCall) []string {
	chosen := append([]string{}, call.MustInclude...)
	must := map[string]bool{}
	for _, id := range chosen {
		must[id] = true
	}
	for _, id := range call.Available {
		if len(chosen) >= call.Size {
			break
		}
		if !must[id] {
			chosen = append(chosen, id)
		}
	}
	sort.Strings(chosen)
	return chosen
}

func health(unit cases.DeviceUnit) string {
	if unit.Healthy {
		return pluginapi.Healthy
	}
	return pluginapi.Unhealthy
}

func topology(unit cases.DeviceUnit) *pluginapi.TopologyInfo {
	if unit.NUMA == nil {
		return nil
	}
	info := &pluginapi.TopologyInfo{}
	for _, id := range unit.NUMA {
		info.Nodes = append(info.Nodes, &pluginapi.NUMANode{ID: id})
	}
	return info
}

func sorted(ids []string) []string {
	ids = append([]string{}, ids...)
	sort.Strings(ids)
	return ids
}

// Prefers tells whether the plugin has a say in which devices are taken.
func (s *Scripted) Prefers() bool { return s.prefers }

// Classes counts devices by where they are, seen from a mask.
func (s *Scripted) Classes(ids []string, mask []int) cases.ClassCounts {
	if mask == nil {
		return cases.ClassCounts{"total": len(ids)}
	}
	counts := cases.ClassCounts{"aligned": 0, "unaligned": 0, "no_topology": 0}
	for _, id := range ids {
		counts[class(s.zones(id), mask)]++
	}
	return counts
}

func (s *Scripted) zones(id string) []int64 {
	for _, unit := range s.units {
		if unit.ID == id {
			return unit.NUMA
		}
	}
	return nil
}

func class(zones []int64, mask []int) string {
	if len(zones) == 0 {
		return "no_topology"
	}
	for _, zone := range zones {
		if slices.Contains(mask, int(zone)) {
			return "aligned"
		}
	}
	return "unaligned"
}
