package ruby

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// patience is how many questions more than allowed are refused with words, before
// a compile that does not listen is ended.
const patience = 16

// asking is one conversation's questions to the inventory and what came of them.
type asking struct {
	known compile.Inventory
	out   io.Writer
	nodes map[string]string // whose catalogs are being compiled, with their orders' Reach
	most  int               // questions
	left  int64             // bytes of answers

	count     int
	failed    error // the inventory did not answer: the compile must be tried again
	asked     []compile.Question
	answers   map[fleet.Digest]json.RawMessage // by what the questions say of them
	room      int                              // for more answers
	collected []compile.Collected
	seen      map[any]bool // questions and collected resources
}

func newAsking(known compile.Inventory, cfg Config, out io.Writer, orders ...compile.Order) *asking {
	a := &asking{
		known: known, out: out, nodes: map[string]string{}, most: cfg.MaxQuestions * len(orders), left: cfg.MaxAnswerBytes, seen: map[any]bool{},
		answers: map[fleet.Digest]json.RawMessage{}, room: compile.MaxRecordedBytes,
	}
	for _, o := range orders {
		a.nodes[string(o.Node)] = o.Reach
	}
	return a
}

// reply is the answer to a question.
type reply struct {
	V     int             `json:"v"`
	Rows  json.RawMessage `json:"rows,omitempty"`
	Error string          `json:"error,omitempty"`
}

// answer writes the answer to m, or why there is none. An error ends the
// conversation.
func (a *asking) answer(ctx context.Context, m *message) error {
	rows, err := a.ask(ctx, m)
	switch {
	case a.count > a.most+patience:
		return &compile.Error{Cause: compile.CauseCode, Message: a.tooMany()}
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
	case fault.Of(err) != fault.Invalid:
		err = fault.Wrap(fault.Unavailable, err, "the inventory did not answer what the code asked (%s): %s", m.about(), fault.Detail(err))
		a.failed = err
	}
	line := reply{V: protocolVersion, Rows: rows}
	if err != nil {
		line = reply{V: protocolVersion, Error: fault.Detail(err)}
	}
	return a.write(line)
}

func (a *asking) write(line reply) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out) // it ends the line, and compacts the rows into it
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(line); err != nil {
		return err
	}
	_, err := a.out.Write(out.Bytes())
	return err
}

func (a *asking) tooMany() string {
	return fmt.Sprintf("the code asks more than %d questions of the inventory in one compile", a.most)
}

// ask has one question answered and takes note of it.
func (a *asking) ask(ctx context.Context, m *message) (rows json.RawMessage, err error) {
	q := compile.Question{Kind: compile.QuestionKind(m.Ask), Text: m.Query}
	if a.count++; a.count > a.most {
		err := fault.New(fault.Invalid, "%s", a.tooMany())
		a.note(q.RefusedFor(err))
		return nil, err
	}
	reach, compiled := a.nodes[m.Node]
	switch {
	case a.known == nil:
		return nil, fault.New(fault.Unavailable, "there is none")
	case !compiled:
		return nil, fault.New(fault.Invalid, "the catalog of node %.80q is not being compiled", m.Node)
	case q.Kind == compile.AskedCollect:
		q.Text = m.collector()
		rows, q.Rows, err = a.collect(ctx, m)
	case q.Kind == compile.AskedQuery:
		if rows, err = a.known.Query(ctx, compile.Query{Text: m.Query, MaxBytes: a.left, Reach: reach}); err == nil {
			q.Rows, err = countRows(rows)
		}
	default:
		return nil, fault.New(fault.Invalid, "there is no question %.80q", m.Ask)
	}
	if err == nil {
		if a.left -= int64(len(rows)); a.left < 0 {
			err = fault.New(fault.Invalid, "the answers of the inventory to one compile are larger than allowed; ask for less")
		}
	}
	switch {
	case fault.Is(err, fault.Invalid):
		a.note(q.RefusedFor(err)) // code can catch the refusal, and go on
		return nil, err
	case err != nil:
		return nil, err
	}
	q.Answer = fleet.DigestOf(rows)
	if a.note(q) {
		a.record(q.Answer, rows)
	}
	return rows, nil
}

// note adds a question to those that were asked, unless it is there.
func (a *asking) note(q compile.Question) bool {
	if a.seen[q] {
		return false
	}
	a.seen[q] = true
	a.asked = append(a.asked, q)
	return true
}

// record keeps an answer for those who compile the same order again, while there is room.
func (a *asking) record(digest fleet.Digest, rows json.RawMessage) {
	if _, known := a.answers[digest]; !known && len(rows) <= a.room {
		a.answers[digest] = rows
		a.room -= len(rows)
	}
}

// collect answers a collector. What it gives becomes part of the catalog, or the
// compile fails.
func (a *asking) collect(ctx context.Context, m *message) (json.RawMessage, int, error) {
	found, err := a.known.Exported(ctx, compile.Collector{Node: fleet.Certname(m.Node), Type: m.Type, Filter: m.Filter, MaxBytes: a.left, Reach: a.nodes[m.Node]})
	if err != nil {
		return nil, 0, err
	}
	for _, r := range found {
		c := compile.Collected{Type: r.Type, Title: r.Title, Exporter: r.Exporter}
		if !a.seen[c] {
			a.seen[c] = true
			a.collected = append(a.collected, c)
		}
	}
	rows, err := compile.EncodeExported(found)
	return rows, len(found), err
}

func countRows(rows json.RawMessage) (int, error) {
	var list []json.RawMessage
	err := json.Unmarshal(rows, &list)
	return len(list), err
}

// collector is the text of a collector's question.
func (m *message) collector() string {
	text, err := json.Marshal(struct {
		Type   string          `json:"type"`
		Filter json.RawMessage `json:"filter,omitempty"`
	}{m.Type, m.Filter})
	if err != nil { // it came from JSON
		return m.Type
	}
	return string(text)
}

// about names a question in an error.
func (m *message) about() string {
	if m.Ask == string(compile.AskedCollect) {
		return fmt.Sprintf("exported %.80s", m.Type)
	}
	return fmt.Sprintf("query %.200s", m.Query)
}
