// Command scheduler is the reference: kube-scheduler 1.34 with NodeResourceTopologyMatch of scheduler-plugins v0.34.7
// beside the built-in plugins. The lab and the benchmarks run it against a real API server; nothing of ours is in it.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	_ "sigs.k8s.io/scheduler-plugins/apis/config/scheme"
	"sigs.k8s.io/scheduler-plugins/pkg/noderesourcetopology"
)

func main() {
	os.Exit(cli.Run(app.NewSchedulerCommand(app.WithPlugin(noderesourcetopology.Name, noderesourcetopology.New))))
}
