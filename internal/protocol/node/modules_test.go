package node_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fleet"
)

// supplies is what nodes have.
type supplies map[fleet.Certname]action.Supply

func (s supplies) Supply(_ context.Context, node fleet.Certname) (action.Supply, error) {
	return s[node], nil
}

func (s supplies) MayHave(_ context.Context, node fleet.Certname, content fleet.Digest) (bool, error) {
	for _, m := range s[node].Modules {
		return m.Files[0].Digest == content, nil
	}
	return false, nil
}

func TestModules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Modules = supplies{
		"web-1": {
			Environment: "production", Modules: []action.Supplied{
				{Name: "disk", Module: "web", Files: []action.SuppliedFile{{Path: "metadata.json", Digest: b.blobs["small"], Size: 5}}},
			},
		},
	}
	w := b.call("web-1", "/modules")
	var told action.Supply
	if err := json.Unmarshal(w.Body.Bytes(), &told); err != nil || w.Code != http.StatusOK || told.Digest() != b.Modules.(supplies)["web-1"].Digest() {
		t.Errorf("%d %s, %v", w.Code, w.Body, err)
	}
	if again := b.call("web-1", "/modules", "If-None-Match", w.Header().Get("Etag")); again.Code != http.StatusNotModified {
		t.Errorf("asked again: %d", again.Code)
	}
	if w := b.call("web-1", "/modules/"+string(b.blobs["small"])); w.Code != http.StatusOK || w.Body.String() != "small" {
		t.Errorf("its file: %d %s", w.Code, w.Body)
	}
	for _, c := range []struct {
		node, digest string
		code         int
		want         string
	}{
		{"web-1", string(b.blobs["one"]), http.StatusNotFound, "web-1 has no module with the file"},
		{"db-1", string(b.blobs["small"]), http.StatusNotFound, "db-1 has no module with the file"},
		{"web-1", "x", http.StatusBadRequest, "x"},
		{"", string(b.blobs["small"]), http.StatusForbidden, "this is for nodes"},
	} {
		if w := b.call(c.node, "/modules/"+c.digest); w.Code != c.code || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s, want %d", c.node, c.digest, w.Code, w.Body, c.code)
		}
	}
	if w := b.call("", "/modules"); w.Code != http.StatusForbidden {
		t.Errorf("a stranger: %d", w.Code)
	}
}
