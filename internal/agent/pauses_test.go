package agent

import (
	"testing"
	"time"
)

func TestPausesGrowWithFailures(t *testing.T) {
	t.Parallel()
	p := pauses{poll: 15 * time.Minute}
	for range 2 { // the second time as the first
		for _, about := range []time.Duration{firstLook, 2 * firstLook, 4 * firstLook, 8 * firstLook} {
			if got := p.next(true); got < about/2 || got >= about*3/2 {
				t.Errorf("after a failure %s, want about %s", got, about)
			}
		}
		for range 20 {
			p.next(true)
		}
		for _, failed := range []bool{true, false} {
			if got := p.next(failed); got < p.poll/2 || got >= p.poll*3/2 {
				t.Errorf("%s, want about %s", got, p.poll)
			}
		}
	}
}
