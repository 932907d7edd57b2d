// Command oracle-exporter asks the programs that publish topology reports: the resource topology exporter (RTE) v0.24.0 and
// the topology updater of node-feature-discovery (NFD) v0.19.0. Rows of recorded tables in on stdin, without what came of
// them; the same rows with what comes of them out on stdout, both as JSON lines.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"numalign.io/lab/exporter/nfd"
	"numalign.io/lab/exporter/rte"
	"numalign.io/lab/exporter/sysfs"
	"numalign.io/lab/exporter/texts"
	"numalign.io/lab/kubelet/oracle/sandbox"
	"numalign.io/lab/oracle/program"
)

// row is one case: the name of its table, and the columns that are given. Expect is filled in.
type row struct {
	ID     string          `json:"id"`
	Suite  string          `json:"suite"`
	Input  json.RawMessage `json:"input"`
	Expect any             `json:"expect"`
}

func main() {
	outside := flag.String("outside", "", "the mount namespace that a worker must not touch")
	program.Main(program.Oracle{
		Name:      "oracle-exporter",
		Prepare:   func() (program.Ask, bool, error) { return prepare(*outside) },
		Arguments: func() []string { return []string{"-outside", sandbox.Namespace()} },
		Ways:      sandbox.Ways(),
	})
}

func prepare(outside string) (program.Ask, bool, error) {
	silence()
	debug.SetGCPercent(400)
	separated := sysfs.Enter(outside)
	suites := rte.Suites(separated)
	maps.Copy(suites, nfd.Suites())
	maps.Copy(suites, texts.Suites())
	ask := func(_ string, line []byte) (any, error) {
		var asked row
		if err := json.Unmarshal(line, &asked); err != nil {
			return nil, err
		}
		answer, known := suites[asked.Suite]
		if !known {
			return nil, fmt.Errorf("no suite %q", asked.Suite)
		}
		var err error
		asked.Expect, err = answer(asked.Input)
		return asked, err
	}
	return ask, separated == nil, nil
}

// silence keeps the programs from writing, and from preparing what they would write.
func silence() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("v", "0")
	klog.SetLogger(logr.Discard())
}
