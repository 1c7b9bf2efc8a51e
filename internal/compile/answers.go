package compile

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// maxAnswerBytes bounds an answer that is only compared.
const maxAnswerBytes = 64 << 20

// EncodeExported is the answer to a collector as the code gets it: a JSON array.
func EncodeExported(found []Exported) (json.RawMessage, error) {
	if found == nil {
		found = []Exported{}
	}
	var rows bytes.Buffer
	encoder := json.NewEncoder(&rows)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(found)
	return bytes.TrimSpace(rows.Bytes()), err
}

// again asks the questions that a compilation asked, and says what the answers are
// now.
func again(ctx context.Context, inv Inventory, node fleet.Certname, asked []Question) ([]Question, error) {
	now := make([]Question, len(asked))
	for i, q := range asked {
		rows, count, err := answer(ctx, inv, node, q)
		if fault.Is(err, fault.Invalid) {
			now[i] = q.RefusedFor(err)
			continue
		}
		if err != nil {
			return nil, err
		}
		now[i] = Question{Kind: q.Kind, Text: q.Text, Rows: count, Answer: fleet.DigestOf(rows)}
	}
	return now, nil
}

func answer(ctx context.Context, inv Inventory, node fleet.Certname, q Question) (rows json.RawMessage, count int, err error) {
	if inv == nil {
		return nil, 0, fault.New(fault.Unavailable, "there is no inventory to ask")
	}
	if q.Kind == AskedQuery {
		if rows, err = inv.Query(ctx, Query{Text: q.Text, MaxBytes: maxAnswerBytes}); err != nil {
			return nil, 0, err
		}
		var list []json.RawMessage
		err = json.Unmarshal(rows, &list)
		return rows, len(list), err
	}
	var asked struct {
		Type   string          `json:"type"`
		Filter json.RawMessage `json:"filter"`
	}
	if err := json.Unmarshal([]byte(q.Text), &asked); err != nil {
		return nil, 0, fault.Wrap(fault.Internal, err, "a stored question cannot be read")
	}
	found, err := inv.Exported(ctx, Collector{Node: node, Type: asked.Type, Filter: asked.Filter, MaxBytes: maxAnswerBytes})
	if err != nil {
		return nil, 0, err
	}
	rows, err = EncodeExported(found)
	return rows, len(found), err
}
