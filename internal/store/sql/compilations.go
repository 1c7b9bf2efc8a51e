package sql

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
)

// idsNamed is ids as the argument of idList.
func idsNamed(ids []int64) (string, error) {
	list, err := json.Marshal(append([]int64{}, ids...))
	return string(list), err
}

// idList is the ids of a query's first argument, which idsNamed made.
func (s *Queue) idList() string {
	return "(SELECT CAST(value AS BIGINT) FROM " + strings.ReplaceAll(s.dialect.listed, "?", "$1") + " AS named)"
}

// Compilations reads those of the named rows that are there, by ID; of done ones also what they read but
// for source files, as far as that is known.
func (s *Queue) Compilations(ctx context.Context, ids []int64) (rows []compile.Compilation, err error) {
	list, err := idsNamed(ids)
	if err != nil {
		return nil, explain(err, "read compilations")
	}
	err = s.snapshot(ctx, func(ctx context.Context, q querier) error {
		rows, err = collect(ctx, q, scanCompilation, "SELECT "+compilationColumns+" FROM compilations WHERE id IN "+s.idList()+" ORDER BY id", list)
		if err != nil {
			return err
		}
		for i := range rows {
			if rows[i].State != compile.Done {
				continue
			}
			if rows[i].Inputs, err = s.valuesOf(ctx, q, rows[i].ID); err != nil {
				return err
			}
		}
		return nil
	})
	return rows, explain(err, "read compilations")
}

// valuesOf is inputsOf without source files; nil if nothing is known.
func (s *Queue) valuesOf(ctx context.Context, q querier, id int64) (*compile.InputSet, error) {
	packed, err := one[[]byte](q.row(ctx, "SELECT document FROM compilation_inputs WHERE compilation = $1", id))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil //nolint:nilnil // that is the answer
	}
	if err != nil {
		return nil, err
	}
	stored, err := s.inputs.unpackInputs(packed)
	return &stored.InputSet, err
}
