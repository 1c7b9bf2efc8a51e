package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
)

// puppetCommand is what is said to Puppet's agents, by the module puppet of the nodes.
var puppetCommand = asking{noun{
	use: "puppet", short: "See, hold and run Puppet's agents on nodes",
	verbs: []declared{puppetStatus, puppetSummaryVerb, puppetEnable, puppetDisable, puppetRunonce},
}}

// puppetInput is a word to Puppet's agents.
type puppetInput struct {
	actionRunInput
	message string
	once    onceFlags
}

// puppetVerb is a verb that calls an action of the module puppet on nodes.
func puppetVerb(v verb[puppetInput], name string, texts func(c *call, in *puppetInput) map[string]string) verb[puppetInput] {
	more := v.flags
	v.args, v.complete = cobra.ArbitraryArgs, completeNodes
	v.long += "\n\n" + whichNodes
	v.flags = func(f flagSet, in *puppetInput) {
		addOrderFlags(f, &in.o)
		if more != nil {
			more(f, in)
		}
	}
	v.run = func(ctx context.Context, c *call, in *puppetInput) error {
		in.o.names = slices.Concat(in.o.names, c.args)
		var input api.ActionInput
		if texts != nil {
			input.Texts = texts(c, in)
		}
		if name == "last_run_summary" {
			in.layout = puppetSummary
		}
		described, err := describedAction(ctx, c.app, "puppet", name)
		if err != nil {
			return err
		}
		return callDescribed(ctx, c, &in.actionRunInput, "puppet", described, input)
	}
	return v
}

var answersOfCall = outputs{"table", "json", "jsonl", "yaml", "csv", "name"}

var puppetStatus = puppetVerb(verb[puppetInput]{
	use: "status [NODE|@FILE|-]...", short: "Show what Puppet's agents do at this moment", prints: answersOfCall,
	long:    "Show of each node whether Puppet runs on it, is idle, stopped or disabled, why, and when it ran last.",
	example: "  tutti puppet status --all\n  tutti puppet status web-1.example.test",
}, "status", nil)

var puppetSummaryVerb = puppetVerb(verb[puppetInput]{
	use: "summary [NODE|@FILE|-]...", short: "Show how the last Puppet runs of nodes went", prints: answersOfCall,
	long:    "Show for each number of the nodes' last Puppet runs how the nodes are spread over it. -o csv has the numbers of each node.",
	example: "  tutti puppet summary --all\n  tutti puppet summary --class role::web -o csv",
}, "last_run_summary", nil)

var puppetEnable = puppetVerb(verb[puppetInput]{
	use: "enable [NODE|@FILE|-]...", short: "Let Puppet run on nodes again", prints: results,
	long:    "Let Puppet run on nodes where it was disabled. It is a job.",
	example: "  tutti puppet enable --class role::web",
}, "enable", nil)

var puppetDisable = puppetVerb(verb[puppetInput]{
	use: "disable [NODE|@FILE|-]...", short: "Have no Puppet run on nodes, and say why", prints: results,
	long:    "Have no Puppet run on nodes until it is enabled again. It is a job.",
	example: "  tutti puppet disable --message 'kernel update' --class role::web",
	flags: func(f flagSet, in *puppetInput) {
		f.StringVarP(&in.message, "message", "m", "", "why; whoever wants to run Puppet on the node reads it")
	},
}, "disable", func(_ *call, in *puppetInput) map[string]string {
	if in.message == "" {
		return nil
	}
	return map[string]string{"message": in.message}
})

var puppetRunonce = puppetVerb(verb[puppetInput]{
	use: "runonce [NODE|@FILE|-]...", short: "Run Puppet once on nodes, with their own splay", prints: results,
	long: `Run Puppet once on nodes, with the splay that their settings have, as mco puppet runonce does. It is a job. "tutti run" runs Puppet at once and
follows each run.`,
	example: "  tutti puppet runonce --all --splay --splaylimit 300\n  tutti puppet runonce web-1.example.test --force --noop",
	flags:   func(f flagSet, in *puppetInput) { in.once.add(f) },
}, "runonce", func(c *call, in *puppetInput) map[string]string { return in.once.texts(c) })

// onceFlags are those of one Puppet run that the module puppet begins.
type onceFlags struct {
	force, noop, noNoop, cached, splay, noSplay bool
	splayLimit                                  int
	tags                                        []string
	environment                                 string
}

func (o *onceFlags) add(f flagSet) {
	f.BoolVar(&o.force, "force", false, "run at once, whatever Puppet's splay settings say")
	f.BoolVar(&o.noop, "noop", false, "change nothing")
	f.BoolVar(&o.noNoop, "no-noop", false, "change what is to be changed, also on nodes that are set to noop")
	f.BoolVar(&o.splay, "splay", false, "wait for a random time before the run")
	f.BoolVar(&o.noSplay, "no-splay", false, "do not wait, whatever Puppet's settings say")
	f.IntVar(&o.splayLimit, "splaylimit", 0, "seconds that this time is at most; it means --splay")
	f.BoolVar(&o.cached, "use-cached-catalog", false, "apply the catalog that the node has")
	f.StringSliceVar(&o.tags, "tags", nil, "only resources with one of these tags")
	f.StringVarP(&o.environment, "environment", "e", "", "run in this environment")
	f.cmd.MarkFlagsMutuallyExclusive("noop", "no-noop")
	f.cmd.MarkFlagsMutuallyExclusive("splay", "no-splay")
	f.cmd.MarkFlagsMutuallyExclusive("splaylimit", "no-splay")
	f.cmd.MarkFlagsMutuallyExclusive("splay", "force")
	f.cmd.MarkFlagsMutuallyExclusive("splaylimit", "force")
}

// texts are the flags as the action runonce takes them.
func (o *onceFlags) texts(c *call) map[string]string {
	texts := map[string]string{}
	for _, one := range []struct {
		given       bool
		name, value string
	}{
		{o.force, "force", "true"},
		{o.noop, "noop", "true"},
		{o.noNoop, "noop", "false"},
		{o.cached, "use_cached_catalog", "true"},
		{o.splay || c.changed("splaylimit"), "splay", "true"},
		{o.noSplay, "splay", "false"},
		{c.changed("splaylimit"), "splaylimit", strconv.Itoa(o.splayLimit)},
		{len(o.tags) > 0, "tags", strings.Join(o.tags, ",")},
		{o.environment != "", "environment", o.environment},
	} {
		if one.given {
			texts[one.name] = one.value
		}
	}
	return texts
}

// onceWords are the flags of tutti puppet for what an action of the module puppet is given.
func onceWords(texts map[string]string) (words []string) {
	for _, one := range []struct{ name, value, flag string }{
		{"force", "true", "--force"},
		{"noop", "true", "--noop"},
		{"noop", "false", "--no-noop"},
		{"use_cached_catalog", "true", "--use-cached-catalog"},
		{"splay", "true", "--splay"},
		{"splay", "false", "--no-splay"},
	} {
		if texts[one.name] == one.value {
			words = append(words, one.flag)
		}
	}
	for _, one := range [][2]string{{"message", "--message"}, {"splaylimit", "--splaylimit"}, {"tags", "--tags"}, {"environment", "--environment"}} {
		if text := texts[one[0]]; text != "" {
			words = append(words, one[1], text)
		}
	}
	return words
}
