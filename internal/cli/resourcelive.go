package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/catalog/variants"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pql"
)

// resourceLiveInput is a question to nodes.
type resourceLiveInput struct {
	targetFlags
	timeout    time.Duration
	batch      int
	skipDenied bool
	expensive  bool
	catalog    bool
	report     bool
	manifest   bool
	variant    int
	ignore     []string
}

var resourceLive = verb[resourceLiveInput]{
	use: "live TYPE [TITLE]", short: "Ask nodes how a resource is now, and say where it differs", args: oneOrTwo("TYPE", "TITLE"),
	prints: aList,
	long: `Ask Puppet's own types and providers on the nodes how a resource is at this moment, and compare as "tutti resource variants"
does for catalogs: what most nodes have comes first. Without TITLE, every resource of the type is listed with the number of its variants.

` + whichNodes + `

Exit codes: 0 all nodes answered; 1 no node is meant; 4 some could not say; 5 some refused, or cannot be asked; 6 some are offline or did not answer.`,
	example: `  tutti resource live service nginx --class role::web
  tutti resource live package openssl --all --with-catalog --with-report
  tutti resource live user --targets web-1,web-2
  tutti resource live file /etc/ssh/sshd_config --all --as-manifest`,
	flags: func(f flagSet, in *resourceLiveInput) {
		addTargetFlags(f, &in.targetFlags)
		f.duration(&in.timeout, "timeout", 0, "how long a node has to answer, such as 30s; 0: what the action says")
		f.IntVar(&in.batch, "batch", 0, "how many nodes are asked at a time; 0: all")
		f.BoolVar(&in.skipDenied, "skip-denied", false, "leave out nodes that you may not ask")
		f.BoolVar(&in.expensive, "expensive", false, "without TITLE: list them though that costs the nodes much")
		f.BoolVar(&in.catalog, "with-catalog", false, "say where the newest catalogs have other values: drift")
		f.BoolVar(&in.report, "with-report", false, "say what the nodes' last reports say of it")
		f.BoolVar(&in.manifest, "as-manifest", false, "print what most nodes have as Puppet code")
		f.IntVar(&in.variant, "variant", 1, "of --as-manifest: this variant; 1 is what most nodes have")
		f.StringSliceVar(&in.ignore, "ignore", []string{"ctime", "mtime"}, "do not compare these parameters")
	},
	run: func(ctx context.Context, c *call, in *resourceLiveInput) error {
		if err := in.check(c); err != nil {
			return err
		}
		targets, err := readTargets(c.app, in.targetFlags)
		if err != nil {
			return err
		}
		kind, title := spelled(c.args)
		l := &liveResources{callAnswers: newAnswers(c, "failed"), in: in, kind: kind, title: title, drift: drift{kind: kind}}
		return l.look(ctx, targets)
	},
}

func (in *resourceLiveInput) check(c *call) error {
	switch {
	case in.timeout < 0:
		return usageError{fault.New(fault.Invalid, "--timeout is a duration such as 30s, not %s", in.timeout)}
	case in.manifest && c.output != "table":
		return usageError{fault.New(fault.Invalid, "--as-manifest prints Puppet code: -o %s has no place for it; give one of them", c.output)}
	case in.manifest && in.catalog:
		return usageError{fault.New(fault.Invalid, "--as-manifest prints how a resource is, --with-catalog how it should be: give one of them")}
	case in.manifest && in.report:
		return usageError{fault.New(fault.Invalid, "--as-manifest prints how a resource is, --with-report what became of it: give one of them")}
	case in.variant < 1:
		return usageError{fault.New(fault.Invalid, "--variant is a number, 1 or more, not %d", in.variant)}
	case in.variant > 1 && (!in.manifest || len(c.args) < 2):
		return usageError{fault.New(fault.Invalid, "--variant chooses what --as-manifest prints of one resource: give both, and TITLE")}
	case in.expensive && len(c.args) > 1:
		return usageError{fault.New(fault.Invalid, "--expensive is for lists: without TITLE. To look at one resource costs little")}
	}
	return nil
}

// liveResources gathers what nodes say of their resources.
type liveResources struct {
	*callAnswers
	in          *resourceLiveInput
	kind, title string
	comparer    variants.Comparer
	drift       drift
	cut         int      // nodes that have more than they listed
	problems    []string // of providers, the first few
}

// look asks, and prints.
func (l *liveResources) look(ctx context.Context, targets api.JobTargets) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	request := api.ActionAskRequest{
		Module: "resource", Action: "find", Targets: targets, Timeout: l.in.timeout.Milliseconds(), Batch: l.in.batch, SkipDenied: l.in.skipDenied,
		ActionInput: api.ActionInput{Texts: map[string]string{"type": l.kind, "title": l.title}},
	}
	if l.title == "" {
		request.Action, request.Texts = "list", map[string]string{"type": l.kind, "expensive": fmt.Sprint(l.in.expensive)}
	}
	err = api.ActionAsk.Each(ctx, client, request, func(e api.ActionEvent) error {
		if e.Asked != nil {
			return l.begin(*e.Asked)
		}
		if e.Answer != nil {
			return l.take(*e.Answer)
		}
		return nil
	})
	l.interrupted()
	if err != nil {
		return err
	}
	if l.in.catalog {
		if err := l.drift.readCatalogs(ctx, client, l.title); err != nil {
			return err
		}
	}
	if l.in.report {
		if err := l.drift.readReports(ctx, client, l.title); err != nil {
			return err
		}
	}
	return l.finish()
}

// liveResource is one resource as a node tells it.
type liveResource struct {
	Title      string          `json:"title"`
	Parameters json.RawMessage `json:"parameters"`
}

// take compares what one node says; of an answer only its state is held.
func (l *liveResources) take(given api.ActionAnswer) error {
	a, err := answerOf(given)
	if err != nil {
		return err
	}
	if a.Code == action.Done {
		if err := l.compare(a); err != nil {
			a.Code, a.Message = action.Other, fault.Detail(err)
		}
		a.Data = nil
	}
	l.all, l.kept = append(l.all, a), append(l.kept, a)
	l.progress()
	return nil
}

func (l *liveResources) compare(a action.Answer) error {
	var told struct {
		liveResource
		Result   []liveResource `json:"result"`
		Cut      bool           `json:"cut"`
		Problems []string       `json:"problems"`
	}
	if err := json.Unmarshal(a.Data, &told); err != nil {
		return fault.Wrap(fault.Invalid, err, "the answer is no resource")
	}
	if l.title != "" {
		told.Title, told.Result = l.title, []liveResource{told.liveResource}
	}
	if told.Cut {
		l.cut++
	}
	for _, problem := range told.Problems[:min(len(told.Problems), shownNames-len(l.problems))] {
		l.problems = append(l.problems, string(a.Node)+": "+problem)
	}
	for _, r := range told.Result {
		if l.title != "" {
			r.Title = l.title
		}
		parameters, err := variants.Canonical(r.Parameters, l.in.ignore)
		if err == nil {
			err = l.comparer.Add(a.Node, r.Title, parameters)
		}
		if err != nil {
			return err
		}
		if l.in.catalog || l.in.report {
			if err := l.drift.saw(a.Node, r.Title, parameters); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish prints the resources, the nodes that did not tell of theirs, and how it ended.
func (l *liveResources) finish() error {
	comparisons, err := l.comparer.Comparisons()
	if err != nil {
		return err
	}
	if l.in.manifest {
		err = l.printManifest(comparisons)
	} else {
		err = l.printComparisons(comparisons)
	}
	if err == nil {
		err = l.printSilent()
	}
	if err != nil {
		return err
	}
	if l.cut > 0 {
		l.hint("%s more of them than could be listed", fault.Count(l.cut, "node")+haveOrHas(l.cut))
	}
	for _, problem := range l.problems {
		l.hint("%s", print.OneLine(problem))
	}
	text, code := l.outcome()
	if code == exitDone {
		l.hint("%s in %s", text, print.Duration(time.Since(l.began).Round(10*time.Millisecond)))
		return nil
	}
	return jobOutcome{code, text}
}

func haveOrHas(n int) string {
	if n == 1 {
		return " has"
	}
	return " have"
}

func (l *liveResources) printManifest(comparisons []variants.Comparison) error {
	slices.SortFunc(comparisons, func(a, b variants.Comparison) int { return strings.Compare(a.Title, b.Title) })
	for _, one := range comparisons {
		if l.in.variant > len(one.Variants) {
			return fault.New(fault.Invalid, "--variant %d: of %s[%.80s] there are %d", l.in.variant, l.kind, one.Title, len(one.Variants))
		}
		code, err := manifest(l.kind, one.Title, one.Variants[l.in.variant-1].Parameters)
		if err == nil {
			err = l.printer().Text(code)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// printComparisons prints as resource variants does; with catalogs, there is one more column.
func (l *liveResources) printComparisons(comparisons []variants.Comparison) error {
	if l.title == "" {
		all := make([]liveComparison, len(comparisons))
		for i, one := range comparisons {
			all[i] = liveComparison{ResourceComparison: one.ForAPI(l.kind, false)}
			all[i].besides = l.besides(one.Title, nil)
		}
		return print.List(l.printer(), all,
			withBesides(comparisonTable(), l.in, func(c liveComparison) (api.ResourceComparison, besides) { return c.ResourceComparison, c.besides }))
	}
	var one api.ResourceComparison
	var all []liveVariant
	if len(comparisons) > 0 {
		one = comparisons[0].ForAPI(l.kind, true)
		l.hint("%s[%s] on %s: %s", one.Type, one.Title, fault.Count(one.Nodes, "node"), differs(one))
	}
	for _, v := range one.Variants {
		all = append(all, liveVariant{v, l.besides(l.title, v.Parameters)})
	}
	return print.List(l.printer(), all,
		withBesides(variantTable(one.Differing), l.in, func(v liveVariant) (api.ResourceVariant, besides) { return v.ResourceVariant, v.besides }))
}

// besides is what catalogs and reports say of a resource.
func (l *liveResources) besides(title string, parameters json.RawMessage) besides {
	return besides{l.drift.of(title, parameters), l.drift.reported(title, parameters)}
}

// liveComparison and liveVariant are what resource variants prints, and what else is known.
type (
	liveComparison struct {
		api.ResourceComparison
		besides
	}
	liveVariant struct {
		api.ResourceVariant
		besides
	}
	besides struct {
		Drift   []liveDrift  `json:"drift,omitempty"`
		Reports []liveReport `json:"reports,omitempty"`
	}
)

// withBesides is a table of T for what is known besides.
func withBesides[T, D any](t print.Table[T], in *resourceLiveInput, parts func(D) (T, besides)) print.Table[D] {
	out := print.Table[D]{Columns: slices.Clone(t.Columns), Empty: t.Empty, Name: func(d D) string { one, _ := parts(d); return t.Name(one) }}
	if in.catalog {
		out.Columns = append(out.Columns, "drift")
	}
	if in.report {
		out.Columns = append(out.Columns, "last report")
	}
	out.Row = func(d D) []any {
		one, found := parts(d)
		row := t.Row(one)
		if in.catalog {
			row = append(row, driftText(found.Drift))
		}
		if in.report {
			row = append(row, reportText(found.Reports))
		}
		return row
	}
	return out
}

func driftText(all []liveDrift) string {
	texts := make([]string, len(all))
	for i, d := range all {
		texts[i] = fmt.Sprintf("%s: catalog says %s, node says %s on %s", d.Parameter, valueText(d.Catalog), valueText(d.Live), fault.Count(d.Nodes, "node"))
	}
	return strings.Join(texts, "; ")
}

// printSilent says which nodes told nothing, and why. Where the output is for programs, it is a hint.
func (l *liveResources) printSilent() error {
	if l.output == "table" && !l.in.manifest {
		slices.SortFunc(l.kept, func(a, b action.Answer) int { return strings.Compare(string(a.Node), string(b.Node)) })
		l.action.Aggregates = nil // they sum up what was not held
		return l.printTogether()
	}
	for _, same := range action.Fold(l.all) {
		if same.Code == action.Done {
			continue
		}
		l.hint("%s: %s%s", someNames(same.Nodes, shownNames), same.Code, print.OneLine(behind(" - ", same.Message)))
	}
	return nil
}

// behind is text with what stands before it, or nothing.
func behind(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// liveDrift is one parameter that nodes have otherwise than their catalogs say.
type liveDrift struct {
	Parameter string          `json:"parameter"`
	Catalog   json.RawMessage `json:"catalog"`
	Live      json.RawMessage `json:"live"`
	Nodes     int             `json:"nodes"`
	Examples  []string        `json:"examples"`
}

// drift holds what nodes said, until it is compared with their catalogs and reports.
type drift struct {
	kind  string
	texts map[string]json.RawMessage // each set of parameters once
	live  map[fleet.Certname]map[string]json.RawMessage
	found map[string][]seenDrift  // by title
	words map[string][]reportWord // by title
	held  int                     // resources in live
}

// maxHeld is how many resources of nodes are held to be compared with their catalogs and reports.
const maxHeld = 1_000_000

// seenDrift is that of one node.
type seenDrift struct {
	node       fleet.Certname
	parameters json.RawMessage // as the node has them
	variants.Difference
}

func (d *drift) saw(node fleet.Certname, title string, parameters json.RawMessage) error {
	if d.held == maxHeld {
		return fault.New(fault.Invalid, "--with-catalog and --with-report compare at most %d resources; name a title, or narrow the nodes", maxHeld)
	}
	d.held++
	if d.live == nil {
		d.texts, d.live = map[string]json.RawMessage{}, map[fleet.Certname]map[string]json.RawMessage{}
		d.found, d.words = map[string][]seenDrift{}, map[string][]reportWord{}
	}
	text, ok := d.texts[string(parameters)]
	if !ok {
		text = parameters
		d.texts[string(parameters)] = text
	}
	if d.live[node] == nil {
		d.live[node] = map[string]json.RawMessage{}
	}
	d.live[node][title] = text
	return nil
}

// maxNodesNamed is how many nodes a query names; of more, all are asked for.
const maxNodesNamed = 1000

// readCatalogs compares with the newest catalogs of the nodes that answered.
func (d *drift) readCatalogs(ctx context.Context, client *api.Client, title string) error {
	if len(d.live) == 0 {
		return nil
	}
	q := &pql.Query{
		Entity: "resources", Where: pql.And{Terms: d.ofNodes(named(d.kind, title))}, Columns: []pql.Column{column("certname"), column("title"), column("parameters")},
	}
	return client.Rows(ctx, api.QueryRequest{Query: q.AST()}, func(api.QueryAnswer) error { return nil }, func(text json.RawMessage) error {
		var row struct {
			Certname fleet.Certname `json:"certname"`
			liveResource
		}
		if err := json.Unmarshal(text, &row); err != nil {
			return err
		}
		live, ok := d.live[row.Certname][row.Title]
		if !ok {
			return nil
		}
		all, err := variants.Drift(d.kind, row.Parameters, live)
		for _, difference := range all {
			d.found[row.Title] = append(d.found[row.Title], seenDrift{row.Certname, live, difference})
		}
		return err
	})
}

// of sums up the drift of a resource: of all nodes, or of those that have it with these parameters.
func (d *drift) of(title string, parameters json.RawMessage) []liveDrift {
	var all []liveDrift
	for _, seen := range d.found[title] {
		if parameters != nil && string(parameters) != string(seen.parameters) {
			continue
		}
		i := slices.IndexFunc(all, func(one liveDrift) bool {
			return one.Parameter == seen.Parameter && string(one.Catalog) == string(seen.Catalog) && string(one.Live) == string(seen.Live)
		})
		if i < 0 {
			i = len(all)
			all = append(all, liveDrift{Parameter: seen.Parameter, Catalog: seen.Catalog, Live: seen.Live})
		}
		all[i].Nodes++
		all[i].Examples = append(all[i].Examples, string(seen.node))
	}
	for i := range all {
		slices.Sort(all[i].Examples)
		all[i].Examples = all[i].Examples[:min(len(all[i].Examples), 5)]
	}
	slices.SortStableFunc(all, func(a, b liveDrift) int { return b.Nodes - a.Nodes })
	return all
}
