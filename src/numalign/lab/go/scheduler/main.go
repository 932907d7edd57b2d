// Command oracle-scheduler asks the plugins of kube-scheduler v1.37.1: snapshots of a cluster with pods to place in on stdin,
// what every plugin says of every node out on stdout, both as JSON lines. What is asked and answered is in package question.
package main

import (
	"flag"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"numalign.io/lab/oracle/program"
	"numalign.io/lab/scheduler/question"
)

func main() {
	program.Main(program.Oracle{Name: "oracle-scheduler", Prepare: prepare})
}

func prepare() (program.Ask, bool, error) {
	silence()
	debug.SetGCPercent(400)
	metrics.Register()
	return question.Ask, true, nil
}

// silence keeps the plugins from writing, and from preparing what they would write.
func silence() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", "0")
	klog.SetLogger(logr.Discard())
}
