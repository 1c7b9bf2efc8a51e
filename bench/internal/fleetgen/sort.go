package fleetgen

import (
	"cmp"
	"slices"
)

// Maps have no order; what goes out as a list must, or two runs of the same
// seed would send different bytes.

func sortRows(rows []any) {
	slices.SortFunc(rows, func(a, b any) int {
		return cmp.Compare(a.([]any)[0].(string), b.([]any)[0].(string))
	})
}

func sortMetrics(rows []object) {
	slices.SortFunc(rows, func(a, b object) int {
		return cmp.Or(cmp.Compare(a["category"].(string), b["category"].(string)), cmp.Compare(a["name"].(string), b["name"].(string)))
	})
}
