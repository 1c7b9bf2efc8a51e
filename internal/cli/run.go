package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
)

// puppetFlags are those of a Puppet run.
type puppetFlags struct {
	noop, noNoop bool
	request      api.JobPuppetRequest
}

func (p *puppetFlags) add(flags *pflag.FlagSet) {
	r := &p.request
	flags.StringVarP(&r.Environment, "environment", "e", "", "environment that the nodes use; empty: each its own")
	flags.BoolVar(&p.noop, "noop", false, "change nothing, only say what would be changed")
	flags.BoolVar(&p.noNoop, "no-noop", false, "change what is to be changed, also on nodes that are set to noop")
	flags.StringSliceVar(&r.Tags, "tags", nil, "only resources with one of these tags")
	flags.StringSliceVar(&r.SkipTags, "skip-tags", nil, "no resources with one of these tags")
	flags.BoolVar(&r.Debug, "debug", false, "the node logs all that it does")
	flags.BoolVar(&r.Trace, "trace", false, "the node logs where in Puppet errors come from")
	flags.BoolVar(&r.EvalTrace, "evaltrace", false, "the node logs each resource")
	flags.BoolVar(&r.ShowDiff, "show-diff", false, "the node logs differences of files")
	flags.BoolVar(&r.CachedCatalog, "use-cached-catalog", false, "apply the catalog that the node has, and ask for no new one")
}

func (p *puppetFlags) make(order api.JobOrder) api.JobPuppetRequest {
	request := p.request
	request.JobOrder = order
	if p.noop || p.noNoop {
		request.Noop = &p.noop
	}
	return request
}

type runCommandInput struct {
	o orderFlags
	p puppetFlags
}

var runCommand = asking{puppetRunVerb(`  tutti run web-1.example.test web-2.example.test
  tutti run --where 'facts.os.family = "Debian"' --noop
  tutti run --group 'Web servers' --concurrency 20 --max-failures 3
  tutti run --all --exclude db-1.example.test --tags ntp,ssh --yes
  tutti run @nodes.txt --environment canary --wait-offline 30m --no-wait`)}

// jobRun is the same for those who know puppet job run, whose flags it takes (enterprise.go).
var jobRun = puppetRunVerb(`  tutti job run --nodes web-1,web-2 --noop
  tutti job run --query 'nodes[certname] { certname ~ "web" }' --concurrency 5
  tutti job run --node-group 'Web servers' --no-wait`)

func puppetRunVerb(example string) verb[runCommandInput] {
	return verb[runCommandInput]{
		use: "run [NODE|@FILE|-]...", short: "Run Puppet on nodes, now", args: cobra.ArbitraryArgs,
		prints: results,
		long: `Run Puppet on nodes, and follow the runs to their end.

` + targetHelp + `

A node that is not connected ends as offline, unless --wait-offline gives it time. One Puppet run is
on a node at a time: a second one waits for the first. Ctrl-C leaves the job to go on; "tutti job watch" comes back to it.

` + exitHelp,
		example:  example,
		complete: completeNodes,
		flags: func(f flagSet, in *runCommandInput) {
			addOrderFlags(f, &in.o)
			in.p.add(f.FlagSet)
		},
		run: func(ctx context.Context, c *call, in *runCommandInput) error {
			in.o.names = append(in.o.names, c.args...)
			if in.p.noop && in.p.noNoop {
				return usageError{fault.New(fault.Invalid, "--noop and --no-noop say the opposite: give one of them")}
			}
			return launch(ctx, c.app, in.o, newJob{
				does: in.p.does(), send: ordered(api.JobPuppet, in.p.make),
			})
		},
	}
}

// does is what the job does, in words.
func (p *puppetFlags) does() string {
	if p.noop {
		return "Puppet run (noop)"
	}
	return "Puppet run"
}

const exitHelp = `Exit code: 0 all succeeded, 4 some failed, 5 refused by the server or by nodes, 6 nodes were offline or took too
long, 7 no right, 8 server not reachable, 130 interrupted (the job goes on).`

// launch completes a job with what its flags say, and runs it.
func launch(ctx context.Context, a *app, o orderFlags, n newJob) (err error) {
	n.app, n.flags = a, o
	if n.order, err = readOrder(a, o); err != nil {
		return err
	}
	if n.client == nil {
		if n.client, err = a.client(); err != nil {
			return err
		}
	}
	return n.run(ctx)
}
