// Package program is the command around the plugin: cases in on stdin, answers out on stdout, both as JSON lines.
//
// The command itself only passes lines on. Child processes, started by it as workers, run the plugin's code; one that
// spins for ever or dies is replaced, and its case answered for it. Answers leave in the order of the cases.
package program

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Ask answers one case of a family. What the asked code refuses is an answer; an error is a case that could not be asked.
type Ask func(family string, line []byte) (any, error)

type settings struct {
	workers int
	repeat  int
	limit   time.Duration
	worker  bool
}

// Main runs the command, or one of its workers.
func Main(name string, ask Ask) {
	s := parse()
	run := func() error { return serve(s, os.Stdin, os.Stdout) }
	if s.worker {
		run = func() error { return work(s, ask, os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func parse() settings {
	var s settings
	flag.IntVar(&s.workers, "workers", runtime.NumCPU(), "how many worker processes run at a time")
	flag.IntVar(&s.repeat, "repeat", 2, "how often each case is run, on fresh objects, to find answers that vary")
	flag.DurationVar(&s.limit, "limit", 2*time.Second, "CPU time that one case may take, all runs together")
	flag.BoolVar(&s.worker, "worker", false, "be a worker (only the command itself starts these)")
	flag.Parse()
	s.workers, s.repeat = max(s.workers, 1), max(s.repeat, 1)
	return s
}
