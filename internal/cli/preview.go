package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func (a *app) previewCommand() *cobra.Command {
	return a.withAccess(noun("preview", "See what code would change on every node before it is theirs",
		a.previewCreate(), a.previewShow(), a.previewWatch(), a.previewDiff(), a.previewNodes(), a.previewList(), a.previewAck(), a.previewComment(), a.previewCancel(), a.previewNoise()))
}

// previewExits is what the help of the commands that print a preview says of exit codes.
const previewExits = `Exit codes: 0 done; 3 with --exit-code, if something changes; 4 if it does not compile for some of the nodes.`

func (a *app) previewCreate() *cobra.Command {
	var targets targetFlags
	var options code.BuildOptions
	var printing previewPrinting
	var request api.PreviewCreateRequest
	var ref string
	var noWait bool
	cmd := &cobra.Command{
		Use: "create ENVIRONMENT", Short: "Compile code for nodes beside what they have, and print what it would change", Args: exactly(1),
		Long: `Compile code for nodes beside what they have, and print what it would change, grouped: each change once, with how many nodes
have it. Nothing is deployed or released. Only nodes that read something that differs cost a compilation.

The code is a directory or a git ref (--ref), a version that was deployed (--version), or else the environment's current
version. The nodes are those of the environment, or those that are named by flags. Ctrl-C leaves the preview working.

` + previewExits,
		Example: `  tutti preview create production --ref ./control-repo
  tutti preview create production --ref https://git.example.test/control.git@feature_tls --where 'facts.role = "web"'
  tutti preview create production --ref . --markdown --exit-code > comment.md`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			request.Environment = args[0]
			if _, err := fleet.ParseEnvironment(args[0]); err != nil {
				return err // before anything is read and uploaded
			}
			if err := printing.check(a); err != nil {
				return err
			}
			if !targets.none() {
				if request.Targets, err = readTargets(a, targets); err != nil {
					return err
				}
			}
			client, err := a.client()
			if err != nil {
				return err
			}
			if ref != "" {
				from, bundle, err := storeCode(a, cmd.Context(), client, ref, options)
				if err != nil {
					return err
				}
				defer from.close()
				if request.Manifest, err = bundle.Manifest.Encode(); err != nil {
					return err
				}
				request.Commit, request.Origin = from.commit, from.origin
			}
			p, err := api.PreviewCreate.Call(cmd.Context(), client, request)
			if err != nil {
				return err
			}
			a.hint("Preview %s: version %s for %s (%s)", p.ID, short(p.Version), count(p.Nodes, "node"), p.Targets)
			if p.Check != nil {
				for _, f := range p.Check.Findings {
					a.hint("%s", print.OneLine(findingLine(f)))
				}
			}
			if noWait {
				a.hint("See it with: tutti preview show %s", p.ID)
				return printPreviewID(a, p)
			}
			if err := awaitPreview(a, cmd.Context(), client, p.ID); err != nil {
				return err
			}
			return printPreview(a, cmd.Context(), client, p.ID, printing)
		},
	}
	cmd.Flags().StringVar(&ref, "ref", "", "the code: a `DIR` or a git URL[@REF]; it is not deployed")
	cmd.Flags().StringVar(&request.Version, "version", "", "instead, a version that was deployed to the environment, or its first digits")
	cmd.Flags().StringVar(&request.Description, "description", "", "what it is about, for people")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "print the preview's number and do not wait for it")
	cmd.MarkFlagsMutuallyExclusive("ref", "version")
	addTargetFlags(a, cmd, &targets)
	baseModuleFlag(cmd, &options)
	printing.flags(cmd)
	return cmd
}

// none says whether no node is named.
func (t targetFlags) none() bool {
	return len(t.names)+len(t.nodes)+len(t.exclude) == 0 && t.group == "" && t.where == "" && t.query == "" && !t.all
}

func printPreviewID(a *app, p api.Preview) error {
	if a.printer().AsJSON() {
		return a.printer().JSON(p)
	}
	_, err := fmt.Fprintln(a.system.Out, p.ID)
	return err
}

func (a *app) previewShow() *cobra.Command {
	var printing previewPrinting
	cmd := &cobra.Command{
		Use: "show PREVIEW", Short: "Print what a preview would change, the largest change first", Args: exactly(1),
		Long: `Print what a preview would change: errors first, then one line for each change with the number of nodes that have it. The numbers
at the beginning name changes for preview ack, comment and nodes. While a preview compiles, what is known so far is shown.

` + previewExits,
		Example: "  tutti preview show 3\n  tutti preview show 3 --details\n  tutti preview show 3 --junit > preview.xml",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err == nil {
				err = printing.check(a)
			}
			if err != nil {
				return err
			}
			return printPreview(a, cmd.Context(), client, args[0], printing)
		},
	}
	printing.flags(cmd)
	return cmd
}

func (a *app) previewDiff() *cobra.Command {
	var order, noise bool
	cmd := &cobra.Command{
		Use: "diff PREVIEW NODE", Short: "Print all that a preview changes for one node", Args: exactly(2),
		Example: "  tutti preview diff 3 web-1.example.test",
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := ask(cmd.Context(), a, api.PreviewNodeOf, api.PreviewNodeRequest{Preview: args[0], Name: args[1]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(answer)
			}
			if noise {
				return diff.WriteText(a.system.Out, answer, order)
			}
			hidden := withoutNoise(&answer)
			err = diff.WriteText(a.system.Out, answer, order)
			if err == nil && hidden > 0 {
				_, err = fmt.Fprintf(a.system.Out, "… and %s by noise rules (--noise)\n", count(hidden, "change"))
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&order, "order", false, "show what differs in order only, too")
	cmd.Flags().BoolVar(&noise, "noise", false, "show what noise rules hide, too")
	return cmd
}

func (a *app) previewNodes() *cobra.Command {
	var state, change string
	cmd := &cobra.Command{
		Use: "nodes PREVIEW", Short: "List the nodes of a preview, and how each stands", Args: exactly(1),
		Long: `List the nodes of a preview: same, reordered (the same but for order), changed, failed (the code does not compile for it), first (it has
no catalog to compare with), unable (nothing is known to compile with) or waiting.`,
		Example: "  tutti preview nodes 3 --state failed\n  tutti preview nodes 3 --change 2",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.client()
			if err != nil {
				return err
			}
			if change != "" {
				keys, err := changeKeys(cmd.Context(), client, args[0], []string{change})
				if err != nil {
					return err
				}
				change = strings.Join(keys, ",")
			}
			return list(cmd.Context(), a, api.PreviewNodes, func(after string) api.PreviewNodesRequest {
				return api.PreviewNodesRequest{Preview: args[0], State: state, Change: change, After: after, Limit: 1000}
			}, print.Table[api.PreviewNode]{
				Columns: []string{"node", "state", "catalog", "had", "note"},
				Row: func(n api.PreviewNode) []string {
					return []string{n.Name, n.State, short(n.Catalog), short(n.Base), shareNote(n)}
				},
				Name:  func(n api.PreviewNode) string { return n.Name },
				Empty: "No such nodes.",
			})
		},
	}
	cmd.Flags().StringVar(&state, "state", "", "those that stand like this")
	cmd.Flags().StringVar(&change, "change", "", "those with this change: its number in preview show, or its key")
	cmd.MarkFlagsMutuallyExclusive("state", "change")
	return cmd
}

func shareNote(n api.PreviewNode) string {
	switch {
	case n.Message != "":
		return strings.TrimSpace(print.OneLine(n.Message) + " " + fleet.Place(n.File, n.Line))
	case n.Volatile != "":
		return "may change again: " + n.Volatile
	case n.Quiet:
		return "in noise only"
	case n.Reused:
		return "not compiled"
	default:
		return ""
	}
}

func (a *app) previewList() *cobra.Command {
	return newestList(a, newest[api.PreviewListRequest, api.Preview]{
		op: api.PreviewList, short: "List previews, newest first", example: "  tutti preview list --environment production", states: "compiling, ready or cancelled",
		request: func(environment, state, after string) api.PreviewListRequest {
			return api.PreviewListRequest{Environment: environment, State: state, After: after, Limit: 1000}
		},
		table: print.Table[api.Preview]{
			Columns: []string{"preview", "environment", "version", "state", "nodes", "changed", "noise", "errors", "by", "made", "description"},
			Row: func(p api.Preview) []string {
				return []string{
					p.ID, p.Environment, short(p.Version), p.State, fmt.Sprint(p.Nodes), fmt.Sprint(p.Counts["changed"] - p.Quiet), fmt.Sprint(p.Quiet), fmt.Sprint(p.Counts["failed"]),
					p.Author, print.Ago(p.CreatedAt, time.Now()), p.Description,
				}
			},
			Name:  func(p api.Preview) string { return p.ID },
			Empty: "No previews. `tutti preview create production --ref DIR` makes one.",
		},
	})
}

func (a *app) previewAck() *cobra.Command {
	var request api.PreviewSayRequest
	var withdraw bool
	cmd := &cobra.Command{
		Use: "ack PREVIEW CHANGE...|--all", Short: "Say that changes of a preview were seen and are wanted", Args: atLeastOne("which preview?"),
		Long:    "Say that changes of a preview were seen and are wanted; --withdraw takes that back. A change is named by its number in preview show, several by 2-5, or by its key.",
		Example: "  tutti preview ack 3 1 4-6 --text 'as in ticket 81'\n  tutti preview ack 3 --all\n  tutti preview ack 3 2 --withdraw",
		RunE: func(cmd *cobra.Command, args []string) error {
			if request.All == (len(args) > 1) {
				return usageError{fault.New(fault.Invalid, "which changes? give their numbers, or --all")}
			}
			request.Kind = map[bool]string{false: "acknowledged", true: "withdrawn"}[withdraw]
			return sayOnPreview(a, cmd, args, &request)
		},
	}
	cmd.Flags().BoolVar(&request.All, "all", false, "every change")
	cmd.Flags().BoolVar(&withdraw, "withdraw", false, "take it back")
	cmd.Flags().StringVar(&request.Text, "text", "", "why")
	return cmd
}

func (a *app) previewComment() *cobra.Command {
	request := api.PreviewSayRequest{Kind: "comment"}
	cmd := &cobra.Command{
		Use: "comment PREVIEW [CHANGE...] --text TEXT", Short: "Comment on a preview, or on changes of it", Args: atLeastOne("which preview?"),
		Example: "  tutti preview comment 3 --text 'not before Monday'\n  tutti preview comment 3 2 --text 'why on db-1?'",
		RunE: func(cmd *cobra.Command, args []string) error {
			return sayOnPreview(a, cmd, args, &request)
		},
	}
	cmd.Flags().StringVar(&request.Text, "text", "", "the comment")
	_ = cmd.MarkFlagRequired("text")
	return cmd
}

// sayOnPreview sends what somebody says of the changes that args name behind the preview.
func sayOnPreview(a *app, cmd *cobra.Command, args []string, request *api.PreviewSayRequest) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	request.Preview = args[0]
	if request.Changes, err = changeKeys(cmd.Context(), client, args[0], args[1:]); err != nil {
		return err
	}
	said, err := api.PreviewSay.Call(cmd.Context(), client, *request)
	if err != nil {
		return err
	}
	if a.printer().AsJSON() {
		return a.printer().JSON(said)
	}
	about := slices.DeleteFunc(said.Items, func(r api.PreviewRemark) bool { return r.Change == "" })
	if len(about) == 0 {
		a.hint("Said of preview %s", args[0])
		return nil
	}
	a.hint("%s: %s of preview %s", request.Kind, count(len(about), "change"), args[0])
	return nil
}

func (a *app) previewCancel() *cobra.Command {
	return &cobra.Command{
		Use: "cancel PREVIEW", Short: "Stop working on a preview", Args: exactly(1), Example: "  tutti preview cancel 3",
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := ask(cmd.Context(), a, api.PreviewCancel, api.PreviewRequest{Preview: args[0]})
			if err != nil {
				return err
			}
			if a.printer().AsJSON() {
				return a.printer().JSON(p)
			}
			a.hint("Preview %s is %s", p.ID, p.State)
			return nil
		},
	}
}
