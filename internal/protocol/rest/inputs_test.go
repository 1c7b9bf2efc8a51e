package rest_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// noInputs knows what the catalog of one node was made of.
type noInputs struct{}

func (noInputs) Inputs(_ context.Context, node fleet.Certname) (compile.Verdict, []compile.ReuseStop, error) {
	if node != "web-1" {
		return compile.Verdict{}, nil, fault.New(fault.NotFound, "%s has no catalog that could be used again", node)
	}
	set := &compile.InputSet{
		At: time.Unix(1, 0), Engine: "made-up 1", Values: []compile.Value{{Pointer: "/facts/os", Digest: "d"}, {Pointer: "/facts/x", Seen: true}},
		Asked: []compile.Question{{Kind: compile.AskedQuery, Text: "nodes {}", Rows: 2}}, Sources: compile.Sources{Files: []string{"a.pp"}},
	}
	stops := []compile.ReuseStop{{Version: "v", At: time.Unix(2, 5), Reused: "r", Fresh: "f", Differs: []string{"File[/x]"}}}
	return compile.Verdict{From: compile.Compilation{Node: node, Environment: "production", Inputs: set}, Why: "facts.os changed"}, stops, nil
}

func TestInputsOfACatalog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	admin := callers[len(callers)-1]
	w := b.call(admin, http.MethodGet, api.Prefix+"/nodes/web-1/inputs", nil)
	for _, want := range []string{
		`"stands":false`, `"why":"facts.os changed"`, `{"pointer":"/facts/os","there":true}`, `{"pointer":"/facts/x","seen":true,"there":false}`,
		`{"kind":"query","text":"nodes {}","rows":2}`, `"files":["a.pp"]`, `"trees":[]`, `"differs":["File[/x]"]`, `"at":"1970-01-01T00:00:02Z"`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("status %d, %s is missing in %s", w.Code, want, w.Body)
		}
	}
	for path, status := range map[string]int{"/nodes/web-2/inputs": 404, "/nodes/No Name/inputs": 400} {
		if w := b.call(admin, http.MethodGet, api.Prefix+strings.ReplaceAll(path, " ", "%20"), nil); w.Code != status {
			t.Errorf("%s: status %d, want %d: %s", path, w.Code, status, w.Body)
		}
	}
}
