package rest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/checkin/near"
	"github.com/tutti-project/tutti/internal/fault"
)

// shelf is SetAside of three pieces.
type shelf struct{ again, forgotten []uint64 }

func (*shelf) Refused(after uint64, n int) (some []near.Refused, err error) {
	for _, number := range []uint64{3, 7, 8} {
		if number > after && len(some) < n {
			p := near.Piece{Number: number, Kind: "riddle", Node: "web-1", At: time.Unix(1, 0)}
			some = append(some, near.Refused{Piece: p, Why: "it is odd", Bytes: 12})
		}
	}
	return some, nil
}

func (s *shelf) Again(numbers []uint64) (int, error) {
	s.again = append(s.again, numbers...)
	return len(numbers), nil
}

func (s *shelf) Forget(numbers []uint64) (int, error) {
	s.forgotten = append(s.forgotten, numbers...)
	return len(numbers), nil
}

func TestWhatIsSetAside(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	h := &asides{s}
	var numbers []string
	for after := ""; ; {
		page, err := h.list(t.Context(), api.PageRequest{After: after, Limit: 2})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			numbers = append(numbers, p.Number+" "+p.Reason)
		}
		if after = page.Next; after == "" {
			break
		}
	}
	if got := strings.Join(numbers, ", "); got != "3 it is odd, 7 it is odd, 8 it is odd" {
		t.Errorf("listed: %s", got)
	}
	shown, err := h.show(t.Context(), api.SetAsideRequest{Number: "7"})
	if err != nil || shown.Number != "7" || shown.Problem == "" || shown.Content != nil {
		t.Errorf("what cannot be read: %+v, %v", shown, err)
	}
	if _, err := h.show(t.Context(), api.SetAsideRequest{Number: "4"}); !fault.Is(err, fault.NotFound) || fault.Hint(err) == "" {
		t.Errorf("what is not there: %v", err)
	}
	for _, text := range []string{"0", "-1", "x", "18446744073709551616"} {
		if _, err := h.show(t.Context(), api.SetAsideRequest{Number: text}); !fault.Is(err, fault.Invalid) {
			t.Errorf("number %s: %v", text, err)
		}
	}
	bound := map[string]func(context.Context, api.SetAsideNumbers) (api.SetAsideCount, error){
		"again":  func(_ context.Context, r api.SetAsideNumbers) (api.SetAsideCount, error) { return settle(r, s.Again) },
		"forget": func(_ context.Context, r api.SetAsideNumbers) (api.SetAsideCount, error) { return settle(r, s.Forget) },
	}
	for name, call := range bound {
		if got, err := call(t.Context(), api.SetAsideNumbers{Numbers: []string{"7", "8"}}); got.Count != 2 || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for _, wrong := range [][]string{nil, {"x"}, slices.Repeat([]string{"1"}, maxNumbers+1)} {
			if _, err := call(t.Context(), api.SetAsideNumbers{Numbers: wrong}); !fault.Is(err, fault.Invalid) {
				t.Errorf("%s of %d numbers: %v", name, len(wrong), err)
			}
		}
	}
	if want := []uint64{7, 8}; !slices.Equal(s.again, want) || !slices.Equal(s.forgotten, want) {
		t.Errorf("again %v, forgotten %v", s.again, s.forgotten)
	}
}

// The audit log says which were deleted.
func TestTheRecordOfWhatIsSettled(t *testing.T) {
	t.Parallel()
	if got := objectText(api.SetAsideNumbers{Numbers: []string{"7", "8"}}); got != "7 8" {
		t.Errorf("two are recorded as %q", got)
	}
	if got := objectText(api.SetAsideNumbers{Numbers: slices.Repeat([]string{"1"}, mostOfSeveral+3)}); got != strings.Repeat("1 ", mostOfSeveral)+"and 3 more" {
		t.Errorf("many are recorded as %q", got)
	}
}

func TestNothingIsSetAsideElsewhere(t *testing.T) {
	t.Parallel()
	page, err := (&asides{none{}}).list(t.Context(), api.PageRequest{})
	if err != nil || len(page.Items) > 0 || page.Next != "" {
		t.Errorf("%+v, %v", page, err)
	}
}
