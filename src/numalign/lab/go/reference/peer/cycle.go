package main

import (
	"context"
	"fmt"
	"math/rand"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"

	"numalign.io/lab/reference/oracle/plugin"
)

// cycle decides about pods as kube-scheduler does with this plugin alone: its workers, its sample, its choice among equals.
type cycle struct {
	plugin  *plugin.Plugin
	nodes   []*framework.NodeInfo
	sample  int
	next    int
	workers parallelize.Parallelizer
	rng     *rand.Rand
}

// candidate is a node that passed the filter.
type candidate struct {
	node  *framework.NodeInfo
	score int64
}

// decide places a pod and tells how many nodes were good enough.
func (c *cycle) decide(pod *v1.Pod) (int, error) {
	state := framework.NewCycleState()
	found := c.feasible(state, pod)
	if len(found) == 0 {
		return 0, fmt.Errorf("%s fits nowhere: give it more nodes or place fewer pods", pod.Name)
	}
	c.workers.Until(context.Background(), len(found), func(at int) {
		found[at].score, _ = c.plugin.Score(context.Background(), state, pod, found[at].node)
	}, "Score")
	chosen := c.best(found)
	if status := c.plugin.Reserve(context.Background(), state, pod, chosen); !status.IsSuccess() {
		return 0, status.AsError()
	}
	return len(found), nil
}

// feasible looks at nodes from where the last search ended, until the sample is full; without a sample at all of them.
func (c *cycle) feasible(state *framework.CycleState, pod *v1.Pod) []candidate {
	ctx, enough := context.WithCancel(context.Background())
	defer enough()
	wanted := len(c.nodes)
	if c.sample > 0 {
		wanted = c.sample
	}
	found, looked := make([]candidate, 0, wanted), atomic.Int64{}
	var lock sync.Mutex
	c.workers.Until(ctx, len(c.nodes), func(at int) {
		node := c.nodes[(c.next+at)%len(c.nodes)]
		looked.Add(1)
		if !c.plugin.Filter(ctx, state, pod, node).IsSuccess() {
			return
		}
		lock.Lock()
		defer lock.Unlock()
		if len(found) == wanted {
			return
		}
		if found = append(found, candidate{node: node}); len(found) == wanted {
			enough()
		}
	}, "Filter")
	c.next = (c.next + int(looked.Load())) % len(c.nodes)
	return found
}

func (c *cycle) best(found []candidate) string {
	chosen, equals := found[0], 1
	for _, other := range found[1:] {
		switch {
		case other.score > chosen.score:
			chosen, equals = other, 1
		case other.score == chosen.score:
			if equals++; c.rng.Intn(equals) == 0 {
				chosen = other
			}
		}
	}
	return chosen.node.Node().Name
}
