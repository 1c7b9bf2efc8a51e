package node_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/gzip"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/factqueue"
	"github.com/tutti-project/tutti/internal/facts/factqueue/factqueuetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/protocol/node"
	"github.com/tutti-project/tutti/internal/rate"
)

type watched []string

func (w watched) Watched(context.Context, fleet.Certname) ([]string, error) { return w, nil }

// factsBench is a handler that takes facts of at most 1000 bytes.
func factsBench(tb testing.TB) http.Handler {
	tb.Helper()
	f := factqueuetest.NewFake()
	service, err := factqueue.New(tb.Context(), factqueue.Parts{Store: f, Inventory: f, Watch: watched{"/os/family"}}, factqueue.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	return node.New(node.Config{
		Facts: service, MaxFactsBytes: 1000, RequestID: func(context.Context) string { return "req-1" }, Log: slog.New(slog.DiscardHandler),
	})
}

// submission is one request about facts.
type submission struct {
	method, body string
	coding, mime string
	actor        fleet.Actor
}

func (s submission) to(tb testing.TB, h http.Handler) (int, string) {
	tb.Helper()
	r := httptest.NewRequestWithContext(tb.Context(), s.method, node.Prefix+"/facts", strings.NewReader(s.body))
	if s.mime == "" {
		s.mime = "application/json"
	}
	if s.actor.Kind == "" {
		s.actor = fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"}
	}
	r.Header.Set("Content-Type", s.mime)
	r.Header.Set("Content-Encoding", s.coding)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), s.actor)))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		tb.Fatal(err)
	}
	return w.Code, string(body)
}

func zipped(tb testing.TB, text string) string {
	tb.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := io.WriteString(w, text); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return packed.String()
}

func TestANodeSubmitsItsFacts(t *testing.T) {
	t.Parallel()
	h := factsBench(t)
	one, two := fleet.DigestOf([]byte(`{"a":1,"os":{"family":"Debian"}}`)), fleet.DigestOf([]byte(`{"a":2,"os":{"family":"Debian"}}`))
	list := factqueue.DigestOfPaths([]string{"/os/family"})
	for _, step := range []struct {
		name string
		submission
		status int
		want   facts.State
	}{
		{"nothing is known", submission{method: "GET"}, 404, facts.State{}},
		{"a difference of nothing", submission{method: "PATCH", body: `{"number":1,"base":"` + string(one) + `"}`}, 409, facts.State{}},
		{
			"all facts",
			submission{method: "PUT", body: zipped(t, `{"number":5,"values":{"os":{"family":"Debian"},"a":1}}`), coding: "gzip"},
			200,
			facts.State{Number: 5, Digest: one, Seq: 1, Changed: 2, WatchedDigest: list, Watched: []string{"/os/family"}},
		},
		{
			"a difference",
			submission{method: "PATCH", body: `{"number":6,"base":"` + string(one) + `","changed":{"/a":2},"watched":"` + string(list) + `"}`},
			200,
			facts.State{Number: 6, Digest: two, Seq: 2, Changed: 1, WatchedDigest: list},
		},
		{"the wrong base", submission{method: "PATCH", body: `{"number":7,"base":"` + string(one) + `","changed":{"/a":3}}`}, 409, facts.State{
			Number: 6, Digest: two,
		}},
		{"a low number", submission{method: "PUT", body: `{"number":4,"values":{}}`}, 409, facts.State{Number: 6, Digest: two}},
		{"what is known", submission{method: "GET"}, 200, facts.State{Number: 6, Digest: two, Seq: 2, WatchedDigest: list, Watched: []string{"/os/family"}}},
	} {
		status, body := step.to(t, h)
		var got facts.State
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != step.status {
			t.Errorf("%s: status %d: %s", step.name, status, body)
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func TestSubmissionsThatAreRefused(t *testing.T) {
	t.Parallel()
	h := factsBench(t)
	large := `{"number":1,"values":{"a":"` + strings.Repeat("x", 2000) + `"}}`
	for name, c := range map[string]struct {
		submission
		status int
		want   string
	}{
		"a stranger":      {submission{method: "PUT", actor: fleet.Actor{Kind: fleet.Anonymous}}, 403, "show the node's certificate"},
		"a user":          {submission{method: "PUT", actor: fleet.Actor{Kind: fleet.UserActor, Name: "admin"}}, 403, "show the node's certificate"},
		"another type":    {submission{method: "PUT", mime: "text/plain"}, 400, "Content-Type must be application/json"},
		"another coding":  {submission{method: "PUT", coding: "br"}, 400, "Content-Encoding must be gzip"},
		"no gzip":         {submission{method: "PUT", coding: "gzip", body: "not at all gzip"}, 400, "no well-formed gzip"},
		"half a gzip":     {submission{method: "PUT", coding: "gzip", body: zipped(t, `{"number":1,"values":{}}`)[:20]}, 400, "cut off"},
		"too large":       {submission{method: "PUT", body: large}, 400, "larger than the 1000 bytes"},
		"a bomb":          {submission{method: "PUT", coding: "gzip", body: zipped(t, large)}, 400, "larger than the 1000 bytes"},
		"no JSON":         {submission{method: "PUT", body: "x"}, 400, "'{'"},
		"a wrong field":   {submission{method: "PATCH", body: `{"number":1,"base":1}`}, 400, "base"},
		"too deep":        {submission{method: "PUT", body: `{"number":1,"values":` + strings.Repeat(`{"a":`, 110) + "1"}, 400, "nests deeper than 100"},
		"another's facts": {submission{method: "DELETE"}, 404, "nodes cannot ask"},
	} {
		if status, body := c.to(t, h); status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s: status %d: %s, want %d and %s", name, status, body, c.status, c.want)
		}
	}
	if status, body := (submission{method: "GET"}).to(t, h); status != http.StatusNotFound {
		t.Errorf("after them: %d %s", status, body)
	}
}

func TestSubmissionsAreLimited(t *testing.T) {
	t.Parallel()
	h := factsBench(t).(*node.Handler)
	h.FactsRate = rate.Per(time.Minute, 1, "%s sends facts more than 1 times a minute (setting facts_per_minute)")
	put := submission{method: "PUT", body: `{"number":5,"values":{"a":1}}`}
	if status, body := put.to(t, h); status != 200 {
		t.Fatalf("the first: %d %s", status, body)
	}
	status, body := put.to(t, h)
	if status != 429 || !strings.Contains(body, `"retry_after":60`) || !strings.Contains(body, "setting facts_per_minute") {
		t.Errorf("the second: %d %s", status, body)
	}
}
