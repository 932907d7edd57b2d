// Package profile builds a scheduling profile with kube-scheduler's own framework and plugins.
//
// The plugins' informers are never started: what a snapshot holds is put into their stores, so there is nothing to wait for.
// Plugins are kept as they are made, because the framework stops asking at the first refusal.
package profile

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	resourceslicetracker "k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

// Profile is a framework with its plugins, in the order in which it asks them.
type Profile struct {
	framework.Framework
	PreFilters []fwk.PreFilterPlugin
	Filters    []fwk.FilterPlugin
	Weights    map[string]int64
	Classes    fwk.DeviceClassResolver
}

// process is what all profiles of a process share: it is slow to make, and nothing is ever written to it.
var process = sync.OnceValue(func() (p struct {
	client   *fake.Clientset
	registry frameworkruntime.Registry
}) {
	p.client, p.registry = fake.NewSimpleClientset(), plugins.NewInTreeRegistry()
	return p
})

// Factory makes the informers whose stores the plugins read.
func Factory() informers.SharedInformerFactory {
	return informers.NewSharedInformerFactory(process().client, 0)
}

// New builds the profile. An error is a plugin's refusal of its arguments.
func New(ctx context.Context, given *config.KubeSchedulerProfile, factory informers.SharedInformerFactory, snapshot *schedulercache.Snapshot) (*Profile, error) {
	made := map[string]fwk.Plugin{}
	registry := frameworkruntime.Registry{}
	for name, construct := range process().registry {
		registry[name] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
			plugin, err := construct(ctx, args, handle)
			made[name] = plugin
			return plugin, err
		}
	}
	resources, err := deviceManager(ctx, factory)
	if err != nil {
		return nil, err
	}
	built, err := frameworkruntime.NewFramework(ctx, registry, given,
		frameworkruntime.WithClientSet(process().client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSharedDRAManager(resources),
		frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithMutableSnapshotLister(snapshot),
		frameworkruntime.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	p := &Profile{Framework: built, Weights: map[string]int64{}, Classes: resources.DeviceClassResolver()}
	p.list(made)
	return p, nil
}

func (p *Profile) list(made map[string]fwk.Plugin) {
	enabled := p.ListPlugins()
	for _, each := range enabled.PreFilter.Enabled {
		p.PreFilters = append(p.PreFilters, made[each.Name].(fwk.PreFilterPlugin))
	}
	for _, each := range enabled.Filter.Enabled {
		p.Filters = append(p.Filters, made[each.Name].(fwk.FilterPlugin))
	}
	for _, each := range enabled.Score.Enabled {
		p.Weights[each.Name] = int64(each.Weight)
	}
}

// deviceManager knows device classes, and of resource claims and slices that there are none.
func deviceManager(ctx context.Context, factory informers.SharedInformerFactory) (fwk.SharedDRAManager, error) {
	resources := factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	slices, err := resourceslicetracker.StartTracker(ctx, resourceslicetracker.Options{SliceInformer: resources.ResourceSlices()})
	if err != nil {
		return nil, err
	}
	return dynamicresources.NewDRAManager(ctx, claims, slices, factory), nil
}
