// Package question puts pods to a profile's plugins and writes down what they say.
//
// A Case is read from one line of JSON: a profile, a snapshot of a cluster and questions about it, each a pod to place. Each
// run builds the profile and the snapshot afresh, and gives the case back with an answer per question.
package question

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// Case is one snapshot with the pods that are to be placed in it, each on its own.
type Case struct {
	ID     string `json:"id"`
	Family string `json:"family"`
	// Profile is an item of a KubeSchedulerConfiguration's profiles; the default profile if there is none.
	Profile  json.RawMessage `json:"profile,omitempty"`
	Snapshot json.RawMessage `json:"snapshot"`
	// InitError is why the profile was refused; nothing is answered then.
	InitError string     `json:"init_error,omitempty"`
	Questions []Question `json:"questions"`
}

// Question is a pod, and nodes to look at again with other pods on them.
type Question struct {
	Pod    json.RawMessage `json:"pod"`
	WhatIf []WhatIf        `json:"what_if,omitempty"`
	Answer *Answer         `json:"answer,omitempty"`
}

// WhatIf is a node without some of its pods and with others, as in the dry run of a preemption and beside nominated pods.
type WhatIf struct {
	Node    string            `json:"node"`
	Removed []string          `json:"removed,omitempty"`
	Added   []json.RawMessage `json:"added,omitempty"`
}

// Answer is what the plugins say of one pod. A plugin that is not named has nothing against it.
type Answer struct {
	// PreFilter is the whole profile's: what the framework makes of its plugins.
	PreFilter Merged `json:"pre_filter"`
	// PreFilters is by plugin, each asked even where another one refuses.
	PreFilters map[string]Narrowed `json:"pre_filters"`
	// Skipped are the plugins whose PreFilter takes itself and its Filter out of the cycle.
	Skipped []string `json:"skipped"`
	// Filters is by node and plugin. Plugins that skip the pod, or refuse it in PreFilter, are not asked.
	Filters map[string]map[string]Status `json:"filters"`
	// Verdicts are the framework's for the nodes that it looks at: the first refusal. None at all if PreFilter refuses.
	Verdicts map[string]Status `json:"verdicts"`
	// WhatIf is by plugin, one for each that was asked; none if PreFilter refuses.
	WhatIf []map[string]Status `json:"what_if,omitempty"`
	// Scores are those of the nodes without a verdict against them; none if there is no such node.
	Scores *Scores `json:"scores,omitempty"`
}

// Status is a plugin's refusal, or its failure. Reasons are sorted: the order of some is that of a map.
type Status struct {
	Plugin  string   `json:"plugin,omitempty"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// Narrowed is the answer of one PreFilter, with the only nodes it leaves to look at; null: all.
type Narrowed struct {
	Status
	Nodes []string `json:"nodes"`
}

// Merged is the answer of all PreFilters together, with the plugins that narrowed the nodes down.
type Merged struct {
	Narrowed
	Plugins []string `json:"plugins"`
}

// Scores is by plugin and node. Plugins that skip the pod in PreScore are named; Error is why there are no scores.
type Scores struct {
	Skipped    []string                    `json:"skipped"`
	Raw        map[string]map[string]int64 `json:"raw,omitempty"`
	Normalized map[string]map[string]int64 `json:"normalized,omitempty"`
	Totals     map[string]int64            `json:"totals,omitempty"`
	Error      string                      `json:"error,omitempty"`
}

func readPod(text json.RawMessage) (*v1.Pod, error) {
	pod := &v1.Pod{}
	return pod, json.Unmarshal(text, pod)
}
