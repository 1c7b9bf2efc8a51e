package rest_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/protocol/rest"
)

// serving is the bench behind a real connection; the caller is who the header says.
func serving(t *testing.T, b bench) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	return server
}

// followed reads a stream of events from a place.
func followed(t *testing.T, server *httptest.Server, after string, header http.Header) *bufio.Scanner {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+api.Prefix+"/jobs/1/events?after="+after, nil)
	check(t, err)
	r.Header = header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	r.Header.Set("Authorization", "Bearer "+secret("operator"))
	answer, err := server.Client().Do(r)
	check(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%d %v", answer.StatusCode, answer.Header)
	}
	return bufio.NewScanner(answer.Body)
}

// seenUntil reads what events tell, until a line begins with a word or the stream ends.
func seenUntil(t *testing.T, lines *bufio.Scanner, until string) (seen []string) {
	t.Helper()
	for lines.Scan() {
		line := lines.Text()
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			var e api.JobEvent
			check(t, json.Unmarshal([]byte(data), &e))
			switch {
			case e.Run != nil:
				seen = append(seen, fmt.Sprintf("%d %s %s", e.Number, e.Run.Node, e.Run.State))
			case e.Job != nil:
				seen = append(seen, fmt.Sprintf("%d job %s", e.Number, e.Job.State))
			}
		}
		if strings.HasPrefix(line, until) {
			return seen
		}
	}
	return seen
}

func TestTheStreamOfAJob(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	server := serving(t, b)
	early := followed(t, server, "", nil)
	seenUntil(t, early, ": follow")
	end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
	whole := seenUntil(t, early, "event: end")
	n := len(whole)
	if n < 4 || !strings.HasSuffix(whole[n-1], "job finished") {
		t.Fatalf("events: %q", whole)
	}
	for i := range n { // resumed anywhere, nothing is missing and nothing twice
		number, _, _ := strings.Cut(whole[i], " ")
		rest := seenUntil(t, followed(t, server, "0", http.Header{"Last-Event-Id": {number}}), "event: end")
		if diff := cmp.Diff(append([]string(nil), whole[i+1:]...), rest); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", number, diff)
		}
	}
}

// A summary tells the job with its counts as often as they change, but at most four times a second, and no run.
func TestTheSummaryOfAJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := jobBench(t)
		_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
		runs, err := b.records.Runs(t.Context(), 1, job.RunPage{Limit: 1000})
		check(t, err)
		begun := time.Now()
		ordered := make(chan struct{})
		go func() { // some changes at once, again and again
			defer close(ordered)
			<-time.After(5 * time.Millisecond)
			for _, what := range []job.What{job.WasSent, job.Accepted} {
				for _, r := range runs {
					e := job.Event{Run: r.ID, Node: r.Node, What: what, At: time.Now(), Due: begun.Add(time.Hour)}
					if _, err := b.records.Apply(t.Context(), []job.Event{e}); err != nil {
						t.Error(err)
					}
					<-time.After(10 * time.Millisecond)
				}
				<-time.After(300 * time.Millisecond)
			}
			end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
		}()
		text := b.call(caller(t, "operator"), http.MethodGet, api.Prefix+"/jobs/1/events?summary=true", nil).Body.String()
		<-ordered
		var told []string
		for line := range strings.Lines(text) {
			if number, ok := strings.CutPrefix(line, "id: "); ok {
				told = append(told, strings.TrimSpace(number))
			}
		}
		if want := []string{"4", "7", "11"}; !slices.Equal(told, want) { // three changes, three more, and the end
			t.Errorf("told are the changes %v, not %v", told, want)
		}
		if strings.Contains(text, `"run"`) || !strings.HasSuffix(text, "event: end\ndata: {}\n\n") {
			t.Errorf("the stream:\n%s", text)
		}
		var last api.JobEvent
		data := text[strings.LastIndex(text, `data: {"number"`)+len("data: "):]
		check(t, json.NewDecoder(strings.NewReader(data)).Decode(&last))
		if last.Job == nil || last.Job.State != "finished" || last.Job.Counts["succeeded"] != len(runs) {
			t.Errorf("it ends with %+v", last.Job)
		}
	})
}

// A server that stops ends its streams, and says nothing that looks like the end of the job.
func TestAStoppingServerEndsItsStreams(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
	lines := followed(t, serving(t, b), "", nil)
	seenUntil(t, lines, ": follow")
	close(b.stop)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "event: end") {
			t.Error("the job is said to be over")
		}
	}
}

// Who loses the right to see a job does not see it to its end. Meanwhile the stream shows that it is alive.
func TestAStreamEndsWithTheRightToSeeIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := jobBench(t)
		_, _, _ = b.order(t, "admin", "/jobs/command", `{"targets":{"all":true},"command":"id"}`)
		time.AfterFunc(90*time.Second, func() {
			if _, err := b.store.RevokeTokens(t.Context(), "operator", "", false); err != nil {
				t.Error(err)
			}
		})
		begun := time.Now()
		text := b.call(caller(t, "operator"), http.MethodGet, api.Prefix+"/jobs/1/events", nil).Body.String()
		if took := time.Since(begun); took < 90*time.Second || took > 91*time.Second {
			t.Errorf("the stream ended after %s", took)
		}
		if beats := strings.Count(text, ": still there"); beats < 5 || strings.Contains(text, "event:") {
			t.Errorf("%d heartbeats:\n%s", beats, text)
		}
	})
}

// Nodes get the files of their jobs, and no others.
func TestFilesOfJobs(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	digest, other := b.upload(t, "#!/bin/sh\necho\n"), b.upload(t, "not sent")
	if _, started, problem := b.order(t, "admin", "/jobs/script", `{"targets":{"nodes":["web-1"]},"name":"x.sh","digest":"`+digest+`"}`); started.Job == nil {
		t.Fatal(problem)
	}
	route := b.handler.(*rest.Handler).JobFileRoute()
	node := func(name string) fleet.Actor { return fleet.Actor{Kind: fleet.NodeActor, Name: name} }
	for name, c := range map[string]struct {
		actor                  fleet.Actor
		method, digest, ranged string
		status                 int
		want                   string
	}{
		"its file":     {node("web-1"), "GET", digest, "", 200, "#!/bin/sh\necho\n"},
		"a part":       {node("web-1"), "GET", digest, "bytes=2-4", 206, "/bi"},
		"head":         {node("web-1"), "HEAD", digest, "", 200, ""},
		"another node": {node("web-2"), "GET", digest, "", 403, "no job sends the file"},
		"another file": {node("web-1"), "GET", other, "", 403, "no job sends the file"},
		"no digest":    {node("web-1"), "GET", "x", "", 400, "digest"},
		"a user":       {fleet.Actor{Kind: fleet.UserActor, Name: "web-1"}, "GET", digest, "", 403, "show the node's certificate"},
		"a stranger":   {fleet.Actor{Kind: fleet.Anonymous}, "GET", digest, "", 401, "show the node's certificate"},
		"not to write": {node("web-1"), "PUT", digest, "", 405, ""},
	} {
		r := httptest.NewRequest(c.method, rest.JobFilePath+c.digest+"/m/tasks/x.sh", bytes.NewReader(nil))
		r = r.WithContext(fleet.WithActor(r.Context(), c.actor))
		if c.ranged != "" {
			r.Header.Set("Range", c.ranged)
		}
		w := httptest.NewRecorder()
		route.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || c.status == 206 && w.Body.String() != c.want {
			t.Errorf("%s: %d %q, want %d %q", name, w.Code, w.Body, c.status, c.want)
		}
	}
	end(t, b.records, 1, func(fleet.Certname) (int, string) { return 0, "" })
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, rest.JobFilePath+digest+"/x.sh", nil)
	route.ServeHTTP(w, r.WithContext(fleet.WithActor(r.Context(), node("web-1"))))
	if w.Code != http.StatusOK {
		t.Errorf("a moment after the run: %d %s", w.Code, w.Body)
	}
}

// An upload that breaks off, or is too long, is the sender's mistake.
func TestUploadsThatBreakOff(t *testing.T) {
	t.Parallel()
	b := jobBench(t)
	r := httptest.NewRequest(http.MethodPost, api.Prefix+"/job-files", &brokenBody{})
	r.Header.Set("Authorization", "Bearer "+secret("commander"))
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "the upload broke off") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

type brokenBody struct{ read bool }

func (b *brokenBody) Read(p []byte) (int, error) {
	if b.read {
		return 0, fmt.Errorf("connection reset")
	}
	b.read = true
	return copy(p, "#!/bin"), nil
}
