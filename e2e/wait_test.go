package e2e_test

import (
	"testing"
	"time"
)

// patience is how long is waited for what takes a moment, on a machine that has other things to do.
const patience = 3 * time.Minute

// Between two questions lies ten times what a question takes: many a story asks by starting a program, and six that ask
// all the time would leave the processors no room for what they wait for.
const (
	shortPause    = 20 * time.Millisecond
	longPause     = 2 * time.Second
	pauseOverTime = 10
)

// eventually waits until ok says yes, and fails the story when it does not within the
// deadline. It asks again and again.
func eventually(tb testing.TB, deadline time.Duration, what string, ok func() bool) {
	tb.Helper()
	if !within(deadline, ok) {
		tb.Fatalf("%s: not within %s", what, deadline)
	}
}

// within says whether ok said yes before the deadline.
func within(deadline time.Duration, ok func() bool) bool {
	end := time.NewTimer(deadline)
	defer end.Stop()
	for {
		asked := time.Now()
		if ok() {
			return true
		}
		select {
		case <-end.C:
			return ok()
		case <-time.After(min(max(pauseOverTime*time.Since(asked), shortPause), longPause)):
		}
	}
}
