// Package cluster turns a cluster's objects into what a scheduling cycle sees: the scheduler's own cache and its snapshot, and
// the stores of the informers.
package cluster

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
)

// Snapshot takes nodes and assigned pods through the scheduler's cache. Pods that have ended never reach it: its informer
// does not ask for them.
func (o *Objects) Snapshot(ctx context.Context) (*schedulercache.Snapshot, error) {
	logger := klog.FromContext(ctx)
	known := schedulercache.New(ctx, nil, false, false)
	for _, node := range o.Nodes {
		known.AddNode(logger, node)
	}
	for _, pod := range o.Pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
			continue
		}
		if err := known.AddPod(logger, pod); err != nil {
			return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
		}
	}
	snapshot := schedulercache.NewEmptySnapshot()
	return snapshot, known.UpdateSnapshot(logger, snapshot)
}
