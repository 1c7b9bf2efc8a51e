package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/event/eventtest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// happen stores events of a node's run.
func (b bench) happen(t *testing.T, node, run string, events ...pxp.RunEvent) {
	t.Helper()
	_, err := b.happened.TakeEvents(t.Context(), []event.Batch{{Node: fleet.Certname(node), Run: run, Events: events}}, time.Now())
	check(t, err)
}

// streaming opens the stream of events.
func streaming(t *testing.T, server *httptest.Server, user, query, last string) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+api.Prefix+"/events?"+query, nil)
	check(t, err)
	r.Header.Set("Authorization", "Bearer "+secret(user))
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := server.Client().Do(r)
	check(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	return bufio.NewScanner(answer.Body)
}

// next reads events up to a number of them; what else is said stands between them.
func next(t *testing.T, lines *bufio.Scanner, count int) (seen []string) {
	t.Helper()
	kind := ""
	for count > 0 && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kind = text
		}
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case !ok || kind == api.EventPosition:
		case kind != api.EventHappened:
			seen = append(seen, kind+" "+data)
		default:
			var e api.Event
			check(t, json.Unmarshal([]byte(data), &e))
			seen = append(seen, fmt.Sprintf("%d %s %s %s%s", e.Number, e.Node, e.Kind, e.Status, e.Title))
			count--
		}
	}
	return seen
}

func TestTheStreamOfEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t) // has 2 events of web-1
	server := serving(t, b)
	live := streaming(t, server, "viewer", "", "")
	if !live.Scan() || live.Text() != "id: 2" {
		t.Errorf("a stream from now on begins at %s", live.Text())
	}
	b.happen(t, "web-1", "r", eventtest.Begin(1), eventtest.Resource(2, event.Success, "File", "/a"))
	b.happen(t, "db-1", "q", eventtest.Resource(1, event.Success, "File", "/a"), eventtest.Begin(1), eventtest.Resource(2, event.Failure, "Service", "ntp"))
	want := []string{"3 web-1 begin ", "4 web-1 resource success/a", "5 db-1 resource success/a", "6 db-1 resource failurentp"}
	if diff := cmp.Diff(want, next(t, live, 4)); diff != "" {
		t.Errorf("live (-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		user, query, last string
		want              []string
	}{
		"again from a number": {"viewer", "after=4", "", want[2:]},
		"the header wins":     {"viewer", "after=0", "5", want[3:]},
		"by node":             {"viewer", "after=2&node=db-1", "", want[2:]},
		"by condition":        {"viewer", "after=2&where=facts.role%20%3D%20%22db%22", "", want[:2]}, // whatever it says, the fake knows web-1 only
		"by status":           {"viewer", "after=0&status=failure,noop", "", want[3:]},
		"by type and kind":    {"viewer", "after=0&type=File&kind=resource", "", want[1:3]},
		"by time":             {"viewer", "since=2020-01-01T00:00:00Z&type=Service", "", want[3:]},
		"what one may see":    {"web", "after=2", "", want},
	} {
		if diff := cmp.Diff(c.want, next(t, streaming(t, server, c.user, c.query, c.last), len(c.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := b.happened.PruneEvents(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.happen(t, "web-1", "r", eventtest.Resource(3, event.Success, "File", "/c"))
	if diff := cmp.Diff([]string{`pruned {"first":7,"last":7}`, "7 web-1 resource success/c"},
		next(t, streaming(t, server, "viewer", "after=3", ""), 1)); diff != "" {
		t.Errorf("what is not kept any more (-want +got):\n%s", diff)
	}
	close(b.stop)
	defer time.AfterFunc(5*time.Minute, server.CloseClientConnections).Stop()
	for live.Scan() { // what else was said
	}
	if err := live.Err(); err != nil {
		t.Errorf("the stream goes on though the server stops: %v", err)
	}
}

func TestTheHistoryOfEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.seed(t, "db-1", "other")
	for i := range 5 {
		b.happen(t, "web-1", fmt.Sprintf("r%d", i), eventtest.Begin(1), eventtest.Resource(2, event.Success, "File", fmt.Sprintf("/%d", i)))
	}
	list := func(user, query string) (titles string, after string) {
		var answer api.List[api.Event]
		w := b.call(caller(t, user), "GET", api.Prefix+"/events/history?"+query, nil)
		check(t, json.Unmarshal(w.Body.Bytes(), &answer))
		for _, e := range answer.Items {
			titles += e.Title + " "
		}
		return titles, answer.Next
	}
	first, after := list("viewer", "type=File&limit=3")
	second, end := list("viewer", "type=File&limit=3&after="+after)
	if first != "/4 /3 /2 " || second != "/1 /0 " || end != "" {
		t.Errorf("pages %q, then %q behind %s, then %q", first, second, after, end)
	}
	for query, want := range map[string]string{
		"status=gone": "status", "kind=gone": "kind", "after=x": "after", "since=yesterday": "since", "job=x": "job", "node=..": "certname", "limit=5000": "limit",
		"environment=A-b": "environment",
	} {
		w := b.call(caller(t, "viewer"), "GET", api.Prefix+"/events/history?"+query, nil)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
