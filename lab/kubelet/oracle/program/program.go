// Package program is the command around the managers: cases in on stdin, answers out on stdout, both as JSON lines.
//
// The command itself only passes lines on. Child processes, started by it as workers, run the kubelet's code; one that
// spins for ever or dies is replaced, and its case answered for it. Answers leave in the order of the cases.
package program

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"

	"numalign.io/lab/kubelet/oracle/managers"
)

type settings struct {
	workers    int
	repeat     int
	limit      time.Duration
	topologies string
	worker     bool
	outside    string
}

// Main runs the command with one minor's managers.
func Main(kubelet managers.Kubelet) {
	s := parse()
	run := func() error { return serve(s, os.Stdin, os.Stdout) }
	if s.worker {
		run = func() error { return work(s, kubelet, os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle-kubelet:", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.IntVar(&s.workers, "workers", runtime.NumCPU(), "how many worker processes run at a time")
	flag.IntVar(&s.repeat, "repeat", 2, "how often each case is run, on fresh objects, to find answers that vary")
	flag.DurationVar(&s.limit, "limit", 2*time.Second, "CPU time that one case may take, all runs together")
	flag.StringVar(&s.topologies, "topologies", "", "a JSON array of machines that cases name as their topology")
	flag.BoolVar(&s.worker, "worker", false, "be a worker (only the command itself starts these)")
	flag.StringVar(&s.outside, "outside", "", "the mount namespace that a worker must not touch")
	flag.Parse()
	s.workers, s.repeat = max(s.workers, 1), max(s.repeat, 1)
	return s
}
