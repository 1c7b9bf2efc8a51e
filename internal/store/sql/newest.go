package sql

import (
	"context"

	"github.com/tutti-project/tutti/internal/fleet"
)

// newest reads a page of what a statement without conditions selects.
func newest[T any, S ~string](ctx context.Context, s *base, scan func(scanner) (T, error), selection string, page fleet.Newest[S]) ([]T, error) {
	f := filter{dialect: s.dialect}
	if page.Before > 0 {
		f.add("id < ?", page.Before)
	}
	if page.Environment != "" {
		f.add("environment = ?", page.Environment)
	}
	oneOf(&f, "state", page.States)
	return collect(ctx, s.reads, scan, selection+f.where()+" ORDER BY id DESC LIMIT "+f.mark(page.Limit), f.args...)
}
