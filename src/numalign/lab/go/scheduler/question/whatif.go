package question

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func (c *cycle) whatIfs(ctx context.Context, asked []WhatIf) ([]map[string]Status, error) {
	said := []map[string]Status{}
	for i, each := range asked {
		answer, err := c.whatIf(ctx, each)
		if err != nil {
			return nil, fmt.Errorf("what_if[%d]: %w", i, err)
		}
		said = append(said, answer)
	}
	return said, nil
}

// whatIf changes copies of the node and of the cycle's state as preemption does.
func (c *cycle) whatIf(ctx context.Context, asked WhatIf) (map[string]Status, error) {
	found, err := c.SnapshotSharedLister().NodeInfos().Get(asked.Node)
	if err != nil {
		return nil, err
	}
	node, state := found.Snapshot(), c.state.Clone()
	for _, uid := range asked.Removed {
		info := onNode(node, uid)
		if info == nil {
			return nil, fmt.Errorf("node %s has no pod with uid %s", asked.Node, uid)
		}
		if err := node.RemovePod(klog.FromContext(ctx), info.GetPod()); err != nil {
			return nil, err
		}
		if status := c.RunPreFilterExtensionRemovePod(ctx, state, c.pod, info, node); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	for _, text := range asked.Added {
		info, err := nominated(text)
		if err != nil {
			return nil, err
		}
		node.AddPodInfo(info)
		if status := c.RunPreFilterExtensionAddPod(ctx, state, c.pod, info, node); !status.IsSuccess() {
			return nil, status.AsError()
		}
	}
	return c.filter(ctx, state, node), nil
}

func onNode(node fwk.NodeInfo, uid string) fwk.PodInfo {
	for _, info := range node.GetPods() {
		if string(info.GetPod().UID) == uid {
			return info
		}
	}
	return nil
}

func nominated(text []byte) (fwk.PodInfo, error) {
	pod, err := readPod(text)
	if err != nil {
		return nil, err
	}
	return framework.NewPodInfo(pod)
}
