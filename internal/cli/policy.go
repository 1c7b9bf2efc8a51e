package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

var policyCommand = asking{noun{
	use: "policy", short: "Say which changes are forbidden, need an approval, or deserve a warning, and when nothing is released",
	verbs: []declared{policyList, policyShow, policySet, policyRemove, policyHistory, policyTest, policyFreeze},
}}

func policyTable(empty string) print.Table[api.Policy] {
	return print.Table[api.Policy]{
		Columns: []string{"policy", "version", "effect", "when", "environments", "by", "set"},
		Spare:   []string{"set", "by", "version", "environments"},
		Row: func(p api.Policy) []any {
			effect := effectText(p.Effect, p.Role, p.AuthorMay)
			if p.Removed {
				effect = "(removed)"
			}
			return []any{p.Name, p.Version, effect, p.When, listText(p.Environments), p.Author, p.At}
		},
		Name:  func(p api.Policy) string { return p.Name },
		Empty: empty,
	}
}

// effectText is what a policy does: approve by lead.
func effectText(effect, role string, authorMay bool) string {
	if role != "" {
		effect += " by " + role
	}
	if authorMay {
		effect += " (the author may)"
	}
	return effect
}

var policyList = verb[api.Nothing]{
	use: "list", short: "List the policies", example: "  tutti policy list",
	prints: aList,
	run: lists(api.PolicyList, func(*api.Nothing) print.Table[api.Policy] {
		return policyTable("No policies: every change may be released by who has the permission.")
	}),
}

var policyShow = verb[api.PolicyNameRequest]{
	use: "show POLICY", short: "Show a policy", example: "  tutti policy show no-user-removal",
	into: func(in *api.PolicyNameRequest, args []string) { in.Policy = args[0] },
	run: shows(api.PolicyShow, print.Rows(func(p api.Policy) [][]string {
		return [][]string{
			{"Policy", p.Name},
			{"Version", fmt.Sprintf("%d, set %s by %s", p.Version, print.Ago(p.At, time.Now()), p.Author)},
			{"Environments", listText(p.Environments)},
			{"Effect", effectText(p.Effect, p.Role, p.AuthorMay)},
			{"When", p.When},
			{"Zone", first(p.Zone, "UTC")},
			{"Message", p.Message},
		}
	})),
}

// definitionFlags are what a policy says.
func definitionFlags(cmd *cobra.Command, d *api.PolicyDefinition) {
	flags := cmd.Flags()
	flags.StringVar(&d.When, "when", "", `which changes: an expression such as 'change.kind == "removed" and change.nodes > 10'`)
	flags.StringVar(&d.Effect, "effect", "deny", "what then: deny, approve or warn")
	flags.StringVar(&d.Role, "role", "", "of --effect approve: who approves")
	flags.BoolVar(&d.AuthorMay, "author-may", false, "of --effect approve: the author's own approval is good enough")
	flags.StringVar(&d.Message, "message", "", "what people should know")
	flags.StringSliceVarP(&d.Environments, "environment", "e", nil, "only in these environments; may be repeated")
	flags.StringVar(&d.Zone, "zone", "", "the time zone of time in the expression, as Europe/Berlin; default UTC")
}

// expressionHelp is what the help says of expressions.
const expressionHelp = `An expression is asked about each change that touches a node of the release, also about hidden ones. It sees

  change.kind        added, removed, changed, node, edge or error
  change.type        File, User, ...
  change.title       its name; a node's own name in it is <node>, its host name <host>
  change.parameters  names of what changes
  change.nodes       how many nodes of the release have it
  change.acknowledged, change.exported, change.order_only, change.file, change.message
  preview.nodes, preview.changed, preview.same, preview.failed, preview.unseen
  release.nodes, release.waves (a list of numbers)
  environment
  time.weekday (mon), time.hour, time.minute, time.date (2026-11-22)

and compares with == != < <= > >= in matches contains startsWith endsWith, and, or, not, and the functions len, lower, upper, trim,
any, all, none, one, count. One that looks at no change is asked once.`

var policySet = verb[api.PolicyDefinition]{
	use: "set POLICY --when EXPRESSION --message TEXT", short: "Make a policy, or its next version", args: exactly(1),
	long: "Make a policy, or its next version. It holds from now on, also for releases that wait or run.\n\n" + expressionHelp,
	example: `  tutti policy set no-user-removal --when 'change.kind == "removed" and change.type == "User" and change.nodes > 10' \
    --effect approve --role operator --message 'many people lose their account'
  tutti policy set ssh-stays --when 'change.type == "Service" and change.title == "sshd"' --message 'sshd is not touched' --environment production`,
	flags: func(f flagSet, in *api.PolicyDefinition) {
		definitionFlags(f.cmd, in)
		f.requires("when", "message")
	},
	run: func(ctx context.Context, c *call, in *api.PolicyDefinition) error {
		return showAnswer(ctx, c.app, api.PolicySet, api.PolicySetRequest{Policy: c.args[0], Definition: *in}, func(to print.Printer, p api.Policy) error {
			to.Hint("Policy %s, version %d, holds. Try it: tutti policy test %s --preview N", p.Name, p.Version, p.Name)
			return nil
		})
	},
}

var policyRemove = verb[api.PolicyNameRequest]{
	use: "delete POLICY", short: "Delete a policy; its versions stay", example: "  tutti policy delete no-user-removal",
	destroys: lossOfPolicy,
	into:     func(in *api.PolicyNameRequest, args []string) { in.Policy = args[0] },
	run: shows(api.PolicyRemove, print.Advice(func(p api.Policy) string {
		return fmt.Sprintf("Policy %s does not hold any more", p.Name)
	})),
}

var policyHistory = verb[api.PolicyNameRequest]{
	use: "history POLICY", short: "List every version of a policy, newest first", example: "  tutti policy history no-user-removal",
	prints: aList,
	into:   func(in *api.PolicyNameRequest, args []string) { in.Policy = args[0] },
	run:    lists(api.PolicyHistory, func(*api.PolicyNameRequest) print.Table[api.Policy] { return policyTable("") }),
}

func atMostOnePolicy(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError{fault.New(fault.Invalid, "name one policy, or none for all; usage: %s", cmd.UseLine())}
	}
	return nil
}

type policyTestInput struct {
	request api.PolicyTestRequest
	d       api.PolicyDefinition
	at      string
}

var policyTest = verb[policyTestInput]{
	use: "test [POLICY] --preview PREVIEW", short: "Say what policies and freezes say of a preview, as if all of it was released",
	args: atMostOnePolicy,
	long: `Say what policies and freezes say of a preview, as if all of it was released: all of them, the one that is named, or with --when one that is not
set. Nothing is stored. Exit codes: 0 nothing stands in the way (there may be warnings); 5 something is denied, needs an approval, or is frozen.

` + expressionHelp,
	example: `  tutti policy test --preview 3
  tutti policy test no-user-removal --preview 3
  tutti policy test --preview 3 --when 'change.type == "Package" and change.nodes > 100'
  tutti policy test --preview 3 --at 2026-12-24T18:00:00Z`,
	flags: func(f flagSet, in *policyTestInput) {
		f.StringVar(&in.request.Preview, "preview", "", "the preview")
		f.StringVar(&in.at, "at", "", "as if it was then, as 2026-12-24T18:00:00Z")
		definitionFlags(f.cmd, &in.d)
		f.requires("preview")
	},
	run: func(ctx context.Context, c *call, in *policyTestInput) error {
		if len(c.args) == 1 {
			in.request.Policy = c.args[0]
		}
		if in.d.When != "" {
			in.d.Message = first(in.d.Message, "it would be found")
			in.request.Definition = &in.d
		}
		if in.at != "" {
			when, err := time.Parse(time.RFC3339, in.at)
			if err != nil {
				return usageError{fault.New(fault.Invalid, "--at %q is no time as 2026-12-24T18:00:00Z", in.at)}
			}
			in.request.At = &when
		}
		verdict, err := ask(ctx, c.app, api.PolicyTest, in.request)
		if err != nil {
			return err
		}
		if err := print.One(c.printer(), verdict, print.Words(verdictText)); err != nil {
			return err
		}
		return verdictError(verdict)
	},
}

func verdictText(v api.PolicyVerdict) string {
	var text strings.Builder
	if len(v.Findings) == 0 && v.Frozen == nil {
		return "No policy has anything to say.\n"
	}
	for _, f := range v.Findings {
		about := fault.Count(f.Nodes, "node")
		if f.Found > 0 {
			about = fault.Count(f.Found, "change") + " on " + about
		}
		fmt.Fprintf(&text, "%s  %s  %s: %s\n", effectText(f.Effect, f.Role, f.AuthorMay), f.Policy, about, print.OneLine(f.Message))
		if f.Broken != "" {
			fmt.Fprintf(&text, "      it could not be judged, and so counts as found: %s\n", print.OneLine(f.Broken))
		}
	}
	if v.Frozen != nil {
		fmt.Fprintf(&text, "frozen  %s  until %s: %s\n", strings.Join(v.Frozen.Freezes, ","),
			v.Frozen.Until.UTC().Format(time.RFC3339), print.OneLine(v.Frozen.Why))
	}
	return text.String()
}

// verdictError is what a verdict that stands in the way ends with.
func verdictError(v api.PolicyVerdict) error {
	stands := v.Frozen != nil
	for _, f := range v.Findings {
		stands = stands || f.Effect != "warn"
	}
	if !stands {
		return nil
	}
	return jobOutcome{code: exitRefused, text: "a policy or a freeze stands in the way"}
}
