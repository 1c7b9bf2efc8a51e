package job

import (
	"context"
	"fmt"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// PuppetReport is what is known of a Puppet run besides what its agent says: its report came apart.
type PuppetReport struct {
	ID      string // empty: it is not there
	Failed  int    // resources
	Pending int    // resources that would have been changed
	First   string // the resource that failed first, Type[title]
	Message string // why
	// Cached says that the run was given no catalog and applied the one that the node had; NoCatalog is what it was told.
	Cached    bool
	NoCatalog string
	// Broken is why the catalog that the node should have had does not compile, with its place; empty: it compiles, or
	// the node is not meant to have the newest one.
	Broken string
	// Held is why the node was given the catalog that it has instead of the newest one; empty: that is not so.
	Held string
}

// Reports knows what came of Puppet runs. It is asked when an agent says that a run has ended.
type Reports interface {
	PuppetReport(ctx context.Context, node fleet.Certname, transaction string) (PuppetReport, error)
}

// reported adds to what an agent says of a Puppet run what its report says.
func (s *Service) reported(ctx context.Context, e *Event, asked *PuppetSpec) {
	if s.Reports == nil || e.What != Ended || e.Outcome == nil || e.Outcome.Puppet == nil {
		return
	}
	r, err := s.Reports.PuppetReport(ctx, e.Node, e.Outcome.Puppet.Transaction)
	if err != nil && fault.Of(err) != fault.NotFound { // the agent's own words stand
		s.Log.WarnContext(ctx, "the report of a run could not be read", "node", e.Node, "run", e.Run, "err", err)
		return
	}
	e.judge(r, asked)
}

// judge makes of a run what its report says that it is. A run that applied an old catalog because there is no new one did not do what was
// ordered, whatever came of the old one; one that was ordered to apply what it has did.
func (e *Event) judge(r PuppetReport, asked *PuppetSpec) {
	e.say(r, asked)
	if r.Held != "" && e.State.Final() {
		e.Outcome.Puppet.Held = clean(r.Held)
		e.Reason = strings.TrimPrefix(e.Reason+"; ", "; ") + e.Outcome.Puppet.Held
	}
}

// say makes the state and the reason out of a report.
func (e *Event) say(r PuppetReport, asked *PuppetSpec) {
	p := e.Outcome.Puppet
	p.Report, p.Failed, p.First, p.Message = r.ID, r.Failed, clean(r.First), clean(r.Message)
	if p.Pending = r.Pending; r.ID == "" && asked != nil && asked.Noop {
		p.Pending = max(0, p.Metrics["out_of_sync"]-p.Metrics["changed"]-p.Metrics["failed"])
	}
	kept := e.Outcome.kept && (asked == nil || !asked.UseCachedCatalog)
	switch {
	case r.Broken != "" && (r.Cached || kept):
		p.Cached = true
		e.State, e.Reason = RunFailed, clean(fmt.Sprintf("its catalog does not compile (%s); it applied the one it had", r.Broken))
	case r.Cached:
		p.Cached = true
		e.State, e.Reason = RunFailed, clean(ungiven(r)+"; it applied the one it had")
	case e.State == RunFailed && r.Broken != "" && r.Failed == 0:
		e.Reason = clean(fmt.Sprintf("its catalog does not compile (%s)", r.Broken))
	case e.State == RunFailed && r.NoCatalog != "" && r.Failed == 0:
		e.Reason = clean(ungiven(r))
	case e.State == RunFailed && r.First != "":
		e.Reason = failedText(r)
	case e.State == Succeeded && p.Pending > 0:
		e.Reason = fmt.Sprintf("Puppet ran: %d would change", p.Pending)
		return
	default:
		return
	}
	if r.ID != "" {
		e.Reason += "; tutti report show " + shortID(r.ID)
	}
}

// ungiven says that a run was given no catalog.
func ungiven(r PuppetReport) string {
	if r.NoCatalog == "" {
		return "it was given no catalog"
	}
	if env := fleet.Absent(r.NoCatalog); env != "" {
		return "it was given no catalog: " + fleet.WithoutCode(env)
	}
	return "it was given no catalog: " + r.NoCatalog
}

// failedText names the first resource that failed.
func failedText(r PuppetReport) string {
	text := r.First
	if r.Message != "" {
		text += ": " + strings.TrimRight(r.Message, ". ")
	}
	return clean(text + "; " + fault.Count(max(r.Failed, 1), "resource") + " failed")
}

// shortID is enough of a report's name to show it by.
func shortID(id string) string { return id[:min(len(id), 12)] }
