package puppetrun

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// ending is what a start of Puppet came to.
type ending struct {
	results pxp.PuppetResults
	report  report // zero when it left none
	locked  bool   // another run holds the lock; there is nothing else
}

// attempt runs Puppet, and once more if another run held the lock. Prepare comes right before each.
func (p *puppet) attempt(ctx context.Context, args []string, at files, prepare func() error) ending {
	end := p.once(ctx, args, at, prepare)
	if !end.locked {
		return end
	}
	if !freed(ctx, at.lock) {
		return ending{results: wrong(pxp.AgentLocked, end.results.ExitCode, "another Puppet run did not end in %s", fault.Duration(lockWait))}
	}
	if end = p.once(ctx, args, at, prepare); end.locked {
		return ending{results: wrong(pxp.AgentLocked, end.results.ExitCode, "another Puppet run began before this one could")}
	}
	return end
}

func (p *puppet) once(ctx context.Context, args []string, at files, prepare func() error) ending {
	if err := prepare(); err != nil {
		return ending{results: wrong(pxp.AgentFailedToStart, notRun, "the catalog could not be given to Puppet: %v", err)}
	}
	before := modified(at.report) // when it had to wait, that is the other run's
	exit, err := p.run(ctx, args)
	switch {
	case err != nil:
		return ending{results: wrong(pxp.AgentFailedToStart, notRun, "Puppet could not be started: %v", err)}
	case exit != 0 && there(at.disabled):
		return ending{results: disabled(exit)}
	case exit != 0 && there(at.lock):
		return ending{results: wrong("", exit, ""), locked: true}
	}
	end := conclude(at.report, before, exit)
	p.complaints.into(&end.results)
	if end.report.TransactionUUID != "" && p.errs.heard && p.Reports != "" {
		if err := keepReport(at.report, p.Reports, time.Now()); err != nil {
			p.say("the report is lost: it could neither be sent nor kept: %v", err)
		}
	}
	return end
}

func disabled(exit int) pxp.PuppetResults {
	return wrong(pxp.AgentDisabled, exit, "Puppet is disabled on this node; `puppet agent --enable` enables it")
}

// conclude makes results of the report that a run left.
func conclude(path string, before time.Time, exit int) ending {
	after := modified(path)
	switch {
	case after.IsZero():
		return ending{results: wrong(pxp.NoLastRunReport, exit, "the run left no report at %s", path)}
	case after.Equal(before):
		return ending{results: wrong(pxp.NoLastRunReport, exit, "The Puppet run failed in an unexpected way: it left no report at %s", path)}
	}
	r, err := readReport(path)
	if err != nil {
		return ending{results: wrong(pxp.InvalidLastRunReport, exit, "the report %s cannot be read: %v", path, err)}
	}
	results := wrong("", exit, "")
	if exit != 0 {
		results = wrong(pxp.AgentExitNonZero, exit, "Puppet ended with exit code %d", exit)
	}
	r.fill(&results)
	return ending{results: results, report: r}
}
