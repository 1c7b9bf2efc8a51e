package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/cli/print"
	"github.com/tutti-project/tutti/internal/fault"
)

// callAnswers prints what nodes say to a call: as they come for jsonl, together at the end for people.
type callAnswers struct {
	*call
	display string          // of the flag
	only    *filter.Answers // answers that are shown; nil: no other condition
	asked   api.ActionAsked
	layout  func([]action.Answer) string // for people; nil: the same ones together
	action  action.Action
	results *action.Schema
	began   time.Time
	all     []action.Answer
	kept    []action.Answer // of all, those that are printed
	shown   time.Time       // when how many have answered was shown last
}

func newAnswers(c *call, display string) *callAnswers {
	return &callAnswers{call: c, display: display, began: time.Now()}
}

func (p *callAnswers) begin(asked api.ActionAsked) (err error) {
	p.asked = asked
	p.action = actionOf(asked.Action)
	p.results, err = action.Compile(p.action.Results)
	return err
}

// visible says whether people see an answer.
func (p *callAnswers) visible(a action.Answer) bool {
	if p.display == "" && p.only != nil {
		return true // who says which answers to show means these
	}
	switch p.display {
	case "none":
		return false
	case "all":
		return true
	case "ok", "failed":
		return a.Visible(action.Display(p.display))
	}
	return a.Visible(p.action.Shown())
}

func (p *callAnswers) add(given api.ActionAnswer) error {
	a, err := answerOf(given)
	if err != nil {
		return err
	}
	p.all = append(p.all, a)
	kept := p.only == nil || p.only.Hold(filter.Reply{Code: int(a.Code), State: a.Code.String(), Node: string(a.Node), Message: a.Message}, a.Data)
	if kept {
		p.kept = append(p.kept, a)
	}
	if p.output == "jsonl" {
		if !kept {
			return nil
		}
		return print.Line(p.system.Out, given)
	}
	p.progress()
	return nil
}

// progress shows somebody at a terminal how many have answered.
func (p *callAnswers) progress() {
	if p.system.Width == 0 || p.output != "table" || time.Since(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = time.Now()
	_, _ = fmt.Fprintf(p.system.Err, "\r\x1b[2K%d of %d answered", len(p.all), p.asked.Nodes)
}

// interrupted takes the line of progress away.
func (p *callAnswers) interrupted() {
	if !p.shown.IsZero() {
		_, _ = io.WriteString(p.system.Err, "\r\x1b[2K")
	}
}

// end prints what is printed together, and says by its error how the call ended.
func (p *callAnswers) end() error {
	p.interrupted()
	took := time.Since(p.began)
	slices.SortFunc(p.kept, func(a, b action.Answer) int { return strings.Compare(string(a.Node), string(b.Node)) })
	if err := p.print(); err != nil {
		return err
	}
	text, code := p.outcome()
	if p.only != nil {
		text += fmt.Sprintf("; %d shown", len(p.kept))
	}
	if code == exitDone {
		p.hint("%s in %s", text, print.Duration(took.Round(10*time.Millisecond)))
		return nil
	}
	return jobOutcome{code, text}
}

func (p *callAnswers) print() error {
	switch p.output {
	case "jsonl":
		return nil
	case "table":
		if p.layout != nil {
			return p.printer().Text(p.layout(p.kept))
		}
		return p.printTogether()
	case "name":
		for _, a := range p.kept {
			if a.Code == action.Done || p.only != nil {
				p.printer().Line(string(a.Node))
			}
		}
		return nil
	case "csv":
		return print.List(p.printer(), p.kept, p.table())
	}
	return p.printer().Thing(p.summary())
}

// answersForPrograms is a whole call.
type answersForPrograms struct {
	Module  string          `json:"module"`
	Action  string          `json:"action"`
	Nodes   int             `json:"nodes"`
	Answers []action.Answer `json:"answers"`
	Summed  []action.Summed `json:"summed,omitempty"`
}

func (p *callAnswers) summary() answersForPrograms {
	return answersForPrograms{
		Module: p.asked.Module, Action: p.action.Name, Nodes: p.asked.Nodes, Answers: append([]action.Answer{}, p.kept...), Summed: p.summed(),
	}
}

func (p *callAnswers) summed() (all []action.Summed) {
	for _, aggregate := range p.action.Aggregates {
		field, _ := p.results.Field(aggregate.Field)
		all = append(all, aggregate.Over(p.kept, cmp.Or(field.Title, aggregate.Field)))
	}
	return all
}

// table is a row for each node, with a column for each field of the results.
func (p *callAnswers) table() print.Table[action.Answer] {
	columns := []string{"node", "state", "message"}
	for _, f := range p.results.Fields() {
		columns = append(columns, f.Name)
	}
	return print.Table[action.Answer]{Columns: columns, Row: func(a action.Answer) []any {
		row := []any{string(a.Node), a.Code.String(), a.Message}
		var data map[string]json.RawMessage
		_ = json.Unmarshal(a.Data, &data) // what is no object has no fields
		for _, f := range p.results.Fields() {
			row = append(row, valueText(data[f.Name]))
		}
		return row
	}, Name: func(a action.Answer) string { return string(a.Node) }}
}

// valueText is a value of results as people read it: texts as they are, everything else as JSON.
func valueText(value json.RawMessage) string {
	var plain string
	switch {
	case len(value) == 0 || string(value) == "null":
		return ""
	case json.Unmarshal(value, &plain) == nil:
		return plain
	}
	var out bytes.Buffer
	if json.Compact(&out, value) != nil {
		return string(value)
	}
	return out.String()
}

// printTogether prints the same answers once, then what they sum up to.
func (p *callAnswers) printTogether() error {
	var visible []action.Answer
	for _, a := range p.kept {
		if p.visible(a) {
			visible = append(visible, a)
		}
	}
	out := p.printer()
	for _, same := range action.Fold(visible) {
		heading := someNames(same.Nodes, shownNames)
		if len(same.Nodes) > 1 {
			heading = fmt.Sprintf("same on %s: %s", fault.Count(len(same.Nodes), "node"), heading)
		}
		if same.Code != action.Done {
			heading += "  " + out.State(same.Code.String(), stateWord(same.Code))
		}
		if err := out.Text(heading + "\n" + setIn("  ", same.Message) + dataText(p.results, same.Data, 2) + "\n"); err != nil {
			return err
		}
	}
	for _, s := range p.summed() {
		lines := s.Lines()
		if len(lines) == 0 {
			continue
		}
		if err := out.Text("Summary of " + s.Title + ":\n" + setIn("  ", strings.Join(lines, "\n")) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// stateWord is the state of a job's run whose colour and exit code a code has.
func stateWord(c action.Code) string {
	switch c {
	case action.Offline, action.Silent, action.Left, action.Unasked:
		return "offline"
	case action.Denied, action.UnknownAction:
		return "refused"
	case action.Done:
		return "succeeded"
	case action.Aborted, action.MissingData, action.InvalidData, action.Other:
	}
	return "failed"
}

// dataText is results, a line for each field that is there, in the order of their schema; the longest title is set in.
func dataText(results *action.Schema, data []byte, setInBy int) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return setIn(strings.Repeat(" ", setInBy), valueText(data))
	}
	var rows [][2]string
	widest := 0
	add := func(title string, value json.RawMessage) {
		if text := valueText(value); text != "" {
			rows = append(rows, [2]string{title, text})
			widest = max(widest, len([]rune(title)))
		}
	}
	for _, f := range results.Fields() {
		add(f.Title, members[f.Name])
		delete(members, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		add(name, members[name])
	}
	widest += setInBy
	var b strings.Builder
	for _, row := range rows {
		lines := strings.Split(strings.TrimRight(row[1], "\n"), "\n")
		fmt.Fprintf(&b, "%*s: %s\n", widest, row[0], print.OneLine(lines[0]))
		for _, line := range lines[1:] {
			fmt.Fprintf(&b, "%*s  %s\n", widest, "", print.OneLine(line))
		}
	}
	return b.String()
}

// outcome is how a call ended in a sentence, and its exit code: the worst of its nodes.
func (p *callAnswers) outcome() (text string, code int) {
	counts := map[action.Code]int{}
	for _, a := range p.all {
		counts[a.Code]++
	}
	text = fmt.Sprintf("%d of %s answered ok", counts[action.Done], fault.Count(p.asked.Nodes, "node"))
	for c := action.Aborted; c <= action.Unasked; c++ {
		if counts[c] > 0 {
			text += fmt.Sprintf("; %s: %d", c, counts[c])
		}
	}
	there := map[string]bool{}
	for c := range counts {
		there[stateWord(c)] = true
	}
	switch {
	case there["failed"]:
		return text, exitSomeFailed
	case there["refused"]:
		return text, exitRefused
	case there["offline"]:
		return text, exitLate
	}
	return text, exitDone
}

// printMatches says of each node whether it is meant, and why.
func printMatches(c *call, matched []api.NodeMatched) error {
	if c.printer().ForPrograms() {
		return c.printer().Thing(api.List[api.NodeMatched]{Items: matched})
	}
	holds := 0
	for _, m := range matched {
		if m.Holds == "yes" {
			holds++
		}
		if err := c.printer().Text(fmt.Sprintf("%s: %s\n", m.Node, m.Holds)); err != nil {
			return err
		}
		for _, part := range m.Parts {
			if err := c.printer().Text(fmt.Sprintf("  %-7s %s: %s\n", part.Holds, part.Part, part.Why)); err != nil {
				return err
			}
		}
	}
	c.hint("%d of %s would be asked. The action was not called.", holds, fault.Count(len(matched), "node"))
	if holds == 0 {
		return jobOutcome{exitFailed, "no node is meant"}
	}
	return nil
}
