package plugin

import (
	"fmt"

	topology "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	listers "k8s.io/client-go/listers/core/v1"

	"numalign.io/lab/reference/oracle/apiserver"
)

const fencePrefix = "fence/"

// A fence is an object that no history can have, since its node's name has a slash. The plugin's watchers take it for one of
// a node without NRT, say so in the log and do nothing.

// NRTsSeen returns when the plugin's watcher, if it has one, has dealt with all NRT events.
func (p *Plugin) NRTsSeen() error {
	if p.OverReserve() == nil || !p.watchesNRTs() {
		return nil
	}
	name := p.nextFence()
	mark := &topology.NodeResourceTopology{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := p.server.Fence(apiserver.NRTs, "MODIFIED", mark); err != nil {
		return err
	}
	return until("the NRT watcher does not answer", func() bool { return p.signals.count(name) == 1 })
}

// PodsSeen returns when the pod informer, if there is one, and the detector of foreign pods have dealt with all pod events.
func (p *Plugin) PodsSeen() error {
	if p.OverReserve() == nil {
		return nil
	}
	name := p.nextFence()
	mark := fencePod(name)
	if err := p.server.Fence(apiserver.Pods, "ADDED", mark); err != nil {
		return err
	}
	seen := p.listed(mark)
	if p.detectsForeignPods() {
		seen = func() bool { return p.signals.count(name) == 2 }
		if err := p.server.Fence(apiserver.Pods, "DELETED", mark); err != nil {
			return err
		}
	}
	return until("the pod informer does not answer", seen)
}

// listed looks for the pod where resyncs read: without a detector nobody tells that an event came in.
func (p *Plugin) listed(pod *v1.Pod) func() bool {
	lister := hidden(p.OverReserve(), "podLister").(listers.PodLister)
	return func() bool {
		_, err := lister.Pods(pod.Namespace).Get(pod.Name)
		return err == nil
	}
}

func (p *Plugin) nextFence() string {
	p.fences++
	return fmt.Sprint(fencePrefix, p.fences)
}

// fencePod is foreign in every mode, and Pending so that no resync counts it.
func fencePod(name string) *v1.Pod {
	some := v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1")}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: fencePrefix},
		Spec: v1.PodSpec{NodeName: name, SchedulerName: fencePrefix, Containers: []v1.Container{
			{Name: "fence", Resources: v1.ResourceRequirements{Requests: some, Limits: some}}}},
		Status: v1.PodStatus{Phase: v1.PodPending, QOSClass: v1.PodQOSGuaranteed},
	}
}
