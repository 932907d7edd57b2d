// The worker: one case after the other, each run on fresh objects as often as wanted.

package program

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
)

// A worker's first line; cases are timed from there on. One that can answer some families only says so.
const (
	whole = "ready"
	part  = "ready, in part"
)

// worker answers one case after the other.
type worker struct {
	ask    Ask
	repeat int
}

// work keeps the process to one core: there are as many workers as cores.
func work(oracle Oracle, s settings, in io.Reader, out io.Writer) error {
	runtime.GOMAXPROCS(1)
	ask, isWhole, err := oracle.Prepare()
	if err != nil {
		return err
	}
	greeting := whole
	if !isWhole {
		greeting = part
	}
	if _, err := fmt.Fprintln(out, greeting); err != nil {
		return err
	}
	w := &worker{ask: ask, repeat: s.repeat}
	return w.serve(in, out)
}

// serve answers line by line. Nothing is held back: if the next case kills the process, this one is out.
func (w *worker) serve(in io.Reader, out io.Writer) error {
	lines := make(chan []byte, 1)
	go readAll(in, lines)
	for line := range lines {
		if _, err := out.Write(w.answer(line)); err != nil {
			return err
		}
	}
	return nil
}

// readAll ends the process with its input, even while a case spins: the command closes it only when all answers are in,
// or when it has died.
func readAll(in io.Reader, lines chan<- []byte) {
	reader := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		lines <- line
	}
}

// answer runs the case as often as wanted and compares.
func (w *worker) answer(line []byte) []byte {
	var h header
	if err := json.Unmarshal(line, &h); err != nil {
		return outcome{Error: "not a case: " + err.Error()}.line()
	}
	var first []byte
	for run := range w.repeat {
		said, ended := w.once(h, line)
		if ended {
			return said
		}
		if run > 0 && !bytes.Equal(first, said) {
			return outcome{ID: h.ID, Nondeterministic: true}.line()
		}
		first = said
	}
	return first
}

// once runs the case; ended tells that there is no point in running it again.
func (w *worker) once(h header, line []byte) (said []byte, ended bool) {
	defer func() {
		if cause := recover(); cause != nil {
			said, ended = outcome{ID: h.ID, Panic: fmt.Sprint(cause, culprit())}.line(), true
		}
	}()
	answer, err := w.ask(h.Family, line)
	var refused Refused
	switch {
	case errors.As(err, &refused):
		return outcome{ID: h.ID, Refused: refused.Why}.line(), true
	case err != nil:
		return outcome{ID: h.ID, Error: err.Error()}.line(), true
	}
	return encode(answer), false
}

// culprit names the function that panicked: the first one below the runtime's own.
func culprit() string {
	callers := make([]uintptr, 32)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	panicking := false
	for {
		frame, more := frames.Next()
		if frame.Function == "runtime.gopanic" {
			panicking = true
		} else if panicking && !strings.HasPrefix(frame.Function, "runtime.") {
			return " in " + frame.Function
		}
		if !more {
			return ""
		}
	}
}
