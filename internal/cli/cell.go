package cli

import (
	"time"

	"github.com/tutti-project/tutti/internal/cli/print"
)

// Cells of tables whose value is missing in some rows: nothing is shown then, and not "never" or 0.

func someTime(t *time.Time) any {
	if t == nil {
		return nil
	}
	return *t
}

// dayOf is a time to come, of which people want the day.
func dayOf(t *time.Time) any {
	if t == nil {
		return nil
	}
	return print.Date(*t)
}

func someNumber[N int | int64](n N) any {
	if n == 0 {
		return nil
	}
	return n
}
