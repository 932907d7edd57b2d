// Package program is the command around an oracle: cases in on stdin, answers out on stdout, both as JSON lines.
//
// The command itself only passes lines on. Child processes, started by it as workers, run the code that is asked; one that
// spins for ever or dies is replaced, and its case answered for it. Answers leave in the order of the cases. Nothing here
// knows what is asked: an Oracle says how a worker gets ready and how it answers.
package program

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Ask answers one case of a family. What the asked code refuses is an answer; an error is a case that could not be asked.
type Ask func(family string, line []byte) (any, error)

// Refused is the error of a case that is not asked on purpose, with the reason.
type Refused struct{ Why string }

func (r Refused) Error() string { return r.Why }

// Oracle is what differs from program to program.
type Oracle struct {
	Name string
	// Prepare runs in a worker before its first case. A worker that is not whole can answer some families only.
	Prepare func() (ask Ask, whole bool, err error)
	// Arguments are what the command passes on to its workers.
	Arguments func() []string
	// Ways are attributes of a worker's process, the best first. The first that makes a whole worker is used; if none
	// does, a worker is started without.
	Ways []*syscall.SysProcAttr
	// Lifetime is how many cases a worker answers before it is relieved; 0 means as many as there are.
	Lifetime int
}

type settings struct {
	workers int
	repeat  int
	limit   time.Duration
	worker  bool
}

// Main runs the command, or one of its workers. Flags of the oracle's own are registered before.
func Main(oracle Oracle) {
	s := parse()
	run := func() error { return serve(oracle, s, os.Stdin, os.Stdout) }
	if s.worker {
		run = func() error { return work(oracle, s, os.Stdin, os.Stdout) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, oracle.Name+":", err)
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
