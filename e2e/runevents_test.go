package e2e_test

import (
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/sim"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// said is what one run said, a line for each event.
type said []string

// line tells of a resource when it happened. A run's begin and end are told by different clocks when it was killed, or
// when its report was there before its stream.
func line(n int, kind, status, resource, title string, at time.Time) string {
	if kind == pxp.RunBegan || kind == pxp.RunEnded {
		at = time.UnixMicro(0)
	}
	return fmt.Sprintf("%d %s %s %s[%s] %d", n, kind, status, resource, title, at.UnixMicro())
}

// streamOf is what the stream has to say of an application. That a run was interrupted the agent says, at its own time.
func streamOf(a sim.Application) (all said) {
	for _, e := range a.Events {
		all = append(all, line(e.N, e.Kind, e.Status, e.Type, e.Title, e.At))
	}
	if a.Interrupted && len(a.Events) > 0 {
		all = append(all, line(len(a.Events)+1, pxp.RunEnded, pxp.RunInterrupted, "", "", a.At))
	}
	return all
}
