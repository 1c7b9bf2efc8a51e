package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/cli/print"
)

// jobOutcome is a job that did not go well on all of its nodes.
type jobOutcome struct {
	code int
	text string
}

func (o jobOutcome) Error() string { return o.text }

// verdict is nil for a job that succeeded everywhere.
func (w *watcher) verdict() error {
	counts := w.standing().counts
	took := ""
	if w.job.FinishedAt != nil {
		took = " after " + print.Duration(w.job.FinishedAt.Sub(w.job.CreatedAt).Abs().Round(time.Millisecond))
	}
	if w.tools.follows() && w.output == "table" {
		return w.theirVerdict(outcomeCode(w.job.State, counts))
	}
	summary := fmt.Sprintf("job %s %s%s: %s", w.job.ID, w.job.State, took, countsText(counts))
	code := outcomeCode(w.job.State, counts)
	if code == exitDone {
		w.hint("%s", strings.ToUpper(summary[:1])+summary[1:])
		return nil
	}
	if w.job.Reason != "" {
		summary += "; " + w.job.Reason
	}
	return jobOutcome{code, summary + "; once more for those that did not succeed: tutti job rerun " + w.job.ID}
}

// outcomeCode is the exit code of a job that is over. Failures go before nodes that said
// no, and those before nodes that did not answer in time.
func outcomeCode(state string, counts map[string]int) int {
	late := counts["timed_out"] + counts["offline"]
	refused := counts["refused"]
	failed := counts["failed"] + counts["errored"] + counts["lost"] + counts["killed"]
	switch {
	case failed > 0:
		return exitSomeFailed
	case refused > 0 && late == 0:
		return exitRefused
	case late > 0 && refused == 0:
		return exitLate
	case refused+late+counts["skipped"] > 0 || state != "finished":
		return exitSomeFailed
	}
	return exitDone
}
