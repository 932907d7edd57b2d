// Package history plays what happened to a cluster to the plugin and writes down its answers.
//
// A History is read from one line of JSON. Each run gets a fresh plugin on a fresh API server, takes the steps one by one, and
// gives the history back with an answer per step. A panic of the plugin is the answer for that node; anything that keeps a
// step from being taken is an error of the whole history.
package history

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

// History is a case. Objects keep the text they came with.
type History struct {
	ID           string            `json:"id"`
	Family       string            `json:"family"`
	Args         json.RawMessage   `json:"args,omitempty"`
	ProfileNames []string          `json:"profileNames,omitempty"`
	Nodes        []json.RawMessage `json:"nodes"`
	NRTs         []json.RawMessage `json:"nrts"`
	Pods         []json.RawMessage `json:"pods,omitempty"`
	// InitError is why the plugin refused to be built; no step is taken then.
	InitError string `json:"init_error,omitempty"`
	Steps     []Step `json:"steps"`
}

// Step is one thing that happens, and after it has happened the plugin's answer.
type Step struct {
	Op     string          `json:"op"`
	Pod    json.RawMessage `json:"pod,omitempty"`
	Node   string          `json:"node,omitempty"`
	Nodes  []string        `json:"nodes,omitempty"`
	NRT    json.RawMessage `json:"nrt,omitempty"`
	Answer any             `json:"answer,omitempty"`
}

// Status is the answer of Filter for one node, and of Reserve.
type Status struct {
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// Panicked is the answer for a node on which the plugin panicked.
type Panicked struct {
	Panic string `json:"panic"`
}

// Score is the answer of Score for one node, as the plugin gave it: it has no NormalizeScore. Where Score fails, the
// answer is a Status.
type Score struct {
	Score int64 `json:"score"`
}

// Desynced is which nodes wait for a resync, and why.
type Desynced struct {
	MaybeOverReserved []string `json:"maybeOverReserved"`
	ConfigChanged     []string `json:"configChanged"`
}

// Resynced is the cache after a resync.
type Resynced struct {
	Generation uint64 `json:"generation"`
	Desynced
}

// Cached is what the cache gives out for a node.
type Cached struct {
	Fresh      bool   `json:"fresh"`
	Generation uint64 `json:"generation"`
	NRT        any    `json:"nrt"`
}

func readPod(text json.RawMessage) (*v1.Pod, error) {
	pod := &v1.Pod{}
	return pod, read(text, pod)
}
