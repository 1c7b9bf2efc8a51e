package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// A server that dies within its answer was reached, and may have done what it was asked; nonsense is something else.
func TestAnAnswerThatEndsTooEarly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer string
		breaks bool
		kind   fault.Kind
		word   string
	}{
		"broken":     {`{"items":[{"name":`, true, fault.Unavailable, "look before you ask again"},
		"incomplete": {`{"items":[{"name":`, false, fault.Internal, "not understood"},
		"no JSON":    {`<html>`, false, fault.Internal, "not understood"},
		"no list":    {`{"items":3}`, false, fault.Internal, "not understood"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := streaming(t, func(w http.ResponseWriter, _ *http.Request) {
				_, _ = w.Write([]byte(c.answer))
				if c.breaks {
					_ = http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			})
			_, err := EnvironmentList.Call(t.Context(), client, Nothing{})
			if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.word) {
				t.Errorf("%v: %v", fault.Of(err), err)
			}
		})
	}
}
