package plugin

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// patience bounds every wait for the plugin's goroutines, which have nothing to do but what is waited for.
const patience = 5 * time.Second

// signals is what the plugin's log tells about its goroutines. The log is the only place where they can be met.
type signals struct {
	podsWatched func() bool
	loopEnded   flag

	lock   sync.Mutex
	fences map[string]int
}

func newSignals(podsWatched func() bool) *signals {
	return &signals{podsWatched: podsWatched, loopEnded: newFlag(), fences: map[string]int{}}
}

// sink receives the plugin's log lines.
type sink struct {
	signals *signals
	name    string
	node    string
}

func (s sink) Init(logr.RuntimeInfo)             {}
func (s sink) Enabled(level int) bool            { return level <= 5 }
func (s sink) Error(error, string, ...any)       {}
func (s sink) WithName(name string) logr.LogSink { s.name = name; return s }
func (s sink) WithValues(pairs ...any) logr.LogSink {
	if node, found := value(pairs, "node"); found {
		s.node = node
	}
	return s
}

func (s sink) Info(_ int, message string, pairs ...any) {
	switch message {
	case "begin":
		if s.name == "resync" {
			s.signals.resyncs()
		}
	case "syncing custom pod informer":
		s.signals.awaitPods()
	case "modified non-existent NRT":
		node, _ := value(pairs, "node")
		s.signals.met(node)
	case "ignoring foreign pods":
		s.signals.met(s.node)
	}
}

// resyncs ends the goroutine of the first resync, which is the timed loop's: it starts in the constructor, and no other
// resync is asked for until it is gone. It runs in that goroutine.
func (s *signals) resyncs() {
	if s.loopEnded.raise() {
		runtime.Goexit()
	}
}

// awaitPods holds the constructor until its informer has listed. The wait that follows looks only ten times a second.
func (s *signals) awaitPods() {
	if until("", s.podsWatched) == nil {
		time.Sleep(200 * time.Microsecond)
	}
}

func (s *signals) met(node string) {
	if strings.HasPrefix(node, fencePrefix) {
		s.lock.Lock()
		defer s.lock.Unlock()
		s.fences[node]++
	}
}

func (s *signals) count(node string) int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.fences[node]
}

func value(pairs []any, key string) (string, bool) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == key {
			text, isText := pairs[i+1].(string)
			return text, isText
		}
	}
	return "", false
}

// flag is raised once.
type flag struct {
	once   *sync.Once
	raised chan struct{}
}

func newFlag() flag { return flag{once: &sync.Once{}, raised: make(chan struct{})} }

// raise tells whether it was this call that raised the flag.
func (f flag) raise() (first bool) {
	f.once.Do(func() { first = true; close(f.raised) })
	return first
}

func (f flag) wait(complaint string) error {
	select {
	case <-f.raised:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("%s within %v", complaint, patience)
	}
}

// until lets the other goroutines run until the condition holds.
func until(complaint string, holds func() bool) error {
	deadline := time.Now().Add(patience)
	for spins := 0; !holds(); spins++ {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s within %v", complaint, patience)
		}
		if spins < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(50 * time.Microsecond)
		}
	}
	return nil
}
