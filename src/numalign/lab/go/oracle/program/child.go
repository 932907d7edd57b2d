// A worker seen from the command: a process with a channel in and a channel out.

package program

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// child is one worker process. Lines go in and answers come out through channels that never block it.
type child struct {
	command *exec.Cmd
	lines   chan []byte
	answers chan []byte // closed when the process has ended
	stderr  *tail
}

// spawn starts a worker in the best of the oracle's ways that makes a whole one, or else as a plain process.
func spawn(oracle Oracle, s settings) (*child, error) {
	for _, way := range oracle.Ways {
		if c, greeting, err := start(oracle, s, way); err == nil && greeting == whole {
			return c, nil
		} else if err == nil {
			c.kill()
		}
	}
	c, _, err := start(oracle, s, nil)
	return c, err
}

func start(oracle Oracle, s settings, way *syscall.SysProcAttr) (*child, string, error) {
	arguments := []string{"-worker", "-repeat", strconv.Itoa(s.repeat)}
	if oracle.Arguments != nil {
		arguments = append(arguments, oracle.Arguments()...)
	}
	command := exec.Command("/proc/self/exe", arguments...)
	command.SysProcAttr = way
	c := &child{command: command, lines: make(chan []byte, ahead), answers: make(chan []byte, ahead), stderr: &tail{}}
	command.Stderr = c.stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, "", err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, "", err
	}
	if err := command.Start(); err != nil {
		return nil, "", err
	}
	go c.feed(in)
	greeting, err := c.greeted(bufio.NewReaderSize(out, 1<<16))
	return c, greeting, err
}

// greeted waits until the worker is ready, then lets answers flow.
func (c *child) greeted(out *bufio.Reader) (string, error) {
	greeting, err := out.ReadString('\n')
	if err != nil {
		c.kill()
		_ = c.command.Wait()
		return "", fmt.Errorf("a worker does not start: %s", c.stderr)
	}
	go c.listen(out)
	return strings.TrimSpace(greeting), nil
}

func (c *child) feed(in io.WriteCloser) {
	defer in.Close()
	for line := range c.lines {
		if _, err := in.Write(line); err != nil {
			return
		}
	}
}

func (c *child) listen(out *bufio.Reader) {
	defer close(c.answers)
	for {
		answer, err := out.ReadBytes('\n')
		if err != nil {
			_ = c.command.Wait()
			return
		}
		c.answers <- answer
	}
}

// obituary says how a worker ended that was not told to.
func (c *child) obituary() string {
	return fmt.Sprintf("the worker died, %s: %s", c.command.ProcessState, c.stderr)
}

func (c *child) kill() { _ = c.command.Process.Kill() }

// used is the CPU time of the process so far.
func (c *child) used() time.Duration {
	var spent syscall.Timespec
	// The kernel's clock for another process: its number inverted, then "all threads, as scheduled".
	clock := uintptr(^c.command.Process.Pid<<3 | 2)
	if _, _, failed := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&spent)), 0); failed != 0 {
		return 0
	}
	return time.Duration(spent.Nano())
}

// tail keeps the beginning of what a process says before it dies, where the cause is.
type tail struct{ text bytes.Buffer }

func (t *tail) Write(said []byte) (int, error) {
	if room := 2000 - t.text.Len(); room > 0 {
		t.text.Write(said[:min(room, len(said))])
	}
	return len(said), nil
}

func (t *tail) String() string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.text.String()), "\n\n")
	return first
}
