// Command oracle-reference asks NodeResourceTopologyMatch of scheduler-plugins v0.34.7: histories of a cluster in on stdin,
// the plugin's answer to each step out on stdout, both as JSON lines. What a history is, is in package history.
package main

import (
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"numalign.io/lab/oracle/program"
	"numalign.io/lab/reference/oracle/history"
)

// lifetime is how many histories a worker answers. The plugin starts pod informers that nothing can stop, so a worker is
// relieved before they add up.
const lifetime = 200

func main() {
	program.Main(program.Oracle{Name: "oracle-reference", Prepare: prepare, Lifetime: lifetime})
}

func prepare() (program.Ask, bool, error) {
	klog.SetLogger(logr.Discard())
	debug.SetGCPercent(400)
	return history.Ask, true, nil
}
