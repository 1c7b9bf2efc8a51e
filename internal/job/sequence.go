package job

import "fmt"

// sequence is the runs of an ordered job: which of them may begin, and which never will. It can
// be made from the rows at any time, and follows them by their changes. All that it decides rests
// on states that are final, so it may know less than the rows without being wrong.
type sequence struct {
	runs    []Run   // by number, of each who it is and its state
	waiters [][]int // by number-1: the numbers of those that wait for it
	open    []int   // by number-1: how many of those that it waits for have not succeeded
	seen    int64   // the number up to which it knows all changes
	changed int     // the lowest number of a run that may begin since it was asked; 0: none
	broken  []int   // numbers of runs that did not succeed, and whose waiters were not looked at
}

// newSequence is how a job's runs, all of them by number, stand in relation to each other.
func newSequence(edges []Edge, runs []Run, seen int64) *sequence {
	s := &sequence{runs: make([]Run, len(runs)), waiters: make([][]int, len(runs)), open: make([]int, len(runs)), seen: seen}
	for i, r := range runs {
		s.runs[i] = Run{ID: r.ID, Job: r.Job, Number: r.Number, Node: r.Node, State: Waiting}
	}
	for _, e := range edges {
		s.open[e.Run-1]++
		s.waiters[e.For-1] = append(s.waiters[e.For-1], e.Run)
	}
	for _, r := range runs {
		s.see(r)
	}
	return s
}

// see takes over what a row says.
func (s *sequence) see(r Run) {
	mine := &s.runs[r.Number-1]
	before := mine.State
	if mine.State = r.State; before.Final() {
		return // it was counted
	}
	switch {
	case r.State == Succeeded:
		for _, waiter := range s.waiters[r.Number-1] {
			if s.open[waiter-1]--; s.open[waiter-1] == 0 {
				s.note(waiter)
			}
		}
	case r.State.Final():
		s.broken = append(s.broken, r.Number)
	case r.State == Waiting && before != Waiting: // its order did not leave
		s.note(r.Number)
	}
}

func (s *sequence) note(number int) {
	if s.changed == 0 || number < s.changed {
		s.changed = number
	}
}

// freed is the lowest number of a run that may begin since the last time; 0 if none does.
func (s *sequence) freed() int {
	number := s.changed
	s.changed = 0
	return number
}

// may says whether all have succeeded that a run waits for.
func (s *sequence) may(number int) bool { return s.open[number-1] == 0 }

// next is at most n waiting runs behind a number that may begin, by number.
func (s *sequence) next(after, n int) []Run {
	var runs []Run
	for i := after; i < len(s.runs) && len(runs) < n; i++ {
		if s.runs[i].State == Waiting && s.may(i+1) {
			runs = append(runs, s.runs[i])
		}
	}
	return runs
}

// lost is the waiting runs that can never begin, each with the run because of which: the one at the
// beginning of the way that was itself tried. Each is returned once.
func (s *sequence) lost() []loss {
	var losses []loss
	taken := map[int]bool{}
	for _, skipped := range []bool{false, true} { // what was skipped has its reason in what was not
		for _, number := range s.broken {
			if cause := s.runs[number-1]; (cause.State == Skipped) == skipped {
				losses = append(losses, s.behind(cause, taken)...)
			}
		}
	}
	s.broken = nil
	return losses
}

// loss is a run that can never begin because of another one.
type loss struct {
	run, cause Run
}

func (l loss) reason() string { return fmt.Sprintf("because of %s (%s)", l.cause.Node, l.cause.State) }

// behind is the waiting runs that wait for a run, perhaps by way of others, and were not taken yet.
func (s *sequence) behind(cause Run, taken map[int]bool) []loss {
	var losses []loss
	seen := map[int]bool{}
	for queue := []int{cause.Number}; len(queue) > 0; queue = queue[1:] {
		for _, waiter := range s.waiters[queue[0]-1] {
			if seen[waiter] {
				continue
			}
			seen[waiter] = true
			queue = append(queue, waiter)
			if r := s.runs[waiter-1]; r.State == Waiting && !taken[waiter] {
				taken[waiter] = true
				losses = append(losses, loss{r, cause})
			}
		}
	}
	return losses
}
