package httpapi

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/pql"
)

// Bounds of an answer, which is held in memory whole.
const (
	maxQueryRows  = 100_000
	maxQueryBytes = 256 << 20
)

func (h *Handler) runQuery(ctx context.Context, request api.QueryRequest) (api.QueryAnswer, error) {
	answer := api.QueryAnswer{Rows: []json.RawMessage{}}
	q, err := pql.Read(request.Query)
	if err != nil {
		return answer, err
	}
	checked, err := pql.Check(q)
	if err != nil {
		return answer, err
	}
	answer.Columns = q.Names()
	question := inventory.Question{Query: checked, MaxRows: maxQueryRows}
	if request.Total {
		question.Counted = func(total int64) { answer.Total = &total }
	}
	size := 0
	err = h.Inventory.Ask(ctx, question, func(row json.RawMessage) error {
		if size += len(row); size > maxQueryBytes {
			return fault.New(fault.Invalid, "the answer is larger than %d MB; ask for fewer columns, or use limit and offset", maxQueryBytes>>20)
		}
		answer.Rows = append(answer.Rows, slices.Clone(row))
		return nil
	})
	return answer, err
}
