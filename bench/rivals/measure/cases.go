package measure

import (
	"context"
	"time"
)

// InTurn measures cases one after the other. What was measured before one failed is returned with its error.
func InTurn(ctx context.Context, cases ...func(context.Context) (Row, error)) (rows []Row, err error) {
	for _, work := range cases {
		row, err := work(ctx)
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Settle waits for d, so that what was just done does not count with what is measured next.
func Settle(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
