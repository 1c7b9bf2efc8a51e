package cli

import (
	"context"
	"encoding/xml"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// previewPrinting says how a preview is printed.
type previewPrinting struct {
	details, order, noise, markdown, junit, exitCode bool
}

func (p *previewPrinting) flags(f flagSet) {
	f.BoolVar(&p.details, "details", false, "show how the first node of each change has it, texts as diffs")
	f.BoolVar(&p.order, "order", false, "show what differs in order only, too")
	f.BoolVar(&p.noise, "noise", false, "show what noise rules hide, too, and count it")
	f.BoolVar(&p.markdown, "markdown", false, "print Markdown, for a merge request")
	f.BoolVar(&p.junit, "junit", false, "print JUnit XML: a test for each node, which fails if the code does not compile for it")
	f.BoolVar(&p.exitCode, "exit-code", false, "end with exit code 3 if something changes (with --order and --noise, also if it is that only)")
	f.cmd.MarkFlagsMutuallyExclusive("markdown", "junit")
}

func (p *previewPrinting) check(a *app) error {
	if (p.markdown || p.junit) && a.printer().ForPrograms() {
		return usageError{fault.New(fault.Invalid, "--markdown, --junit and -o json are ways to print: give one of them")}
	}
	return nil
}

// standingText counts what a preview says of nodes.
func standingText(p api.Preview) string {
	var parts []string
	counts := maps.Clone(p.Counts)
	counts["quiet"], counts["engine"], counts["changed"] = p.Quiet, p.EngineOnly, counts["changed"]-p.Quiet-p.EngineOnly
	for _, part := range [...]struct{ state, text string }{
		{"failed", "do not compile"},
		{"changed", "change"},
		{"engine", "change in noise of the engine only"},
		{"quiet", "change in noise only"},
		{"reordered", "change in order only"},
		{"same", "stay as they are"},
		{"first", "have no catalog to compare with"},
		{"unable", "cannot be compiled for"},
		{"waiting", "not known yet"},
	} {
		if n := counts[part.state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.text))
		}
	}
	return strings.Join(parts, ", ")
}

// printPreview prints a preview as it is now. Its errors decide the exit code.
func printPreview(ctx context.Context, a *app, client *api.Client, id string, how previewPrinting) error {
	report, err := wholePreview(ctx, client, id)
	if err != nil {
		return err
	}
	if how.noise {
		report.Quiet = 0
	}
	switch {
	case a.printer().ForPrograms():
		err = a.printer().Thing(report)
	case how.markdown:
		err = previewMarkdown(a.printer(), report, how)
	case how.junit:
		err = previewJUnit(ctx, a, client, report, how)
	default:
		err = previewText(a.printer(), report, how)
	}
	changes := report.Counts["changed"] - report.Quiet
	if how.order {
		changes += report.Counts["reordered"]
	}
	switch {
	case err != nil:
		return err
	case report.Counts["failed"] > 0:
		return jobOutcome{
			code: exitSomeFailed, text: fmt.Sprintf("the code does not compile for %s of %d; see: tutti preview nodes %s --state failed",
				fault.Count(report.Counts["failed"], "node"), report.Nodes, id),
		}
	case how.exitCode && changes > 0:
		return errDiffers
	}
	return nil
}

// wholePreview reads all pages.
func wholePreview(ctx context.Context, client *api.Client, id string) (whole api.PreviewReport, err error) {
	for after := ""; ; {
		page, err := api.PreviewShow.Call(ctx, client, api.PreviewShowRequest{Preview: id, After: after, Limit: pageSize})
		if err != nil {
			return whole, err
		}
		changes := append(whole.Changes, page.Changes...) //nolint:gocritic // the page is the newer one
		whole, after = page, page.Next
		whole.Changes = changes
		if after == "" {
			return whole, nil
		}
	}
}

// byEngine says which Puppet installation compiles a preview, if it names one.
func byEngine(p api.Preview) string {
	if p.Engine == "" {
		return ""
	}
	return " by " + p.Engine
}

func previewText(to print.Printer, r api.PreviewReport, how previewPrinting) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Preview %s  %s %s%s  %s  %s: %s\n", r.ID, r.Environment, short(r.Version), byEngine(r.Preview), r.State, fault.Count(r.Nodes, "node"),
		standingText(r.Preview))
	for _, u := range r.Unseen {
		fmt.Fprintf(&text, "  not seen: %s (%s)\n", print.OneLine(u.Reason), fault.Count(u.Nodes, "node"))
	}
	hidden, apart := 0, false
	changes := changesByKey(r)
	for i, kind := range diff.Kinds(groupsOf(r)) {
		if kind.OrderOnly && !how.order {
			hidden++
			continue
		}
		if !how.noise && allNoise(kind, changes) {
			continue
		}
		if kind.EngineNoise && !apart {
			apart = true
			text.WriteString("      Noise of the engine: the other Puppet gives the same values in another form\n")
		}
		if err := kind.WriteText(&text, fmt.Sprintf("%4d", i+1), acknowledgement(kind, changes), how.details); err != nil {
			return err
		}
		for _, key := range kind.Keys {
			text.WriteString(remarksText(changes[key].Remarks))
		}
	}
	if hidden > 0 {
		fmt.Fprintf(&text, "      … and %s in order only (--order)\n", fault.Count(hidden, "change"))
	}
	text.WriteString(how.hiddenLine("      … and %s (--noise)\n", r.Hidden) + remarksText(r.Remarks))
	return to.Text(text.String())
}

// allNoise says whether noise rules hide all variants of a kind of change.
func allNoise(kind diff.Kind, changes map[string]api.PreviewChange) bool {
	return !slices.ContainsFunc(kind.Keys, func(key string) bool { return changes[key].Noise == "" })
}

func groupsOf(r api.PreviewReport) []api.ChangeGroup {
	groups := make([]api.ChangeGroup, len(r.Changes))
	for i, change := range r.Changes {
		groups[i] = change.ChangeGroup
	}
	return groups
}

func changesByKey(r api.PreviewReport) map[string]api.PreviewChange {
	changes := make(map[string]api.PreviewChange, len(r.Changes))
	for _, change := range r.Changes {
		changes[change.Key] = change
	}
	return changes
}

// acknowledgement says who acknowledged a kind of change, if all of its variants are.
func acknowledgement(kind diff.Kind, changes map[string]api.PreviewChange) string {
	who := map[string]bool{}
	for _, key := range kind.Keys {
		who[changes[key].Acknowledged] = true
	}
	if who[""] {
		return ""
	}
	return "acknowledged by " + strings.Join(slices.Sorted(maps.Keys(who)), ", ")
}

func remarksText(remarks []api.PreviewRemark) string {
	var text strings.Builder
	for _, r := range remarks {
		if r.Text != "" {
			fmt.Fprintf(&text, "      %s, %s: %s\n", r.Author, print.Ago(r.At, time.Now()), print.OneLine(r.Text))
		}
	}
	return text.String()
}

func previewMarkdown(to print.Printer, r api.PreviewReport, how previewPrinting) error {
	var text strings.Builder
	fmt.Fprintf(&text, "**Preview %s** of %s %s%s: ", r.ID, r.Environment, short(r.Version), byEngine(r.Preview))
	f := api.FleetDifference{
		Nodes: r.Nodes, Changed: r.Counts["changed"] - r.Quiet, Errors: r.Counts["failed"], OrderOnly: r.Counts["reordered"],
		Same: r.Counts["same"] + r.Counts["reordered"],
	}
	r.Changes = how.quieter(r.Changes)
	f.Groups = groupsOf(r)
	if err := diff.WriteFleetMarkdown(&text, f, how.order); err != nil {
		return err
	}
	text.WriteString(how.hiddenLine("\nHidden: %s\n", r.Hidden))
	for _, u := range r.Unseen {
		fmt.Fprintf(&text, "\nNot seen: `%s` (%s)\n", strings.ReplaceAll(print.OneLine(u.Reason), "`", "'"), fault.Count(u.Nodes, "node"))
	}
	return to.Text(text.String())
}

// The part of JUnit's format that CI servers read.
type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
		Output   string      `xml:"system-out,omitempty"`
	}
	junitCase struct {
		Name    string      `xml:"name,attr"`
		Class   string      `xml:"classname,attr"`
		Failure *junitWords `xml:"failure"`
		Skipped *junitWords `xml:"skipped"`
		Output  string      `xml:"system-out,omitempty"`
	}
	junitWords struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// previewJUnit prints a test for each node.
func previewJUnit(ctx context.Context, a *app, client *api.Client, r api.PreviewReport, how previewPrinting) error {
	suite := junitSuite{Name: "preview " + r.ID + " of " + r.Environment}
	if len(r.Hidden) > 0 && !how.noise {
		suite.Output = "hidden: " + hiddenText(r.Hidden)
	}
	for after := ""; ; {
		page, err := api.PreviewNodes.Call(ctx, client, api.PreviewNodesRequest{Preview: r.ID, After: after, Limit: pageSize})
		if err != nil {
			return err
		}
		for _, n := range page.Items {
			n.Quiet = n.Quiet && !how.noise
			suite.add(n, r.Environment)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(a.system.Out, "%s%s\n", xml.Header, text)
	}
	return err
}

func (s *junitSuite) add(n api.PreviewNode, env string) {
	c := junitCase{Name: n.Name, Class: env, Output: n.State}
	if n.Quiet {
		c.Output += " in noise only"
	}
	switch n.State {
	case "failed":
		c.Failure = &junitWords{Message: print.OneLine(n.Message), Text: fleet.Place(n.File, n.Line)}
		s.Failures++
	case "unable", "waiting":
		c.Skipped = &junitWords{Message: print.OneLine(n.Message)}
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
	s.Tests++
}

// changeKeys finds the keys of changes that are named by their numbers in preview show, by ranges of numbers, or by keys.
func changeKeys(ctx context.Context, client *api.Client, id string, words []string) ([]string, error) {
	if len(words) == 0 {
		return nil, nil
	}
	report, err := wholePreview(ctx, client, id)
	if err != nil {
		return nil, err
	}
	kinds := diff.Kinds(groupsOf(report))
	var keys []string
	for _, word := range words {
		from, to, isRange := strings.Cut(word, "-")
		if !isRange {
			to = from
		}
		first, err1 := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || len(word) > 20 {
			keys = append(keys, word)
			continue
		}
		if first < 1 || last < first || last > len(kinds) {
			return nil, usageError{fault.New(fault.Invalid, "preview %s has no change %s: it has %d; see `tutti preview show %s`", id, word, len(kinds), id)}
		}
		for _, kind := range kinds[first-1 : last] {
			keys = append(keys, kind.Keys...)
		}
	}
	return keys, nil
}
