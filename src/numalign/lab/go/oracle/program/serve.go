// The command: lines to workers, answers back in order.

package program

import (
	"bufio"
	"bytes"
	"io"
)

// ahead is how many cases a worker may have in hand, so that it never waits for the next one.
const ahead = 16

// job is one line on its way; its answer comes through done.
type job struct {
	line []byte
	done chan []byte
}

// serve passes lines to workers and their answers on, in order.
func serve(oracle Oracle, s settings, in io.Reader, out io.Writer) error {
	jobs := make(chan *job)
	queue := make(chan *job, 4*ahead*s.workers)
	finished := make(chan error, s.workers)
	for range s.workers {
		go func() { finished <- newSlot(oracle, s).run(jobs) }()
	}
	go func() {
		defer close(queue)
		defer close(jobs)
		readLines(in, func(j *job) {
			queue <- j
			jobs <- j
		})
	}()
	if err := write(out, queue); err != nil {
		return err
	}
	for range s.workers {
		if err := <-finished; err != nil {
			return err
		}
	}
	return nil
}

func readLines(in io.Reader, pass func(*job)) {
	reader := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			line = append(bytes.TrimRight(line, "\r\n"), '\n')
			pass(&job{line: line, done: make(chan []byte, 1)})
		}
		if err != nil {
			return
		}
	}
}

// write lets answers out as they become due, and does not hold them back while it waits for the next.
func write(out io.Writer, queue <-chan *job) error {
	answers := bufio.NewWriterSize(out, 1<<16)
	for j := range queue {
		var answer []byte
		select {
		case answer = <-j.done:
		default:
			if err := answers.Flush(); err != nil {
				return err
			}
			answer = <-j.done
		}
		if _, err := answers.Write(answer); err != nil {
			return err
		}
		if len(queue) == 0 {
			if err := answers.Flush(); err != nil {
				return err
			}
		}
	}
	return answers.Flush()
}
