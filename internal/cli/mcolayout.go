package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
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
	return b.String() + "\n" + p.endText()
}

// nodeText is one node's answer. What failed has no data.
func nodeText(a action.Answer, results *action.Schema) string {
	node := print.OneLine(string(a.Node))
	if a.Code == action.Done {
		return fmt.Sprintf("%-40s \n", node) + mcoData(results, a.Data)
	}
	return fmt.Sprintf("%-40s %s\n", node, statusWords[a.Code]) + setIn("   ", a.Message)
}

// mcoData is results, in the order of their names; titles end in one column. What is no text is JSON, where MCollective has Ruby.
func mcoData(results *action.Schema, data []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return setIn("   ", valueText(data))
	}
	names := slices.Sorted(maps.Keys(members))
	titles := make([]string, len(names))
	widest := 0
	for i, name := range names {
		field, _ := results.Field(name)
		titles[i] = cmp.Or(field.Title, name)
		widest = max(widest, len([]rune(titles[i])))
	}
	var b strings.Builder
	for i, name := range names {
		fmt.Fprintf(&b, "%*s:", widest+3, titles[i])
		lines := strings.Split(strings.TrimRight(valueText(members[name]), "\n"), "\n")
		for n, line := range lines {
			switch line = printable(line); {
			case n == 0 && line == "" && len(lines) == 1:
				b.WriteString("\n")
			case n == 0:
				b.WriteString(" " + line + "\n")
			default:
				fmt.Fprintf(&b, "%*s%s\n", widest+5, "", line)
			}
		}
	}
	return b.String()
}

// endText is sums, the closing line or the statistics, and who did not answer.
func (p *mcoAnswers) endText() string {
	silent := p.silent()
	answered := len(p.all) - len(silent)
	lines := []string{p.sumsText()}
	if p.verbosely {
		lines = append(lines, p.statistics(answered)...)
	} else {
		lines = append(lines, fmt.Sprintf("Finished processing %d / %d hosts in %s", answered, len(p.found.nodes), millisecondsText(milliseconds(p.took))))
	}
	lines = append(lines, "")
	if len(silent) > 0 {
		lines = append(lines, "", "No response from:\n\n"+inFields(silent))
	}
	return strings.Join(append(lines, ""), "\n")
}

// sumsText is what the module's aggregates give.
func (p *mcoAnswers) sumsText() string {
	var b strings.Builder
	for _, aggregate := range p.action.Aggregates {
		field, _ := p.results.Field(aggregate.Field)
		sum := aggregate.Over(p.all, cmp.Or(field.Title, aggregate.Field))
		if lines := sum.Lines(); len(lines) > 0 {
			fmt.Fprintf(&b, "Summary of %s:\n\n%s\n", print.OneLine(sum.Title), setIn("   ", strings.Join(lines, "\n")))
		}
	}
	return b.String()
}

// statistics are the lines of --verbose.
func (p *mcoAnswers) statistics(answered int) []string {
	failed := 0
	for _, a := range p.all {
		if a.Code != action.Done && replied(a) {
			failed++
		}
	}
	lines := []string{fmt.Sprintf("---- %s call stats ----", print.OneLine(p.module+"#"+p.action.Name))}
	for _, row := range [][2]string{
		{"Nodes", fmt.Sprintf("%d / %d", len(p.found.nodes), answered)},
		{"Pass / Fail", fmt.Sprintf("%d / %d", answered-failed, failed)},
		{"Start Time", p.began.Format("2006-01-02 15:04:05 -0700")},
		{"Discovery Time", fmt.Sprintf("%.2fms", milliseconds(p.found.took))},
		{"Agent Time", fmt.Sprintf("%.2fms", milliseconds(p.took))},
		{"Total Time", fmt.Sprintf("%.2fms", milliseconds(p.found.took+p.took))},
	} {
		lines = append(lines, fmt.Sprintf("%16s: %s", row[0], row[1]))
	}
	return lines
}

// inFields are names in as many columns as fit into 90 characters.
func inFields(names []string) string {
	width := 30
	for _, name := range names {
		width = max(width, len([]rune(name)))
	}
	var b strings.Builder
	for row := range slices.Chunk(names, max(1, 90/width)) {
		b.WriteString("   ")
		for i := range max(1, 90/width) {
			name := ""
			if i < len(row) {
				name = print.OneLine(row[i])
			}
			fmt.Fprintf(&b, " %-*s", width, name)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
