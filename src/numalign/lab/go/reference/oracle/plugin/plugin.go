// Package plugin builds NodeResourceTopologyMatch as kube-scheduler does, on an API server in memory, and keeps it in step
// with that server.
//
// The plugin comes from its own constructor, with its own clients, caches and informers. Three things are added from
// outside: the timed resync loop is ended before its first round, so that resyncs happen when a history says so; a change
// of an object returns only after the plugin's watchers have seen it; and the cache can be looked into.
package plugin

import (
	"context"
	"fmt"
	"reflect"
	"unsafe"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
	nrtcache "sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology/cache"

	"numalign.io/lab/reference/oracle/apiserver"
)

// Plugin is one instance with its API server.
type Plugin struct {
	*noderesourcetopology.TopologyMatch
	Cache nrtcache.Interface

	server  *apiserver.Server
	signals *signals
	handle  *handle
	args    *config.NodeResourceTopologyMatchArgs
	fences  int
	done    <-chan struct{}
	stop    context.CancelFunc
}

// New builds the plugin for the first of the profiles. An error is the plugin's own refusal.
func New(args *config.NodeResourceTopologyMatchArgs, profiles []string, server *apiserver.Server) (*Plugin, error) {
	ctx, stop := context.WithCancel(context.Background())
	p := &Plugin{server: server, args: args, done: ctx.Done(), stop: stop}
	p.signals = newSignals(func() bool { return server.Watched(apiserver.Pods) })
	logger := logr.New(sink{signals: p.signals})
	var err error
	if p.handle, err = newHandle(server, profiles[0]); err != nil {
		stop()
		return nil, err
	}
	// Profile names outlive an instance: they are variables of the cache package.
	nrtcache.CleanRegisteredSchedulerProfileNames()
	for _, other := range profiles[1:] {
		nrtcache.RegisterSchedulerProfileName(logger, other)
	}
	built, err := noderesourcetopology.New(klog.NewContext(ctx, logger), args, p.handle)
	if err != nil {
		stop()
		return nil, err
	}
	p.TopologyMatch = built.(*noderesourcetopology.TopologyMatch)
	p.Cache = hidden(p.TopologyMatch, "nrtCache").(nrtcache.Interface)
	return p, nil
}

// Start brings the plugin to where kube-scheduler begins to schedule: informers run and all that exists has been seen.
func (p *Plugin) Start() error {
	if p.OverReserve() == nil {
		return nil
	}
	if err := p.signals.loopEnded.wait("the timed resync does not begin"); err != nil {
		return err
	}
	if p.watchesNRTs() {
		if err := until("no watch of NRTs", func() bool { return p.server.Watched(apiserver.NRTs) }); err != nil {
			return err
		}
	}
	p.handle.informers.Start(p.done)
	if err := until("no watch of pods", func() bool { return p.server.Watched(apiserver.Pods) }); err != nil {
		return err
	}
	return p.PodsSeen()
}

// Stop ends what can be ended. A dedicated pod informer runs until the process ends.
func (p *Plugin) Stop() { p.stop() }

// OverReserve is the cache that can be resynced, or nil.
func (p *Plugin) OverReserve() *nrtcache.OverReserve {
	over, _ := p.Cache.(*nrtcache.OverReserve)
	return over
}

// Desynced tells which nodes wait for a resync, and the cache's generation.
func (p *Plugin) Desynced() nrtcache.DesyncedNodes {
	return p.OverReserve().GetDesyncedNodes(logr.Discard())
}

func (p *Plugin) watchesNRTs() bool {
	cache := p.args.Cache
	return cache == nil || cache.ResyncScope == nil || *cache.ResyncScope == config.CacheResyncScopeAll
}

func (p *Plugin) detectsForeignPods() bool {
	cache := p.args.Cache
	return cache == nil || cache.ForeignPodsDetect == nil || *cache.ForeignPodsDetect != config.ForeignPodsDetectNone
}

// hidden reads an unexported field. Nothing exported leads from the plugin to its cache, and only the cache can resync.
func hidden(holder any, name string) any {
	field := reflect.ValueOf(holder).Elem().FieldByName(name)
	if !field.IsValid() {
		panic(fmt.Sprintf("%T has no field %s: the plugin is not the pinned one", holder, name))
	}
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Interface()
}
