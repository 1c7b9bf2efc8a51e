package front

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// A node that sends its report a byte at a time is given up, however long it goes on.
func TestATrickledReportIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		conn := dial(t, func(w http.ResponseWriter, r *http.Request) {
			NoteActor(r.Context(), fleet.Actor{Kind: fleet.NodeActor, Name: "web-1"})
			_, err := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusBadRequest)
			ended <- err
		}, slog.New(slog.DiscardHandler))
		_, _ = io.WriteString(conn, "PUT /puppet/v3/report/web-1 HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n")
		start := time.Now()
		var trickle sync.WaitGroup
		trickle.Go(func() {
			tick := time.NewTicker(time.Second) // long before the next piece is due
			defer tick.Stop()
			for range tick.C {
				if _, err := io.WriteString(conn, "x"); err != nil {
					return
				}
			}
		})
		defer trickle.Wait()
		defer func() { _ = conn.Close() }()
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if err := <-ended; !errors.Is(err, os.ErrDeadlineExceeded) || answer.StatusCode != http.StatusRequestTimeout {
			t.Errorf("got %v and %s", err, answer.Status)
		}
		if took := time.Since(start); took < testBodyTime || took > testBodyTime+2*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAFullBudgetSaysSo(t *testing.T) {
	t.Parallel()
	c := config(slog.New(slog.DiscardHandler))
	c.Bodies = NewBudget(100)
	c.Bodies.Patience = 0
	front := New(c, Route{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		NoteActor(r.Context(), fleet.Actor{Kind: fleet.UserActor, Name: "ann"})
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "the body could not be read", http.StatusBadRequest)
		}
	}), Bytes: 1 << 20})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/nodes", strings.NewReader(strings.Repeat("x", 101)))
	w := httptest.NewRecorder()
	front.ServeHTTP(w, r)
	var told api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil {
		t.Fatal(err)
	}
	if w.Code != http.StatusServiceUnavailable || told.Kind != "unavailable" || !strings.Contains(told.Message, "body_budget_bytes") ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("got %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestBrowsersAreToldWhatTheyMayNotGuess(t *testing.T) {
	t.Parallel()
	front := New(config(slog.New(slog.DiscardHandler)), Bodiless(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	for path, want := range map[string][2]string{
		"/api/v1/nodes": {"nosniff", "max-age=31536000"}, "/status/v1/simple": {"nosniff", "max-age=31536000"}, "/pdb/query/v4": {"nosniff", "max-age=31536000"},
		"/puppet/v3/catalog/web-1": {}, "/node/v1/catalog": {},
	} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, path, nil))
		if got := [2]string{w.Header().Get("X-Content-Type-Options"), w.Header().Get("Strict-Transport-Security")}; got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// However large the budget, a thousand half-open logins fit into the strangers' part, and no more than that part is theirs.
func TestStrangersHaveASmallPart(t *testing.T) {
	t.Parallel()
	b := NewBudget(1 << 40)
	b.Patience = 0
	if err := b.take(1000*int64(api.MaxLogin+1), true); err != nil {
		t.Error(err)
	}
	if err := b.take(strangersMost, true); !fault.Is(err, fault.Unavailable) {
		t.Errorf("strangers had more than their part: %v", err)
	}
	if err := b.take(1<<39, false); err != nil {
		t.Errorf("what is left is not for the others: %v", err)
	}
}
