package api

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
)

// streaming is a client of a server that answers job.events with serve.
func streaming(t *testing.T, serve http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(serve)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := NewClient(ClientConfig{Server: server.URL, CAPEM: ca})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func event(number int64) string {
	return fmt.Sprintf("id: %d\nevent: change\ndata: {\"number\":%d}\n\n", number, number)
}

// A server that breaks off after every second event, in the middle of the third, repeats
// one when it is asked again, and refuses connections now and then.
func TestFollowJobLeavesNothingOutAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	client := streaming(t, func(w http.ResponseWriter, r *http.Request) {
		after, err := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
		if err != nil {
			after = 0
		}
		if calls.Add(1)%3 == 0 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = fmt.Fprint(w, ": hello\n\n")
		for n := max(1, after); n <= after+2 && n <= 7; n++ { // the last one again
			_, _ = fmt.Fprint(w, event(n))
		}
		if after >= 7 {
			_, _ = fmt.Fprint(w, "event: end\ndata: {}\n\n")
			return
		}
		_, _ = fmt.Fprint(w, "id: 99\nevent: change\nda")
	})
	var got []int64
	lost, back := 0, 0
	err := client.FollowJob(t.Context(), "12", 0, func(e JobEvent) error {
		got = append(got, e.Number)
		return nil
	}, func(error) { lost++ }, func() { back++ })
	if want := []int64{1, 2, 3, 4, 5, 6, 7}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if lost != back || lost == 0 {
		t.Errorf("it was told %d times that the connection is lost, and %d times that it is back", lost, back)
	}
}

func TestFollowJobEndsWhenAskingAgainIsOfNoUse(t *testing.T) {
	t.Parallel()
	for status, kind := range map[int]string{http.StatusNotFound: "not_found", http.StatusForbidden: "denied", http.StatusBadRequest: "invalid"} {
		client := streaming(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"kind":%q,"message":"no job"}`, kind)
		})
		err := client.FollowJob(t.Context(), "12", 0, nil, func(error) { t.Error("it asks again") }, func() {})
		if fault.Of(err) != fault.ParseKind(kind) || err.Error() != "no job" {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestFollowJobReturnsTheErrorOfItsCaller(t *testing.T) {
	t.Parallel()
	client := streaming(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, event(1)+event(2)) })
	enough := errors.New("enough")
	err := client.FollowJob(t.Context(), "12", 0, func(JobEvent) error { return enough }, func(error) { t.Error("it asks again") }, func() {})
	if !errors.Is(err, enough) {
		t.Error(err)
	}
}

func FuzzReadEvents(f *testing.F) {
	f.Add(event(1) + ": comment\n\nevent: end\ndata: {}\n\n")
	f.Add("data: a\ndata: b\n\n\n\nid:\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		_ = readEvents(strings.NewReader(text), maxEvent, func(kind, data string) error {
			if strings.Contains(kind, "\n") {
				t.Errorf("a kind of several lines: %q", kind)
			}
			_ = data
			return nil
		})
	})
}
