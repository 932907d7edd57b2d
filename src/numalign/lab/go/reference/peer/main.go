// Command reference-peer measures how many pods per second NodeResourceTopologyMatch of scheduler-plugins v0.34.7 decides
// about: its Filter, Score and Reserve with the overReserve cache, and nothing else of a scheduler. Nodes and pods follow
// from the flags, so that others can be measured on the same.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework/parallelize"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/config/scheme"

	"numalign.io/lab/reference/oracle/apiserver"
	"numalign.io/lab/reference/oracle/plugin"
)

// result is what is printed.
type result struct {
	Decisions int     `json:"decisions"`
	Seconds   float64 `json:"seconds"`
	PerSecond float64 `json:"per_second"`
	// Feasible is how many nodes were scored for a pod, on average.
	Feasible float64 `json:"feasible"`
	FreeCPUs int64   `json:"free_cpus"`
}

func main() {
	var of sizes
	flag.IntVar(&of.nodes, "nodes", 5000, "nodes of the cluster")
	flag.IntVar(&of.zones, "zones", 2, "zones of a node")
	flag.IntVar(&of.resources, "resources", 6, "cpu, memory and this many kinds of devices less two")
	flag.IntVar(&of.containers, "containers", 1, "containers of a pod")
	flag.IntVar(&of.shapes, "shapes", 1, "pods take turns with so many shapes; 0: each has its own")
	flag.Uint64Var(&of.seed, "seed", 1, "draws what is in use")
	sample := flag.Int("sample", 0, "nodes that are enough for a pod; 0: all are looked at")
	pods := flag.Int("pods", 20, "pods to decide about")
	flag.Parse()
	klog.SetLogger(logr.Discard())
	metrics.Register()
	measured, err := measure(of, *sample, *pods)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(measured)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference-peer:", err)
		os.Exit(1)
	}
}

func measure(of sizes, sample, count int) (*result, error) {
	args, err := defaults()
	if err != nil {
		return nil, err
	}
	server := apiserver.New()
	made, err := newCluster(of, server)
	if err != nil {
		return nil, err
	}
	built, err := plugin.New(args, []string{v1.DefaultSchedulerName}, server)
	if err != nil {
		return nil, err
	}
	if err := built.Start(); err != nil {
		return nil, err
	}
	run := &cycle{plugin: built, nodes: made.nodes, sample: sample,
		workers: parallelize.NewParallelizer(parallelize.DefaultParallelism), rng: rand.New(rand.NewSource(int64(of.seed)))}
	return run.all(of, count)
}

// all decides about so many pods, after a first one that is not counted.
func (c *cycle) all(of sizes, count int) (*result, error) {
	pods := make([]*v1.Pod, count+1)
	for number := range pods {
		pods[number] = of.pod(number)
	}
	if _, err := c.decide(pods[count]); err != nil {
		return nil, err
	}
	feasible, started := 0, time.Now()
	for _, pod := range pods[:count] {
		found, err := c.decide(pod)
		if err != nil {
			return nil, err
		}
		feasible += found
	}
	seconds := time.Since(started).Seconds()
	return &result{Decisions: count, Seconds: seconds, PerSecond: float64(count) / seconds,
		Feasible: float64(feasible) / float64(count), FreeCPUs: of.freeCPUs()}, nil
}

// defaults are the plugin's arguments where nothing is said but how often its cache is to be synced, which switches the
// overReserve cache on.
func defaults() (*config.NodeResourceTopologyMatchArgs, error) {
	kind := schema.GroupVersionKind{Group: "kubescheduler.config.k8s.io", Version: "v1", Kind: "NodeResourceTopologyMatchArgs"}
	decoded, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(`{"cacheResyncPeriodSeconds": 5}`), &kind, nil)
	if err != nil {
		return nil, err
	}
	return decoded.(*config.NodeResourceTopologyMatchArgs), nil
}
