// Keeping a worker busy, timing its cases, and replacing it when it is lost.

package program

import "time"

// patience is how many limits a case may wait in wall time: one that sleeps uses no CPU time.
const patience = 10

// slot is the place of one worker. It replaces the process as often as needed and knows which cases are with it.
type slot struct {
	oracle   Oracle
	settings settings
	child    *child
	answers  int // of this process
	inHand   []*job
	clock    *time.Timer
	since    time.Time
	before   time.Duration
}

func newSlot(oracle Oracle, s settings) *slot {
	return &slot{oracle: oracle, settings: s, clock: time.NewTimer(time.Hour)}
}

// run answers jobs until there are no more.
func (s *slot) run(jobs <-chan *job) error {
	if err := s.replace(); err != nil {
		return s.giveUp(jobs, err)
	}
	defer s.dismiss()
	for jobs != nil || len(s.inHand) > 0 {
		offered := jobs
		if len(s.inHand) >= ahead || s.isDue() {
			offered = nil
		}
		var err error
		select {
		case j, more := <-offered:
			if !more {
				jobs = nil
				continue
			}
			s.take(j)
		case answer, alive := <-s.child.answers:
			err = s.answered(answer, alive)
		case <-s.clock.C:
			err = s.expired()
		}
		if err != nil {
			return s.giveUp(jobs, err)
		}
	}
	return nil
}

func (s *slot) take(j *job) {
	s.inHand = append(s.inHand, j)
	s.child.lines <- j.line
	if len(s.inHand) == 1 {
		s.watch()
	}
}

// watch starts the time of the case at the head.
func (s *slot) watch() {
	s.since, s.before = time.Now(), s.child.used()
	s.clock.Reset(s.settings.limit)
}

func (s *slot) answered(answer []byte, alive bool) error {
	if !alive {
		return s.lost(outcome{Panic: s.child.obituary()})
	}
	s.finish(answer)
	if s.isDue() && len(s.inHand) == 0 {
		return s.replace()
	}
	return nil
}

// isDue tells that the process has answered as much as it is meant to: it gets no more cases.
func (s *slot) isDue() bool { return s.oracle.Lifetime > 0 && s.answers >= s.oracle.Lifetime }

// expired looks whether the case at the head has used up its time, or only waited for a core.
func (s *slot) expired() error {
	select {
	case answer, alive := <-s.child.answers:
		return s.answered(answer, alive)
	default:
	}
	if len(s.inHand) == 0 {
		return nil
	}
	left := s.settings.limit - (s.child.used() - s.before)
	if left > 0 && time.Since(s.since) < patience*s.settings.limit {
		s.clock.Reset(max(left, time.Millisecond))
		return nil
	}
	s.child.kill()
	return s.lost(outcome{Timeout: true})
}

// lost answers the case at the head for a worker that cannot, and hands the others to a new one.
func (s *slot) lost(what outcome) error {
	for range s.child.answers {
		// The process is ending; an answer that crossed with that is computed again.
	}
	if len(s.inHand) > 0 {
		what.ID = idOf(s.inHand[0].line)
		s.inHand[0].done <- what.line()
		s.inHand = s.inHand[1:]
	}
	return s.replace()
}

func (s *slot) finish(answer []byte) {
	s.answers++
	s.inHand[0].done <- answer
	if s.inHand = s.inHand[1:]; len(s.inHand) > 0 {
		s.watch()
	}
}

// replace starts a process and gives it what is in hand.
func (s *slot) replace() error {
	s.dismiss()
	next, err := spawn(s.oracle, s.settings)
	if err != nil {
		return err
	}
	s.child, s.answers = next, 0
	for _, j := range s.inHand {
		s.child.lines <- j.line
	}
	if len(s.inHand) > 0 {
		s.watch()
	}
	return nil
}

// dismiss ends the worker's input, and with it the worker.
func (s *slot) dismiss() {
	if s.child == nil {
		return
	}
	close(s.child.lines)
	for range s.child.answers {
		// No answer is due any more; the channel closes when the process has ended.
	}
	s.child = nil
}

// giveUp answers everything that is left with the reason why there is no worker, and reports it.
func (s *slot) giveUp(jobs <-chan *job, why error) error {
	refuse := func(j *job) { j.done <- outcome{ID: idOf(j.line), Error: why.Error()}.line() }
	for _, j := range s.inHand {
		refuse(j)
	}
	for jobs != nil {
		j, more := <-jobs
		if !more {
			break
		}
		refuse(j)
	}
	return why
}
