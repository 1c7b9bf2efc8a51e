package cli

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// The layouts of mco. Scripts read them: they are MCollective's, line by line.

// mcoPings is what mco ping prints: the fastest first.
func mcoPings(pongs []api.Pong) string {
	pongs = fastestFirst(pongs)
	var b strings.Builder
	for _, p := range pongs {
		fmt.Fprintf(&b, "%-40s time=%.2f ms\n", print.OneLine(p.Node), *p.Milliseconds)
	}
	b.WriteString("\n\n---- ping statistics ----\n")
	if len(pongs) == 0 {
		b.WriteString("No responses received\n")
		return b.String()
	}
	most, least, average := pingTimes(pongs)
	fmt.Fprintf(&b, "%d replies max: %.2f min: %.2f avg: %.2f\n", len(pongs), most, least, average)
	return b.String()
}

// statusWords are mco's words for codes.
var statusWords = map[action.Code]string{
	action.Done: "OK", action.Aborted: "Request Aborted", action.UnknownAction: "Unknown Action", action.MissingData: "Missing Request Data",
	action.InvalidData: "Invalid Request Data", action.Other: "Unknown Request Status", action.Denied: "Request Aborted",
}

// statusCode is mco's number of a code.
func statusCode(code action.Code) int {
	if code == action.Denied {
		return int(action.Aborted)
	}
	return int(code)
}

// statusText is what a node says of how it went.
func statusText(a action.Answer) string {
	switch {
	case a.Code == action.Done:
		return "OK"
	case a.Message != "":
		return print.OneLine(a.Message)
	}
	return statusWords[a.Code]
}

// heard says whether an answer is shown.
func (p *mcoAnswers) heard(a action.Answer) bool {
	return replied(a) && (p.verbosely || a.Visible(p.action.Shown()))
}

// text is what mco rpc prints.
func (p *mcoAnswers) text() string {
	var b strings.Builder
	b.WriteString("\n")
	for _, a := range p.all {
		if p.heard(a) {
			b.WriteString(nodeText(a, p.results) + "\n")
		}
	}
	return b.String() + p.endText()
}

// nodeText is one node's answer.
func nodeText(a action.Answer, results *action.Schema) string {
	if a.Code == action.Done {
		return print.OneLine(string(a.Node)) + "\n" + dataText(results, a.Data, 3)
	}
	return fmt.Sprintf("%-40s  %s\n", print.OneLine(string(a.Node)), statusWords[a.Code]) + setIn("   ", a.Message) + dataText(results, a.Data, 3)
}

// endText is sums, who did not answer, and the closing line or the statistics.
func (p *mcoAnswers) endText() string {
	var b strings.Builder
	for _, aggregate := range p.action.Aggregates {
		field, _ := p.results.Field(aggregate.Field)
		sum := aggregate.Over(p.all, cmp.Or(field.Title, aggregate.Field))
		if lines := sum.Lines(); len(lines) > 0 {
			fmt.Fprintf(&b, "Summary of %s:\n%s\n", print.OneLine(sum.Title), setIn("   ", strings.Join(lines, "\n")))
		}
	}
	silent := p.silent()
	if len(silent) > 0 {
		fmt.Fprintf(&b, "No response from:\n%s\n", setIn("   ", strings.Join(silent, "\n")))
	}
	answered := len(p.all) - len(silent)
	if !p.verbosely {
		fmt.Fprintf(&b, "Finished processing %d / %d hosts in %s\n", answered, len(p.found.nodes), millisecondsText(milliseconds(p.took)))
		return b.String()
	}
	failed := 0
	for _, a := range p.all {
		if a.Code != action.Done && replied(a) {
			failed++
		}
	}
	fmt.Fprintf(&b, "---- %s stats ----\n", print.OneLine(p.module+"#"+p.action.Name))
	for _, row := range [][2]string{
		{"Nodes", fmt.Sprintf("%d / %d", len(p.found.nodes), answered)},
		{"Pass / Fail", fmt.Sprintf("%d / %d", answered-failed, failed)},
		{"Start Time", p.began.Format("Mon Jan 02 15:04:05 -0700 2006")},
		{"Discovery Time", fmt.Sprintf("%.2fms", milliseconds(p.found.took))},
		{"Agent Time", fmt.Sprintf("%.2fms", milliseconds(p.took))},
		{"Total Time", fmt.Sprintf("%.2fms", milliseconds(p.found.took+p.took))},
	} {
		fmt.Fprintf(&b, "%16s: %s\n", row[0], row[1])
	}
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
