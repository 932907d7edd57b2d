// Hints: the currency between managers and topology manager, to and from the kubelet's own form.

package cases

import (
	"fmt"

	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
)

// Hint is one placement a manager could live with. A nil mask means any zone.
type Hint struct {
	Mask      []int `json:"mask"`
	Preferred bool  `json:"preferred"`
}

// HintMap is a manager's word on each resource: nil list = no preference, empty list = cannot be satisfied.
type HintMap map[string][]Hint

// HintOf writes down a hint of the kubelet.
func HintOf(hint topologymanager.TopologyHint) Hint {
	if hint.NUMANodeAffinity == nil {
		return Hint{Preferred: hint.Preferred}
	}
	return Hint{Mask: append([]int{}, hint.NUMANodeAffinity.GetBits()...), Preferred: hint.Preferred}
}

// HintMapOf writes down what a manager said; a nil map stays nil.
func HintMapOf(said map[string][]topologymanager.TopologyHint) HintMap {
	if said == nil {
		return nil
	}
	hints := make(HintMap, len(said))
	for resource, list := range said {
		hints[resource] = hintsOf(list)
	}
	return hints
}

func hintsOf(list []topologymanager.TopologyHint) []Hint {
	if list == nil {
		return nil
	}
	hints := make([]Hint, len(list))
	for i, hint := range list {
		hints[i] = HintOf(hint)
	}
	return hints
}

// Kubelet is the hint as the kubelet holds it.
func (h Hint) Kubelet() (topologymanager.TopologyHint, error) {
	hint := topologymanager.TopologyHint{Preferred: h.Preferred}
	if h.Mask == nil {
		return hint, nil
	}
	mask, err := bitmask.NewBitMask(h.Mask...)
	if err != nil {
		return hint, fmt.Errorf("mask %v: %w", h.Mask, err)
	}
	hint.NUMANodeAffinity = mask
	return hint, nil
}

// Kubelet is the map as a manager would have returned it.
func (m HintMap) Kubelet() (map[string][]topologymanager.TopologyHint, error) {
	if m == nil {
		return nil, nil
	}
	hints := make(map[string][]topologymanager.TopologyHint, len(m))
	for resource, list := range m {
		converted, err := kubeletHints(list)
		if err != nil {
			return nil, fmt.Errorf("hints of %s: %w", resource, err)
		}
		hints[resource] = converted
	}
	return hints, nil
}

func kubeletHints(list []Hint) ([]topologymanager.TopologyHint, error) {
	if list == nil {
		return nil, nil
	}
	hints := make([]topologymanager.TopologyHint, len(list))
	for i, hint := range list {
		converted, err := hint.Kubelet()
		if err != nil {
			return nil, err
		}
		hints[i] = converted
	}
	return hints, nil
}
