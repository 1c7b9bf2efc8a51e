package e2e_test

import (
	"testing"
	"time"
)

// patience is how long is waited for what takes a moment, on a machine that has other things to do.
const patience = 3 * time.Minute

// eventually waits until ok says yes, and fails the story when it does not within the
// deadline. It asks again and again; what it asks must be cheap.
func eventually(t *testing.T, deadline time.Duration, what string, ok func() bool) {
	t.Helper()
	if !within(deadline, ok) {
		t.Fatalf("%s: not within %s", what, deadline)
	}
}

// within says whether ok said yes before the deadline.
func within(deadline time.Duration, ok func() bool) bool {
	end := time.NewTimer(deadline)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok() {
			return true
		}
		select {
		case <-end.C:
			return ok()
		case <-tick.C:
		}
	}
}
