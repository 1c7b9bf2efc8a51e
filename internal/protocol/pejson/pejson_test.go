package pejson_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/protocol/pejson"
)

func service() *pejson.Service {
	return pejson.New(pejson.Config{
		Prefix:   "puppetlabs.thing",
		Statuses: map[string]int{"bad-request": 400, "forbidden": 403, "clash": 409, "broken": 500},
		Words: map[fault.Kind]string{
			fault.Internal: "broken", fault.Invalid: "bad-request", fault.NotFound: pejson.NotFound, fault.Denied: "forbidden", fault.Conflict: "clash",
		},
		RequestID: func(context.Context) string { return "r-1" }, Log: slog.New(slog.DiscardHandler),
	})
}

// Whatever is wrong with a request, the answer is a JSON object with the words that clients look for.
func TestErrorsAreJSONAlways(t *testing.T) {
	t.Parallel()
	s := service()
	routes := s.Routes(map[string]pejson.Act{
		"GET /things/{id}": func(_ http.ResponseWriter, r *http.Request) error {
			switch r.PathValue("id") {
			case "denied":
				return fault.New(fault.Denied, "not for you")
			case "broken":
				return errors.New("the password of the database is tiger")
			case "busy":
				return fault.Later(3*time.Second, "come back")
			case "often":
				return fault.TooOften(3*time.Second, "slower")
			}
			return s.Bad("clash", map[string]string{"id": "x"}, "it is there")
		},
		"POST /things": func(w http.ResponseWriter, r *http.Request) error {
			var thing struct {
				Name string `json:"name"`
				Part struct {
					Size int `json:"size"`
				} `json:"part"`
			}
			if err := s.Read(w, r, 100, "bad-request", &thing); err != nil {
				return err
			}
			pejson.Write(w, http.StatusAccepted, thing)
			return nil
		},
	})
	for _, c := range []struct {
		name, method, path, kind, accept, body string
		status                                 int
		want, word                             string
	}{
		{name: "no such path", method: "GET", path: "/other", status: 404, want: "puppetlabs.thing/not-found"},
		{name: "path that is not clean", method: "GET", path: "/things//1", status: 404, want: "puppetlabs.thing/not-found"},
		{name: "path that leaves", method: "GET", path: "/things/../1", status: 404, want: "puppetlabs.thing/not-found"},
		{name: "method", method: "DELETE", path: "/things/1", status: 405, want: "puppetlabs.thing/method-not-allowed", word: "GET, HEAD"},
		{name: "accept", method: "GET", path: "/things/1", accept: "text/html", status: 406, want: "puppetlabs.thing/not-acceptable"},
		{name: "accept refuses JSON", method: "GET", path: "/things/1", accept: "application/json;q=0", status: 406, want: "puppetlabs.thing/not-acceptable"},
		{name: "accept of browsers", method: "GET", path: "/things/1", accept: "text/html,*/*;q=0.8", status: 409, want: "puppetlabs.thing/clash"},
		{name: "type on GET means nothing", method: "GET", path: "/things/1", kind: "text/plain", status: 409, want: "puppetlabs.thing/clash"},
		{name: "type", method: "POST", path: "/things", kind: "application/x-www-form-urlencoded", body: "{}", status: 415, want: "puppetlabs.thing/unsupported-type"},
		{name: "too large", method: "POST", path: "/things", body: `{"name":"` + strings.Repeat("x", 200) +
			`"}`, status: 413, want: "puppetlabs.thing/payload-too-large"},
		{name: "empty", method: "POST", path: "/things", status: 400, want: "puppetlabs.thing/bad-request", word: "empty"},
		{name: "no JSON", method: "POST", path: "/things", body: `{"name":`, status: 400, want: "puppetlabs.thing/bad-request", word: "not valid JSON"},
		{name: "no object", method: "POST", path: "/things", body: `[1]`, status: 400, want: "puppetlabs.thing/bad-request", word: "JSON object"},
		{name: "null", method: "POST", path: "/things", body: `null`, status: 400, want: "puppetlabs.thing/bad-request", word: "JSON object"},
		{name: "type of a field", method: "POST", path: "/things", body: `{"part":{"size":"9"}}`, status: 400, want: "puppetlabs.thing/bad-request", word: "part.size"},
		{name: "denied", method: "GET", path: "/things/denied", status: 403, want: "puppetlabs.thing/forbidden", word: "not for you"},
		{name: "internal", method: "GET", path: "/things/broken", status: 500, want: "puppetlabs.thing/broken", word: "r-1"},
		{name: "busy", method: "GET", path: "/things/busy", status: 503, want: "puppetlabs.thing/unavailable"},
		{name: "too often", method: "GET", path: "/things/often", status: 429, want: "puppetlabs.thing/too-many-requests"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			if c.body == "" {
				r = httptest.NewRequest(c.method, c.path, nil)
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			if c.accept != "" {
				r.Header.Set("Accept", c.accept)
			}
			w := httptest.NewRecorder()
			routes.ServeHTTP(w, r)
			var problem struct {
				Kind, Msg string
				Details   map[string]any
			}
			if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || w.Code != c.status || problem.Kind != c.want || problem.Details == nil {
				t.Errorf("%d %s (%v), want %d %s", w.Code, w.Body, err, c.status, c.want)
			}
			if !strings.Contains(problem.Msg, c.word) || strings.Contains(w.Body.String(), "tiger") ||
				w.Header().Get("Content-Type") != "application/json; charset=utf-8" {
				t.Errorf("%s, %s", w.Body, w.Header())
			}
			if (c.status == 503 || c.status == 429) && w.Header().Get("Retry-After") != "3" {
				t.Errorf("Retry-After: %q", w.Header().Get("Retry-After"))
			}
		})
	}
}

// The audit log is told what kind of refusal a problem is.
func TestAProblemIsAFault(t *testing.T) {
	t.Parallel()
	s := service()
	for word, want := range map[string]fault.Kind{
		"forbidden": fault.Denied, pejson.NotFound: fault.NotFound, "clash": fault.Conflict, "bad-request": fault.Invalid,
	} {
		if got := fault.Of(pejson.Fault(s.Bad(word, nil, "no"))); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
	if got := fault.Of(pejson.Fault(pejson.Stranger(fault.New(fault.Denied, "who?")))); got != fault.Denied {
		t.Errorf("stranger: %s", got)
	}
}
