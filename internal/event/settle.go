package event

import (
	"slices"
	"strconv"
	"time"

	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// Report is what a run's report says of it.
type Report struct {
	Environment string
	Status      string
	Version     string
	Job         string // job_id
	Noop        bool
	Started     time.Time
	Ended       time.Time
	Events      []pxp.RunEvent // of resources; N means nothing
}

// Unsettled is a run and its report.
type Unsettled struct {
	Run    Run
	Report Report
	Stream []pxp.RunEvent // of resources, as they are stored
}

// Settlement is what follows from a run and its report.
type Settlement struct {
	Run    Run            // as it is after it
	Was    int            // Run.Last when it was looked at
	Job    string         // the job that the report names; of a run without a stream
	Add    []pxp.RunEvent // what is stored besides
	Lacked int            // events of the report that the stream had not, and its node did not say so
	Extra  int            // events of the stream that the report has not
}

// Settle compares a run with its report. A run without a stream is made from it.
func Settle(u Unsettled) Settlement {
	run, report := u.Run, u.Report
	s := Settlement{Was: run.Last}
	if report.Started.IsZero() { // it was forgotten meanwhile
		run.Settled = true
		s.Run = run
		return s
	}
	events := fitted(report.Events)
	if run.Last == 0 {
		s.Job = report.Job
		s.Add = slices.Concat([]pxp.RunEvent{{Kind: pxp.RunBegan, At: report.Started, Environment: report.Environment, Noop: report.Noop}},
			events, []pxp.RunEvent{report.end()})
	} else {
		lacking, extra := compare(events, u.Stream)
		s.Add, s.Extra, s.Lacked = lacking, extra, max(0, len(lacking)-run.Missing)
		if run.Ended.IsZero() {
			s.Add = append(s.Add, report.end())
		}
	}
	for i := range s.Add {
		s.Add[i].N = run.Last + 1
		run = run.step(s.Add[i])
	}
	run.Settled = true
	s.Run = run
	return s
}

func (r Report) end() pxp.RunEvent {
	return pxp.RunEvent{
		Kind: pxp.RunEnded, At: r.Ended, Environment: r.Environment, Status: r.Status, Version: r.Version, Noop: r.Noop, Pending: r.pending(),
	}.Fit()
}

// pending is how many resources would have been changed.
func (r Report) pending() int {
	type resource struct{ kind, title string }
	resources := map[resource]bool{}
	for _, e := range r.Events {
		if e.Status == Noop {
			resources[resource{e.Type, e.Title}] = true
		}
	}
	return len(resources)
}

// fitted is a report's events as a node would have sent them.
func fitted(events []pxp.RunEvent) []pxp.RunEvent {
	out := make([]pxp.RunEvent, len(events))
	for i, e := range events {
		e.Kind = pxp.ResourceEvent
		out[i] = e.Fit()
	}
	slices.SortStableFunc(out, func(a, b pxp.RunEvent) int { return a.At.Compare(b.At) })
	return out
}

// JobNumber is the job that a report's job_id may mean; 0: none.
func JobNumber(id string) int64 {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// identity is what makes two events the same.
type identity struct {
	kind, title, property, status string
	micros                        int64
}

func identityOf(e pxp.RunEvent) identity {
	return identity{e.Type, e.Title, e.Property, e.Status, e.At.UnixMicro()}
}

// compare says which events of a report a stream has not, and how many it has that the report has not. Of a resource that was
// skipped a report says nothing else.
func compare(reported, streamed []pxp.RunEvent) (lacking []pxp.RunEvent, extra int) {
	type resource struct{ kind, title string }
	skipped, there := map[resource]bool{}, map[identity]int{}
	for _, e := range reported {
		if e.Status == Skipped {
			skipped[resource{e.Type, e.Title}] = true
		}
	}
	for _, e := range streamed {
		if e.Status == Skipped || !skipped[resource{e.Type, e.Title}] {
			there[identityOf(e)]++
		}
	}
	for _, e := range reported {
		if there[identityOf(e)] == 0 {
			lacking = append(lacking, e)
			continue
		}
		there[identityOf(e)]--
	}
	for _, more := range there {
		extra += more
	}
	return lacking, extra
}
