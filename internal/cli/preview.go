package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

var previewCommand = asking{noun{
	use: "preview", short: "See what code would change on every node before it is theirs",
	verbs: []declared{
		previewCreate, previewShow, previewWatch, previewDiff, previewNodes, previewWarnings, previewList, previewAck, previewComment, previewCancel, previewNoise,
	},
}}

// previewExits is what the help of the commands that print a preview says of exit codes.
const previewExits = `Exit codes: 0 done; 3 with --exit-code, if something changes; 4 if it does not compile for some of the nodes.`

type previewCreateInput struct {
	targets  targetFlags
	options  code.BuildOptions
	printing previewPrinting
	request  api.PreviewCreateRequest
	ref      string
	noWait   bool
}

var previewCreate = verb[previewCreateInput]{
	use: "create ENVIRONMENT", short: "Compile code for nodes beside what they have, and print what it would change",
	args: environmentWithRef,
	long: `Compile code for nodes beside what they have, and print what it would change, grouped: each change once, with how many nodes
have it. Nothing is deployed or released. Only nodes that read something that differs cost a compilation.

The code is a directory or a git ref (--ref), a version that was deployed (--version), or else the environment's current
version. With --engine another Puppet installation compiles it (tutti engine list): so a step to another Puppet is seen before it is
made. The nodes are those of the environment, or those that are named by flags. Ctrl-C leaves the preview working.

` + previewExits,
	example: `  tutti preview create production --ref ./control-repo
  tutti preview create production --ref https://git.example.test/control.git@feature_tls --where 'facts.role = "web"'
  tutti preview create production --engine puppet8
  tutti preview create production --ref . --markdown --exit-code > comment.md`,
	flags: func(f flagSet, in *previewCreateInput) {
		f.StringVar(&in.ref, "ref", "", "the code: a `DIR` or a git URL[@REF]; it is not deployed")
		f.StringVar(&in.request.Version, "version", "", "instead, a version that was deployed to the environment, or its first digits")
		engineFlag(f, &in.request.Engine)
		f.StringVar(&in.request.Description, "description", "", "what it is about, for people")
		f.BoolVar(&in.noWait, "no-wait", false, "print the preview's number and do not wait for it")
		f.cmd.MarkFlagsMutuallyExclusive("ref", "version")
		addTargetFlags(f, &in.targets)
		codeFlags(f, &in.options)
		in.printing.flags(f)
	},
	run: func(ctx context.Context, c *call, in *previewCreateInput) (err error) {
		in.request.Environment = c.args[0]
		if _, err := fleet.ParseEnvironment(c.args[0]); err != nil {
			return err // before anything is read and uploaded
		}
		if err := in.printing.check(c.app); err != nil {
			return err
		}
		if !in.targets.none() {
			if in.request.Targets, err = readTargets(c.app, in.targets); err != nil {
				return err
			}
		}
		client, err := c.client()
		if err != nil {
			return err
		}
		if in.ref != "" {
			from, bundle, err := storeCode(ctx, c.app, client, in.ref, in.options)
			if err != nil {
				return err
			}
			defer from.close()
			if in.request.Manifest, err = bundle.Manifest.Encode(); err != nil {
				return err
			}
			in.request.Commit, in.request.Origin = from.commit, from.origin
		}
		p, err := api.PreviewCreate.Call(ctx, client, in.request)
		if fault.Is(err, fault.NotFound) && in.ref == "" && isDir(c.args[0]) {
			err = hinted(err, fmt.Sprintf("to preview the directory: `tutti preview create production --ref %s`", c.args[0]))
		}
		if err != nil {
			return err
		}
		c.hint("Preview %s: version %s for %s (%s)", p.ID, short(p.Version), fault.Count(p.Nodes, "node"), p.Targets)
		if p.Check != nil {
			for _, f := range p.Check.Findings {
				c.hint("%s", print.OneLine(findingLine(f)))
			}
		}
		if in.noWait {
			c.hint("See it with: tutti preview show %s", p.ID)
			return print.One(c.printer(), p, printPreviewID)
		}
		if err := awaitPreview(ctx, c.app, client, p.ID); err != nil {
			return err
		}
		return printPreview(ctx, c.app, client, p.ID, in.printing)
	},
}

// none says whether no node is named.
func (t targetFlags) none() bool {
	return len(t.names)+len(t.nodes)+len(t.exclude) == 0 && t.group == "" && t.where == "" && t.query == "" && !t.all
}

func printPreviewID(to print.Printer, p api.Preview) error {
	return to.Text(p.ID + "\n")
}

var previewShow = verb[previewPrinting]{
	use: "show PREVIEW", short: "Print what a preview would change, the largest change first",
	long: `Print what a preview would change: errors first, then one line for each change with the number of nodes that have it. The numbers
at the beginning name changes for preview ack, comment and nodes. While a preview compiles, what is known so far is shown.

` + previewExits,
	example: "  tutti preview show 3\n  tutti preview show 3 --details\n  tutti preview show 3 --junit > preview.xml",
	flags:   func(f flagSet, in *previewPrinting) { in.flags(f) },
	run: func(ctx context.Context, c *call, in *previewPrinting) error {
		client, err := c.client()
		if err == nil {
			err = in.check(c.app)
		}
		if err != nil {
			return err
		}
		return printPreview(ctx, c.app, client, c.args[0], *in)
	},
}

type previewDiffInput struct{ order, noise bool }

var previewDiff = verb[previewDiffInput]{
	use: "diff PREVIEW NODE", short: "Print all that a preview changes for one node", example: "  tutti preview diff 3 web-1.example.test",
	flags: func(f flagSet, in *previewDiffInput) {
		f.BoolVar(&in.order, "order", false, "show what differs in order only, too")
		f.BoolVar(&in.noise, "noise", false, "show what noise rules hide, too")
	},
	run: func(ctx context.Context, c *call, in *previewDiffInput) error {
		return showAnswer(ctx, c.app, api.PreviewNodeOf, api.PreviewNodeRequest{Preview: c.args[0], Name: c.args[1]},
			func(to print.Printer, answer api.CatalogDifference) error {
				if in.noise {
					return diff.WriteText(to.Out, answer, in.order)
				}
				hidden := withoutNoise(&answer)
				err := diff.WriteText(to.Out, answer, in.order)
				if err == nil && hidden > 0 {
					_, err = fmt.Fprintf(to.Out, "… and %s by noise rules (--noise)\n", fault.Count(hidden, "change"))
				}
				return err
			})
	},
}

var previewNodes = verb[api.PreviewNodesRequest]{
	use: "nodes PREVIEW", short: "List the nodes of a preview, and how each stands",
	prints: aList,
	long: `List the nodes of a preview: same, reordered (the same but for order), changed, failed (the code does not compile for it), first (it has
no catalog to compare with), unable (nothing is known to compile with) or waiting.`,
	example: "  tutti preview nodes 3 --state failed\n  tutti preview nodes 3 --change 2",
	flags: func(f flagSet, in *api.PreviewNodesRequest) {
		f.StringVar(&in.State, "state", "", "those that stand like this")
		f.StringVar(&in.Change, "change", "", "those with this change: its number in preview show, or its key")
		f.cmd.MarkFlagsMutuallyExclusive("state", "change")
	},
	run: func(ctx context.Context, c *call, in *api.PreviewNodesRequest) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		in.Preview = c.args[0]
		if in.Change != "" {
			keys, err := changeKeys(ctx, client, c.args[0], []string{in.Change})
			if err != nil {
				return err
			}
			in.Change = strings.Join(keys, ",")
		}
		return pages(api.PreviewNodes, nextPreviewNodes, previewNodeTable)(ctx, c, in)
	},
}

func nextPreviewNodes(in *api.PreviewNodesRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}

func previewNodeTable(*api.PreviewNodesRequest) print.Table[api.PreviewNode] {
	return print.Table[api.PreviewNode]{
		Columns: []string{"node", "state", "catalog", "had", "note"},
		Spare:   []string{"had", "catalog"},
		Row: func(n api.PreviewNode) []any {
			return []any{n.Name, print.State(n.State), print.ID(n.Catalog), print.ID(n.Base), shareNote(n)}
		},
		Name:  func(n api.PreviewNode) string { return n.Name },
		Empty: "No such nodes.",
	}
}

func shareNote(n api.PreviewNode) string {
	switch {
	case n.Message != "":
		return strings.TrimSpace(print.OneLine(n.Message) + " " + fleet.Place(n.File, n.Line))
	case n.Volatile != "":
		return "may change again: " + n.Volatile
	case n.Quiet:
		return "in noise only"
	case n.EngineOnly:
		return "in noise of the engine only"
	case n.Reused:
		return "not compiled"
	default:
		return ""
	}
}

var previewWarnings = verb[api.PreviewRequest]{
	use: "warnings PREVIEW", short: "List what the compiler warns of in a preview's catalogs, what is new first",
	prints: aList,
	long: `List what the compiler warns of in a preview's catalogs, by file and line: first what it warns of in no catalog that the nodes have, which
is marked new. After a step to another Puppet (tutti preview create --engine) these are its deprecations.`,
	example: "  tutti preview warnings 3\n  tutti preview warnings 3 -o json",
	into:    func(in *api.PreviewRequest, args []string) { in.Preview = args[0] },
	run: func(ctx context.Context, c *call, in *api.PreviewRequest) error {
		answer, err := ask(ctx, c.app, api.PreviewWarnings, *in)
		if err != nil {
			return err
		}
		if c.printer().ForPrograms() {
			return c.printer().Thing(answer)
		}
		if answer.Unknown > 0 {
			c.hint("What was written for the catalogs of %s is not known any more", fault.Count(answer.Unknown, "node"))
		}
		return print.List(c.printer(), answer.Items, previewWarningTable())
	},
}

func previewWarningTable() print.Table[api.PreviewWarning] {
	return print.Table[api.PreviewWarning]{
		Columns: []string{"nodes", "new", "where", "message"},
		Row: func(w api.PreviewWarning) []any {
			mark := ""
			if w.New {
				mark = "new"
			}
			return []any{w.Nodes, mark, fleet.Place(w.File, w.Line), print.OneLine(w.Message)}
		},
		Name:  func(w api.PreviewWarning) string { return fleet.Place(w.File, w.Line) },
		Empty: "The compiler warns of nothing.",
	}
}

var previewList = verb[api.PreviewListRequest]{
	use: "list", short: "List previews, newest first", example: "  tutti preview list --environment production",
	prints: aList,
	flags: func(f flagSet, in *api.PreviewListRequest) {
		f.StringVarP(&in.Environment, "environment", "e", "", "those of this environment")
		f.StringVar(&in.State, "state", "", "compiling, ready or cancelled")
	},
	run: pages(api.PreviewList, nextPreviews, func(*api.PreviewListRequest) print.Table[api.Preview] {
		return print.Table[api.Preview]{
			Columns: []string{"preview", "environment", "version", "state", "nodes", "changed", "noise", "errors", "by", "made", "description"},
			Spare:   []string{"description", "by", "made", "noise", "version"},
			Row: func(p api.Preview) []any {
				return []any{
					p.ID, p.Environment, print.ID(p.Version), print.State(p.State), p.Nodes, p.Counts["changed"] - p.Quiet, p.Quiet, p.Counts["failed"],
					p.Author, p.CreatedAt, p.Description,
				}
			},
			Name:  func(p api.Preview) string { return p.ID },
			Empty: "No previews. `tutti preview create production --ref DIR` makes one.",
		}
	}),
}

func nextPreviews(in *api.PreviewListRequest, after string, limit int) {
	in.After, in.Limit = after, limit
}

type previewAckInput struct {
	request  api.PreviewSayRequest
	withdraw bool
}

var previewAck = verb[previewAckInput]{
	use: "ack PREVIEW CHANGE...|--all", short: "Say that changes of a preview were seen and are wanted", args: atLeastOne("which preview?"),
	long:    "Say that changes of a preview were seen and are wanted; --withdraw takes that back. A change is named by its number in preview show, several by 2-5, or by its key.",
	example: "  tutti preview ack 3 1 4-6 --text 'as in ticket 81'\n  tutti preview ack 3 --all\n  tutti preview ack 3 2 --withdraw",
	flags: func(f flagSet, in *previewAckInput) {
		f.BoolVar(&in.request.All, "all", false, "every change")
		f.BoolVar(&in.withdraw, "withdraw", false, "take it back")
		f.StringVar(&in.request.Text, "text", "", "why")
	},
	run: func(ctx context.Context, c *call, in *previewAckInput) error {
		if in.request.All == (len(c.args) > 1) {
			return usageError{fault.New(fault.Invalid, "which changes? give their numbers, or --all")}
		}
		in.request.Kind = map[bool]string{false: "acknowledged", true: "withdrawn"}[in.withdraw]
		return sayOnPreview(ctx, c.app, c.args, &in.request)
	},
}

var previewComment = verb[api.PreviewSayRequest]{
	use: "comment PREVIEW [CHANGE...] --text TEXT", short: "Comment on a preview, or on changes of it", args: atLeastOne("which preview?"),
	example: "  tutti preview comment 3 --text 'not before Monday'\n  tutti preview comment 3 2 --text 'why on db-1?'",
	flags: func(f flagSet, in *api.PreviewSayRequest) {
		f.StringVar(&in.Text, "text", "", "the comment")
		f.requires("text")
	},
	run: func(ctx context.Context, c *call, in *api.PreviewSayRequest) error {
		in.Kind = "comment"
		return sayOnPreview(ctx, c.app, c.args, in)
	},
}

// sayOnPreview sends what somebody says of the changes that args name behind the preview.
func sayOnPreview(ctx context.Context, a *app, args []string, request *api.PreviewSayRequest) error {
	client, err := a.client()
	if err != nil {
		return err
	}
	request.Preview = args[0]
	if request.Changes, err = changeKeys(ctx, client, args[0], args[1:]); err != nil {
		return err
	}
	said, err := api.PreviewSay.Call(ctx, client, *request)
	if err != nil {
		return err
	}
	return print.One(a.printer(), said, print.Advice(func(said api.List[api.PreviewRemark]) string {
		about := slices.DeleteFunc(said.Items, func(r api.PreviewRemark) bool { return r.Change == "" })
		if len(about) == 0 {
			return "Said of preview " + args[0]
		}
		return fmt.Sprintf("%s: %s of preview %s", request.Kind, fault.Count(len(about), "change"), args[0])
	}))
}

var previewCancel = verb[api.PreviewRequest]{
	use: "cancel PREVIEW", short: "Stop working on a preview", example: "  tutti preview cancel 3",
	into: func(in *api.PreviewRequest, args []string) { in.Preview = args[0] },
	run: shows(api.PreviewCancel, print.Advice(func(p api.Preview) string {
		return fmt.Sprintf("Preview %s is %s", p.ID, p.State)
	})),
}
