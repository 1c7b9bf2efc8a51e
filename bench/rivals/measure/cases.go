package measure

import (
	"context"
	"fmt"
	"time"
)

// Ours is a row of Tutti.
func Ours(name string, figures map[string]float64) Row {
	return Row{Server: "tutti", Case: name, Figures: figures}
}

// Watched does the work of a case and adds to its figures the cores that everybody took meanwhile.
func Watched(ctx context.Context, name string, sample func() (Usage, error),
	work func() (map[string]float64, error),
) (figures map[string]float64, span Span, err error) {
	watch, err := Start(ctx, sample)
	if err != nil {
		return nil, span, err
	}
	figures, err = work()
	if span, err = watch.Stop(err); err != nil {
		return nil, span, fmt.Errorf("%s: %w", name, err)
	}
	figures["server_cores"], figures["client_cores"], figures["others_cores"] = span.Cores(span.Server), span.Cores(span.Clients), span.Cores(span.Others)
	return figures, span, nil
}

// Below notes of a case whether a figure is below its aim, which text names; nothing where the case was not measured.
func Below(rows []Row, name, key string, most float64, text string) (notes []string) {
	for _, row := range rows {
		if got, there := row.Figures[key]; there && row.Case == name {
			notes = append(notes, fmt.Sprintf("aim: %s: %.3g; met: %t", text, got, got < most))
		}
	}
	return notes
}

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
