package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// actionRunInput is a call of an action.
type actionRunInput struct {
	o       orderFlags
	p       paramFlags
	batch   int
	sleep   time.Duration
	display string
	answers string                       // an expression over those that are shown
	layout  func([]action.Answer) string // of answers for people; nil: the same ones together
}

const actionHelp = `An action that only reads is asked of the nodes, and their answers come as they are given; the same answers are put together. An action
that changes something is a job: "tutti job show" has it later, with what became of each node.
"tutti action list" names the modules that nodes have, "tutti action show MODULE" what each takes.

Input: NAME=VALUE after the action, or with --params: NAME=VALUE, an object of JSON, a file of one (@FILE), or standard input (-). Whether a
value is a number, a list or a text says the action. Inputs that the action declares sensitive are refused on the command line, where
others can see them: give them in a file, on standard input, from the environment (--env) or at a prompt (--ask).`

var actionRun = verb[actionRunInput]{
	use: "run MODULE ACTION [NAME=VALUE]... [-]", short: "Call an action of a module on nodes", args: actionAndInput,
	prints: answersOfCall,
	long: actionHelp + `

` + whichNodes + `
A - among the arguments takes them from standard input: names, or the answers of an earlier call.
--dry-run says which nodes are meant, and with conditions why each of them holds or does not; the action is not called then.

Exit codes: 0 all nodes did it; 1 no node is meant; 4 some failed; 5 some refused, or do not have the action; 6 some are offline or did not answer.`,
	example: `  tutti action run service status service=ssh --all
  tutti action run package status package=openssl --fact os.family=Debian --batch 50 --batch-sleep 5s
  tutti action run puppet disable message='kernel update' --class role::web
  tutti action run rpcutil get_fact fact=os.release.major --all -o json
  tutti action run service status service=nginx --all -o jsonl | tutti action run service start service=nginx - --take 'data.status == "stopped"'
  tutti action run service restart service=nginx --select 'service("nginx").status == "running"' --limit 10%`,
	complete: completeAction,
	flags: func(f flagSet, in *actionRunInput) {
		addOrderFlags(f, &in.o)
		in.p.add(f)
		f.IntVar(&in.batch, "batch", 0, "how many nodes are asked at a time; 0: all. Of an action that changes something, it is --concurrency")
		f.duration(&in.sleep, "batch-sleep", batchSleep, "how long to wait between two batches of an action that only reads")
		f.StringVar(&in.display, "display", "", "which answers to show: ok, failed, all or none; empty: as the action says")
		f.offers("display", "ok", "failed", "all", "none")
		f.StringVar(&in.answers, "answers", "",
			`show and print only answers for which this holds: 'code == 0 and data.status == "stopped"'; it reads code, state, node, message and data`)
	},
	run: runAction,
}

// actionAndInput takes a module, an action and pairs.
func actionAndInput(_ *cobra.Command, args []string) error {
	switch len(args) {
	case 0:
		return usageError{&fault.Error{Kind: fault.Invalid, Detail: "MODULE and ACTION are missing", Hint: "see `tutti action list`"}}
	case 1:
		return usageError{
			&fault.Error{Kind: fault.Invalid, Detail: "which action of the module " + args[0] + " is not said", Hint: "see `tutti action show " + args[0] + "`"},
		}
	}
	return nil
}

func runAction(ctx context.Context, c *call, in *actionRunInput) error {
	words := c.args[2:]
	for at := slices.Index(words, "-"); at >= 0; at = slices.Index(words, "-") { // the nodes, as everywhere
		words, in.o.names = slices.Concat(words[:at], words[at+1:]), append(in.o.names, "-")
	}
	if stdinTwice(in.o, in.p) {
		return usageError{fault.New(fault.Invalid, "standard input can be the nodes or the input, not both: put one of them into a file")}
	}
	if !slices.Contains([]string{"", "ok", "failed", "all", "none"}, in.display) {
		return usageError{fault.New(fault.Invalid, "--display is %.40q; choose ok, failed, all or none", in.display)}
	}
	module, name := c.args[0], c.args[1]
	described, err := describedAction(ctx, c.app, module, name)
	if err != nil {
		return err
	}
	given, err := readParams(c.app, words, in.p, secretsOfAction(module, described))
	if err != nil {
		return err
	}
	input := api.ActionInput{Input: given.values, Texts: given.texts}
	if in.answers != "" && !described.ReadOnly {
		return usageError{fault.New(fault.Invalid, "--answers is for actions that only read; %s %s is a job: tutti job show has its runs", module, name)}
	}
	if err := c.checkSleep(module, described); err != nil {
		return err
	}
	return callDescribed(ctx, c, in, module, described, input)
}

// batchSleep is how long to wait between two batches if nobody says it; MCollective waits as long.
const batchSleep = time.Second

// checkSleep refuses a time between batches that nobody would wait for.
func (c *call) checkSleep(module string, a api.Action) error {
	if a.ReadOnly || !c.changed("batch-sleep") {
		return nil
	}
	return usageError{&fault.Error{
		Kind:   fault.Invalid,
		Detail: fmt.Sprintf("--batch-sleep is for actions that only read; %s %s is a job, which begins with a node when another one has ended", module, a.Name),
		Hint:   "--batch N says how many nodes it runs on at a time",
	}}
}

// callDescribed asks an action that only reads, and orders every other one as a job.
func callDescribed(ctx context.Context, c *call, in *actionRunInput, module string, described api.Action, input api.ActionInput) error {
	if in.o.dryRun && (in.o.filtered() || described.ReadOnly) {
		return explainTargets(ctx, c, in.o.targetFlags)
	}
	if described.ReadOnly {
		return askAction(ctx, c, in, module, described.Name, input)
	}
	if in.batch > 0 && in.o.concurrency == 0 {
		in.o.concurrency = in.batch
	}
	return launch(ctx, c.app, in.o, newJob{
		does: module + " " + described.Name,
		send: ordered(api.JobAction, func(order api.JobOrder) api.JobActionRequest {
			return api.JobActionRequest{JobOrder: order, ActionInput: input, Module: module, Action: described.Name}
		}),
	})
}

// describedAction is an action of a module, from the newest version that nodes have.
func describedAction(ctx context.Context, a *app, module, name string) (api.Action, error) {
	m, err := ask(ctx, a, api.ActionShow, api.ActionShowRequest{Module: module})
	if err != nil {
		return api.Action{}, err
	}
	return actionNamed(m, name)
}

// secretsOfAction are the inputs that others must not see.
func secretsOfAction(module string, a api.Action) secretParams {
	s := secretParams{of: module + " " + a.Name}
	for _, f := range a.Inputs {
		if f.Sensitive {
			s.names = append(s.names, f.Name)
		}
	}
	return s
}

// actionNamed is one action of a module.
func actionNamed(m api.ActionModule, name string) (api.Action, error) {
	var names []string
	for _, one := range m.Actions {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
	}
	return api.Action{}, &fault.Error{
		Kind: fault.NotFound, Detail: fmt.Sprintf("the module %s has no action %.80q", m.Module, name),
		Hint: cmp.Or(fault.DidYouMean(name, names), "tutti action show "+m.Module),
	}
}

// explainTargets says which nodes are meant, and which conditions hold for each.
func explainTargets(ctx context.Context, c *call, t targetFlags) error {
	targets, err := readTargets(c.app, t)
	if err != nil {
		return err
	}
	list, err := ask(ctx, c.app, api.NodeMatch, api.NodeMatchRequest{Targets: targets})
	if err != nil {
		return err
	}
	return printMatches(c, list.Items)
}

// askAction asks an action that only reads.
func askAction(ctx context.Context, c *call, in *actionRunInput, module, name string, input api.ActionInput) error {
	targets, err := readTargets(c.app, in.o.targetFlags)
	if err != nil {
		return err
	}
	client, err := c.client()
	if err != nil {
		return err
	}
	answers := newAnswers(c, in.display)
	answers.layout = in.layout
	if in.answers != "" {
		if answers.only, err = filter.ParseAnswers(in.answers); err != nil {
			return usageError{err}
		}
	}
	request := api.ActionAskRequest{
		Module: module, Action: name, ActionInput: input, Targets: targets, Timeout: in.o.timeout.Milliseconds(), Batch: in.batch,
		BatchSleep: in.sleep.Milliseconds(), SkipDenied: in.o.skipDenied,
	}
	err = api.ActionAsk.Each(ctx, client, request, func(e api.ActionEvent) error {
		if e.Asked != nil {
			return answers.begin(*e.Asked)
		}
		if e.Answer != nil {
			return answers.add(*e.Answer)
		}
		return nil
	})
	if err != nil {
		answers.interrupted()
		return err
	}
	return answers.end()
}

// answerOf is an answer as the form of actions has it.
func answerOf(a api.ActionAnswer) (action.Answer, error) {
	answer := action.Answer{Node: fleet.Certname(a.Node), Message: a.Message, Data: []byte(a.Data), Millis: a.Milliseconds}
	return answer, answer.Code.UnmarshalText([]byte(a.State))
}

// completeAction completes the module, then its action, then the fields of its input.
func completeAction(a *app) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		ctx := completing(cmd)
		if len(args) == 0 {
			list, err := ask(ctx, a, api.ActionList, api.ActionListRequest{})
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, m := range list.Items {
				names = append(names, m.Module)
			}
			return beginning(names, begun), cobra.ShellCompDirectiveNoFileComp
		}
		m, err := ask(ctx, a, api.ActionShow, api.ActionShowRequest{Module: args[0]})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) == 1 {
			var names []string
			for _, action := range m.Actions {
				names = append(names, action.Name)
			}
			return beginning(names, begun), cobra.ShellCompDirectiveNoFileComp
		}
		return inputsOf(m, args[1], args[2:], begun), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// inputsOf are the fields that an action takes and that were not given yet; of one that is begun, its values.
func inputsOf(m api.ActionModule, name string, given []string, begun string) (offered []string) {
	i := slices.IndexFunc(m.Actions, func(a api.Action) bool { return a.Name == name })
	if i < 0 {
		return nil
	}
	for _, f := range m.Actions[i].Inputs {
		if slices.ContainsFunc(given, func(arg string) bool { return strings.HasPrefix(arg, f.Name+"=") }) {
			continue
		}
		values := f.Values
		if f.Type == "boolean" {
			values = []string{"true", "false"}
		}
		if !strings.HasPrefix(begun, f.Name+"=") || len(values) == 0 {
			if strings.HasPrefix(f.Name, begun) {
				offered = append(offered, f.Name+"=\t"+f.Title)
			}
			continue
		}
		for _, value := range values {
			if word := f.Name + "=" + value; strings.HasPrefix(word, begun) {
				offered = append(offered, word)
			}
		}
	}
	return offered
}
