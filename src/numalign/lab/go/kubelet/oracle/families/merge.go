// Family tm_merge: the policies of the topology manager.

package families

import (
	"fmt"

	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/managers"
	"numalign.io/lab/oracle/program"
)

// MaxPermutations bounds what a merge may walk; the kubelet itself has no bound.
const MaxPermutations = 1_000_000

func (b *Bench) merge(given cases.Merge) (cases.MergeAnswer, error) {
	answer := cases.MergeAnswer{Merge: given}
	policy, err := mergePolicy(given)
	if err != nil {
		return answer, err
	}
	if count := permutations(given); count > MaxPermutations {
		return answer, program.Refused{Why: fmt.Sprintf("the merge would walk more than %d permutations", MaxPermutations)}
	}
	var hints []managers.HintMap
	for i, provider := range given.Providers {
		converted, err := provider.Kubelet()
		if err != nil {
			return answer, fmt.Errorf("providers[%d]: %w", i, err)
		}
		hints = append(hints, converted)
	}
	best, admit := b.Kubelet.Merge(policy, hints)
	answer.Best, answer.Admit = cases.HintOf(best), admit
	return answer, nil
}

func mergePolicy(given cases.Merge) (topologymanager.Policy, error) {
	info := &topologymanager.NUMAInfo{Nodes: given.NUMANodes, NUMADistances: topologymanager.NUMADistances{}}
	for _, id := range given.NUMANodes {
		if !given.PreferClosest {
			break
		}
		if id < 0 || id >= len(given.Distances) {
			return nil, fmt.Errorf("distances: none given for zone %d, prefer_closest needs them", id)
		}
		info.NUMADistances[id] = given.Distances[id]
	}
	return policyNamed(given.Policy, info, topologymanager.PolicyOptions{PreferClosestNUMA: given.PreferClosest})
}

func policyNamed(name string, info *topologymanager.NUMAInfo, options topologymanager.PolicyOptions) (topologymanager.Policy, error) {
	switch name {
	case topologymanager.PolicyNone:
		return topologymanager.NewNonePolicy(), nil
	case topologymanager.PolicyBestEffort:
		return topologymanager.NewBestEffortPolicy(info, options), nil
	case topologymanager.PolicyRestricted:
		return topologymanager.NewRestrictedPolicy(info, options), nil
	case topologymanager.PolicySingleNumaNode:
		return topologymanager.NewSingleNumaNodePolicy(info, options), nil
	}
	return nil, fmt.Errorf("topology manager policy %q is not known", name)
}

// permutations counts how many combinations the policy would walk: the product of all lists, for single-numa-node of
// what is left of them when only preferred hints of one zone are kept (kubelet spec 3.2, 3.5).
func permutations(given cases.Merge) int {
	count := 1
	for _, provider := range given.Providers {
		for _, list := range provider {
			if count *= walked(given.Policy, list); count > MaxPermutations {
				return count
			}
		}
	}
	return count
}

func walked(policy string, list []cases.Hint) int {
	if policy == topologymanager.PolicyNone {
		return 1
	}
	count := len(list)
	if policy == topologymanager.PolicySingleNumaNode {
		count = 0
		for _, hint := range list {
			if hint.Preferred && len(hint.Mask) <= 1 {
				count++
			}
		}
	}
	return max(count, 1)
}
