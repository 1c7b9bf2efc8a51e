package rest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// newestRequest asks for what was made in environments, the newest first: api.PreviewListRequest and api.ReleaseListRequest.
type newestRequest struct {
	Environment string
	State       string
	After       string
	Limit       int
}

// newestOf reads a request; states are those that there are.
func newestOf[S ~string](request newestRequest, states []S) (page fleet.Newest[S], err error) {
	paging, err := pageOf("", request.Limit)
	if err != nil {
		return page, err
	}
	page.Limit = paging.Limit
	if request.After != "" {
		if page.Before, err = numberOf("after", request.After); err != nil {
			return page, err
		}
	}
	if request.Environment != "" {
		if page.Environment, err = fleet.ParseEnvironment(request.Environment); err != nil {
			return page, err
		}
	}
	if request.State != "" {
		state, err := stateOf(request.State, states)
		if err != nil {
			return page, err
		}
		page.States = []S{state}
	}
	return page, nil
}

// stateOf reads one of states.
func stateOf[S ~string](text string, states []S) (S, error) {
	if !slices.Contains(states, S(text)) {
		return "", fault.New(fault.Invalid, "state must be %s, not %.40q", orList(states), text)
	}
	return S(text), nil
}

// numberOf reads the number that names something.
func numberOf(field, text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || number < 0 {
		return 0, fault.New(fault.Invalid, "%s must be a number, not %.40q", field, text)
	}
	return number, nil
}

// orList is words as "a, b or c".
func orList[T ~string](words []T) string {
	var text strings.Builder
	for i, word := range words {
		switch {
		case i > 0 && i == len(words)-1:
			text.WriteString(" or ")
		case i > 0:
			text.WriteString(", ")
		}
		text.WriteString(string(word))
	}
	return text.String()
}
