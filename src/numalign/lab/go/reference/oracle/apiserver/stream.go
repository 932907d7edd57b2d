package apiserver

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// stream is the body of a watch: what is sent waits here until the client reads it.
type stream struct {
	lock   sync.Mutex
	more   *sync.Cond
	unread bytes.Buffer
	closed bool
}

func newStream() *stream {
	s := &stream{}
	s.more = sync.NewCond(&s.lock)
	return s
}

func (s *stream) send(event watch.EventType, object []byte) {
	s.lock.Lock()
	defer s.lock.Unlock()
	fmt.Fprintf(&s.unread, `{"type":"%s","object":%s}`+"\n", event, object)
	s.more.Signal()
}

func (s *stream) Read(into []byte) (int, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for s.unread.Len() == 0 && !s.closed {
		s.more.Wait()
	}
	if s.closed {
		return 0, io.EOF
	}
	return s.unread.Read(into)
}

func (s *stream) Close() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	s.more.Broadcast()
	return nil
}
