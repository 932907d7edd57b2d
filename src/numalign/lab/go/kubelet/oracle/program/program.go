// Package program is the command oracle-kubelet around one minor's managers. Passing cases to workers and answers back is
// the business of the common package of the same name; here is how a worker becomes able to ask a kubelet.
package program

import (
	"flag"
	"runtime/debug"

	"github.com/go-logr/logr"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"numalign.io/lab/kubelet/oracle/cases"
	"numalign.io/lab/kubelet/oracle/families"
	"numalign.io/lab/kubelet/oracle/managers"
	"numalign.io/lab/kubelet/oracle/sandbox"
	"numalign.io/lab/oracle/program"
)

// memory is how much a worker uses before it collects garbage: little of what a case makes lives on.
const memory = 256 << 20

// Main runs the command with one minor's managers.
func Main(kubelet managers.Kubelet) {
	topologies := flag.String("topologies", "", "a JSON array of machines that cases name as their topology")
	outside := flag.String("outside", "", "the mount namespace that a worker must not touch")
	program.Main(program.Oracle{
		Name:    "oracle-kubelet",
		Prepare: func() (program.Ask, bool, error) { return prepare(kubelet, *topologies, *outside) },
		Arguments: func() []string {
			return []string{"-outside", sandbox.Namespace(), "-topologies", *topologies}
		},
		Ways: sandbox.Ways(),
	})
}

func prepare(kubelet managers.Kubelet, topologies, outside string) (program.Ask, bool, error) {
	klog.SetLogger(logr.Discard())
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memory)
	bench := &families.Bench{Kubelet: kubelet, Folders: sandbox.Fresh}
	separated := sandbox.Enter(outside)
	if separated != nil {
		bench.Folders = func() (string, error) { return "", separated }
	}
	if topologies != "" {
		table, err := cases.ReadTopologies(topologies)
		if err != nil {
			return nil, false, err
		}
		bench.Topologies = table
	}
	return bench.Ask, separated == nil, openGates()
}

// openGates allows every CPU manager option, as for the recorded vectors.
func openGates() error {
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		"CPUManagerPolicyAlphaOptions": true,
		"CPUManagerPolicyBetaOptions":  true,
	})
}
