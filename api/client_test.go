package api

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
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
		"incomplete": {`{"items":[{"name":`, false, fault.Unavailable, "not understood"},
		"no JSON":    {`<html>`, false, fault.Unavailable, "not understood"},
		"no list":    {`{"items":3}`, false, fault.Unavailable, "not understood"},
		"no page":    {`<!doctype html>`, false, fault.Unavailable, "not understood: it is text/html"},
		"nothing":    {`null`, false, fault.Unavailable, "not understood"},
		"other JSON": {`{"status":"ok"}`, false, fault.Unavailable, "not understood"},
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

// An answer without content is one of operations that have none; who was promised something is not told that there is nothing.
func TestAnEmptyAnswer(t *testing.T) {
	t.Parallel()
	client := streaming(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if _, err := EnvironmentList.Call(t.Context(), client, Nothing{}); fault.Of(err) != fault.Unavailable || fault.Hint(err) == "" {
		t.Errorf("a list: %v", err)
	}
	if _, err := SessionClose.Call(t.Context(), client, Nothing{}); err != nil {
		t.Errorf("no answer is wanted: %v", err)
	}
	lost := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	err := client.FollowJob(ctx, "1", 0, func(JobEvent) error { return nil }, func(err error) { lost <- err; cancel() }, func() {})
	if err == nil || !strings.Contains((<-lost).Error(), "not understood") {
		t.Errorf("a stream: %v", err)
	}
}

// JSON has text only: other bytes would come to the server, and to nodes, as other ones.
func TestWhatIsNoText(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	client := streaming(t, func(w http.ResponseWriter, _ *http.Request) { asked.Add(1); _, _ = w.Write([]byte(`{"id":"1"}`)) })
	for command, text := range map[string]bool{"echo \xff": false, `echo \\` + "\xff": false, "echo \ufffd": true, `echo \ufffd`: true, "echo ü": true} {
		before := asked.Load()
		_, err := JobCommand.Call(t.Context(), client, JobCommandRequest{Command: command})
		if fault.Is(err, fault.Invalid) == text || (asked.Load() > before) != text {
			t.Errorf("%q: %v", command, err)
		}
	}
}
