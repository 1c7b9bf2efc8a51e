package cli

import (
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// orderFlags are what all kinds of job have in common.
type orderFlags struct {
	targetFlags
	concurrency int
	maxFailures failureBudget
	timeout     time.Duration
	waitOffline time.Duration
	description string
	ordered     bool
	dryRun      bool
	skipDenied  bool
	yes         bool
	noWait      bool
}

func addOrderFlags(f flagSet, o *orderFlags) {
	addTargetFlags(f, &o.targetFlags)
	addPaceFlags(f, o)
	f.BoolVar(&o.ordered, "ordered", false, "let each node wait for those that it needs, and skip it if one of them did not succeed")
	f.StringVar(&o.description, "description", "", "why, for those who look at the job later")
	addStartFlags(f, o)
}

// addPaceFlags say how fast and how long.
func addPaceFlags(f flagSet, o *orderFlags) {
	f.IntVar(&o.concurrency, "concurrency", 0, "how many nodes at the same time; 0: as many as there are")
	f.Var(&o.maxFailures, "max-failures", "begin no more runs once more than this many did not succeed; empty: go on whatever happens")
	f.duration(&o.timeout, "timeout", 0, "how long a run may take, such as 10m; 0: the server's setting")
	f.duration(&o.waitOffline, "wait-offline", 0, "how long to wait for nodes that are not connected; 0: not at all")
}

// addStartFlags say what happens before and after the start.
func addStartFlags(f flagSet, o *orderFlags) {
	f.BoolVar(&o.dryRun, "dry-run", false, "show the nodes and start nothing")
	f.BoolVar(&o.skipDenied, "skip-denied", false, "leave out nodes that you may not touch, instead of starting nothing")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask, however many nodes there are")
	f.BoolVar(&o.noWait, "no-wait", false, "print the job's id and return at once")
}

// readOrder makes the common part of a request of flags.
func readOrder(a *app, o orderFlags) (order api.JobOrder, err error) {
	if err := o.check(); err != nil {
		return order, err
	}
	order = api.JobOrder{
		Ordered: o.ordered, Concurrency: o.concurrency, MaxFailures: o.maxFailures.limit, Timeout: api.WholeSeconds(o.timeout),
		WaitOffline: api.WholeSeconds(o.waitOffline), Description: o.description, SkipDenied: o.skipDenied,
	}
	order.Targets, err = readTargets(a, o.targetFlags)
	return order, err
}

func (o orderFlags) check() error {
	switch {
	case o.concurrency < 0:
		return usageError{fault.New(fault.Invalid, "--concurrency is a number of nodes, 0 or more, not %d", o.concurrency)}
	case o.timeout < 0:
		return usageError{fault.New(fault.Invalid, "--timeout is a duration such as 10m, not %s", o.timeout)}
	case o.waitOffline < 0:
		return usageError{fault.New(fault.Invalid, "--wait-offline is a duration such as 10m, not %s", o.waitOffline)}
	case o.dryRun && o.noWait:
		return usageError{fault.New(fault.Invalid, "--dry-run starts nothing that --no-wait could leave alone: give one of them")}
	}
	return nil
}

// failureBudget is a number that may be missing.
type failureBudget struct{ limit *int }

var _ pflag.Value = (*failureBudget)(nil)

func (b *failureBudget) String() string {
	if b.limit == nil {
		return ""
	}
	return strconv.Itoa(*b.limit)
}

func (b *failureBudget) Type() string { return "int" }

func (b *failureBudget) Set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return fault.New(fault.Invalid, "it is a number of nodes, 0 or more")
	}
	b.limit = &n
	return nil
}
