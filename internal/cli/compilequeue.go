package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

type compileQueueInput struct {
	request api.CompileListRequest
	limit   int
}

var compileQueue = verb[compileQueueInput]{
	use: "queue", short: "Show what is to be compiled, what runs, what is paused, and how fast it goes",
	prints: aList,
	long: `Show how many compilations are wanted and run, by priority and environment. The
priorities, best first: waited (somebody waits), signed, new facts, new exports, new
code, previewing, background. Within one, environments take turns. An environment whose
compilations take too long again and again is slowed, and said to be.

With --node, --environment or --state: single compilations, the newest first, also
those that have ended. --state is wanted, running, resting, done or failed; a compilation
that could not be tried rests, and says why and when it is tried again.`,
	example: `  tutti compile queue
  tutti compile queue --state failed --environment production
  tutti compile queue --node web-1.example.test --limit 5 -o json`,
	flags: func(f flagSet, in *compileQueueInput) {
		f.StringVar(&in.request.Node, "node", "", "only compilations of this node")
		f.StringVarP(&in.request.Environment, "environment", "e", "", "only compilations of this environment")
		f.StringVar(&in.request.State, "state", "", "only those in this state: wanted, running (also those that rest), resting, done, failed")
		f.IntVar(&in.limit, "limit", 100, "at most so many; 0 means all")
		f.offers("state", "wanted", "running", "resting", "done", "failed")
	},
	run: func(ctx context.Context, c *call, in *compileQueueInput) error {
		if in.limit < 0 {
			return usageError{fmt.Errorf("--limit is %d; it must not be negative; 0 means all", in.limit)}
		}
		if in.request == (api.CompileListRequest{}) {
			return showAnswer(ctx, c.app, api.CompileQueue, api.Nothing{}, showQueue)
		}
		rows, err := some(ctx, c.app, api.CompileList, in.request, nextCompilations, in.limit)
		if err != nil {
			return err
		}
		return print.List(c.printer(), rows, compilationTable("No such compilations."))
	},
}

func nextCompilations(in *api.CompileListRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}

// showQueue says how the queue stands, lists what is to be compiled, and tells what runs.
func showQueue(to print.Printer, queue api.CompileQueueStatus) error {
	now := time.Now()
	hintQueue(to, queue, now)
	if err := print.List(to, queue.Lanes, laneTable(queue.Slowed)); err != nil {
		return err
	}
	for _, c := range queue.Now {
		to.Hint("%s", nowText(c, now))
	}
	return nil
}

func laneTable(slowed []api.CompileSlowed) print.Table[api.CompileLane] {
	return print.Table[api.CompileLane]{
		Columns: []string{"for", "environment", "wanted", "running", "resting", "oldest", "slowed"},
		Row: func(l api.CompileLane) []any {
			return []any{
				priorityText(l.Priority), l.Environment, l.Wanted, l.Running, l.Resting, someTime(l.Oldest), slowedLane(slowed, l),
			}
		},
		Name:  func(l api.CompileLane) string { return l.Environment },
		Empty: "Nothing is to be compiled.",
	}
}

// slowedLane says whether a lane is slowed.
func slowedLane(slowed []api.CompileSlowed, l api.CompileLane) string {
	apart := l.Priority == "previewing" || l.Priority == "background"
	for _, s := range slowed {
		if s.Environment == l.Environment && s.Previews == apart {
			return fmt.Sprintf("%d took too long", s.Timeouts)
		}
	}
	return ""
}

// slowedText says in words what is slowed.
func slowedText(s api.CompileSlowed, now time.Time) string {
	what := "Catalogs"
	if s.Previews {
		what = "Previews"
	}
	text := fmt.Sprintf("%s of %s are compiled one at a time and with pauses since %s: %d in a row of version %s took longer than compile_timeout.",
		what, s.Environment, s.Since.Format(time.RFC3339), s.Timeouts, short(s.Version))
	if s.RestsUntil.After(now) {
		text += " The next one may run at " + s.RestsUntil.Format(time.RFC3339) + "."
	}
	return text + " One that ends in time, or other code, ends this."
}

// troubleText says in words what waits since it could not be tried.
func troubleText(t api.CompileTrouble) string {
	when, state := "as soon as a worker is free", "wanted"
	if t.Next != nil {
		when, state = "at "+t.Next.Format(time.RFC3339), "resting"
	}
	return fmt.Sprintf("%s to be tried again %s: %s. See: tutti compile queue --state %s", fault.Count(t.Waiting, "compilation"), when, t.Trouble, state)
}

// hintQueue says in words how the queue stands.
func hintQueue(to print.Printer, q api.CompileQueueStatus, now time.Time) {
	for _, p := range q.Pauses {
		to.Hint("%s", pauseText(p))
	}
	for _, s := range q.Slowed {
		to.Hint("%s", slowedText(s, now))
	}
	for _, t := range q.Troubles {
		to.Hint("%s", troubleText(t))
	}
	text := fmt.Sprintf("%d wanted, %d running", q.Wanted, q.Running)
	if q.Resting > 0 {
		text += fmt.Sprintf(", %d resting after trouble", q.Resting)
	}
	if q.Oldest != nil {
		text += ", the oldest wanted " + print.Ago(*q.Oldest, now)
	}
	to.Hint("%s", text)
	for _, window := range []int{300, 3600} {
		if line := endedText(q.Ended, window); line != "" {
			to.Hint("%s", line)
		}
	}
}

// endedText is how much finished within a time; of several environments also how much
// in each.
func endedText(ended []api.CompileEnded, seconds int) string {
	var all api.CompileEnded
	var each []string
	for _, e := range ended {
		if e.Seconds == seconds {
			all.Compiled, all.Reused, all.Failed = all.Compiled+e.Compiled, all.Reused+e.Reused, all.Failed+e.Failed
			each = append(each, fmt.Sprintf("%s %d/%d/%d", e.Environment, e.Compiled, e.Reused, e.Failed))
		}
	}
	if len(each) == 0 {
		return ""
	}
	text := fmt.Sprintf("In the last %s: %d compiled, %d reused, %d failed", print.Duration(time.Duration(seconds)*time.Second), all.Compiled,
		all.Reused, all.Failed)
	if len(each) > 1 {
		text += " (" + strings.Join(each, ", ") + ")"
	}
	return text
}

// nowText is a compilation that runs.
func nowText(c api.Compilation, now time.Time) string {
	text := fmt.Sprintf("%s: %d %s in %s for %s, wanted %s", c.State, c.ID, c.Node, c.Environment, priorityText(c.Priority), print.Ago(c.WantedAt, now))
	if c.State == "running" {
		text += ", by " + c.Worker
	}
	if trouble := compilationError(c); trouble != "" {
		text += ", " + trouble
	}
	return text
}
