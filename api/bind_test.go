package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
)

// carry sends request as the client does and binds it as the server does.
func carry[T, R any](op Op[T, R], request T) (got T, err error) {
	path, err := locate(op.Operation(), request)
	if err != nil {
		return got, err
	}
	body, err := json.Marshal(request)
	if err != nil {
		return got, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc(op.Operation().Method+" "+Prefix+op.Operation().Path, func(_ http.ResponseWriter, r *http.Request) { err = Bind(r, &got) })
	err = fault.New(fault.NotFound, "no route")
	mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(op.Operation().Method, path, bytes.NewReader(body)))
	return got, err
}

func TestRequestsArriveAsTheyWereSent(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[^\x00-\x1f./][^\x00-\x1f]{0,20}`)
		list := ReportListRequest{
			Name: text.Draw(t, "name"), Status: text.Draw(t, "status"), After: text.Draw(t, "after"), Limit: rapid.IntRange(0, 1000).Draw(t, "limit"),
		}
		if got, err := carry(ReportList, list); err != nil || got != list {
			t.Fatalf("sent %+v, got %+v, %v", list, got, err)
		}
		nodes := NodeListRequest{Where: text.Draw(t, "where"), Delivery: rapid.Bool().Draw(t, "delivery")}
		if got, err := carry(NodeList, nodes); err != nil || got != nodes {
			t.Fatalf("sent %+v, got %+v, %v", nodes, got, err)
		}
		deploy := DeployRequest{Environment: text.Draw(t, "environment"), Commit: text.Draw(t, "commit"), Manifest: json.RawMessage(`{"files":[]}`)}
		got, err := carry(VersionDeploy, deploy)
		if diff := cmp.Diff(deploy, got); diff != "" || err != nil {
			t.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
}

func TestBindRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ target, body, want string }{
		"unknown query field": {"/x?statuss=failed", "", `unknown query field "statuss"`},
		"limit is no number":  {"/x?limit=many", "", "the query field limit must be a whole number"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var request ReportListRequest
			err := Bind(httptest.NewRequest(http.MethodGet, c.target, strings.NewReader(c.body)), &request)
			if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), c.want) {
				t.Errorf("got %v, want Invalid with %q", err, c.want)
			}
		})
	}
	if err := Bind(httptest.NewRequest(http.MethodGet, "/x?delivery=perhaps", http.NoBody), &NodeListRequest{}); fault.Of(err) != fault.Invalid ||
		!strings.Contains(fault.Detail(err), "true or false") {
		t.Errorf("delivery=perhaps: %v", err)
	}
	for name, body := range map[string]string{
		"no body": "", "broken JSON": `{"commit":`, "unknown field": `{"comit":"x"}`, "two objects": `{}{}`, "wrong type": `{"commit":1}`, "not an object": `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var request DeployRequest
			if err := Bind(httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(body)), &request); fault.Of(err) != fault.Invalid || err == nil {
				t.Errorf("got %v, want Invalid", err)
			}
		})
	}
}

func TestABodyCannotOverruleThePath(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(`{"Environment":"other","commit":"c"}`))
	r.SetPathValue("environment", "production")
	var request DeployRequest
	if err := Bind(r, &request); err == nil && request.Environment != "production" {
		t.Errorf("the environment became %q", request.Environment)
	}
}

func FuzzBind(f *testing.F) {
	f.Add("limit=3&status=failed", []byte(`{"commit":"c","manifest":{}}`))
	f.Fuzz(func(_ *testing.T, query string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/x", bytes.NewReader(body))
		r.URL.RawQuery = query
		_ = Bind(r, &ReportListRequest{})
		r.URL.RawQuery = ""
		_ = Bind(r, &DeployRequest{})
	})
}

func TestOperationsAreConsistent(t *testing.T) {
	t.Parallel()
	names, routes := map[string]bool{}, map[string]bool{}
	for _, op := range Operations() {
		route := op.Method + " " + op.Path
		if names[op.Name] || routes[route] {
			t.Errorf("%s or %s is there twice", op.Name, route)
		}
		names[op.Name], routes[route] = true, true
		if op.Permission == "" || op.Summary == "" {
			t.Errorf("%s has no permission or no summary", op.Name)
		}
		if op.Kind != Question && op.Kind != Act || op.Method == http.MethodGet && op.Kind != Question {
			t.Errorf("%s is a %s of kind %q", op.Name, op.Method, op.Kind)
		}
		if op.Request == nil && strings.Contains(op.Path, "{") {
			t.Errorf("%s has a path field but no request type", op.Name)
		}
		if op.Method == http.MethodGet && hasBody(op.Request) {
			t.Errorf("%s is a GET with a body", op.Name)
		}
	}
}

// An operation that its area's list leaves out has no route.
func TestEveryDeclaredOperationIsListed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, op := range Operations() {
		listed[op.Name] = true
	}
	declaration := regexp.MustCompile(`= (?:op|stream|upload)\[.*\]\(Operation\{\s+Name: "([^"]+)"`)
	declared := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declaration.FindAllSubmatch(text, -1) {
			if declared++; !listed[string(found[1])] {
				t.Errorf("%s: %s is not listed", file, found[1])
			}
		}
	}
	if declared != len(listed) {
		t.Errorf("%d operations are declared, and %d are listed", declared, len(listed))
	}
}

func TestRetryIsNeverTooSoon(t *testing.T) {
	t.Parallel()
	for wait, want := range map[time.Duration]int64{0: 0, time.Millisecond: 1, time.Second: 1, 1500 * time.Millisecond: 2} {
		if got := RetrySeconds(fault.Later(wait, "busy")); got != want {
			t.Errorf("%s: got %d, want %d", wait, got, want)
		}
	}
}

// A reference to the log helps only where the log says more than the answer.
func TestOnlyOurOwnMistakesNameTheRequest(t *testing.T) {
	t.Parallel()
	for kind, want := range map[fault.Kind]string{fault.NotFound: "nothing here", fault.Internal: "nothing here: request r-1"} {
		w := httptest.NewRecorder()
		w.WriteHeader(Status(kind))
		if err := json.NewEncoder(w).Encode(Problem{Kind: kind.String(), Message: "nothing here", RequestID: "r-1"}); err != nil {
			t.Fatal(err)
		}
		answer := w.Result()
		err := problem(answer)
		said := err.Error()
		if detail := fault.Detail(err); detail != "" {
			said = detail
		}
		if closing := answer.Body.Close(); closing != nil || fault.Of(err) != kind || said != want || RequestID(err) != "r-1" {
			t.Errorf("got %v (%v), want %q", err, fault.Of(err), want)
		}
	}
}
