package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// TestLinesOfCode holds that the lines around a place are those of the version that is named, that data is not shown, and that who may read
// the code of some environments only is shown no version of another one.
func TestLinesOfCode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	site := []byte("class a {\r\n\n  notify { 'a': }\n}\n" + strings.Repeat("x", 500) + "\n")
	key := []byte("secret: 1\n")
	manifest := func(file string, text []byte) json.RawMessage {
		digest := fleet.DigestOf(text)
		if w := b.call(admin, http.MethodPost, api.Prefix+"/blobs", archive(t, string(digest), text)); w.Code != http.StatusOK {
			t.Fatalf("no blob: %s", w.Body)
		}
		return json.RawMessage(fmt.Sprintf(`{"module_path":["modules"],"files":[{"path":%q,"digest":%q,"size":%d}]}`, file, digest, len(text)))
	}
	deploy := func(env, file string, text []byte) (made api.Version) {
		body, err := json.Marshal(map[string]any{"manifest": manifest(file, text), "check": "off"})
		check(t, err)
		w := b.call(admin, http.MethodPost, api.Prefix+"/environments/"+env+"/versions", body)
		if w.Code != http.StatusOK {
			t.Fatalf("not deployed: %s", w.Body)
		}
		check(t, json.Unmarshal(w.Body.Bytes(), &made))
		return made
	}
	first := deploy("production", "manifests/site.pp", site)
	deploy("production", "hiera.yaml", key)
	other := deploy("testing", "manifests/other.pp", site)
	web := who{name: "web team", token: "web"}
	path := func(env, version, query string) string {
		return api.Prefix + "/environments/" + env + "/versions/" + version + "/lines?" + query
	}

	w := b.call(admin, http.MethodGet, path("production", first.ID[:8], "file=/etc/puppetlabs/code/environments/production/manifests/site.pp&line=3&around=2"),
		nil)
	var got api.CodeLines
	check(t, json.Unmarshal(w.Body.Bytes(), &got))
	want := api.CodeLines{
		Environment: "production", Version: first.ID, File: "manifests/site.pp", Line: 3, From: 1,
		Lines: []string{"class a {", "", "  notify { 'a': }", "}", strings.Repeat("x", 400) + "…"}, Last: 5,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for _, c := range []struct {
		as     who
		path   string
		status int
		text   string
	}{
		{admin, path("production", first.ID, "file=manifests/site.pp&line=6"), http.StatusNotFound, "has 5 lines, no line 6"},
		{admin, path("production", first.ID, "file=manifests/site.pp&line=0"), http.StatusBadRequest, "line is a number from 1"},
		{admin, path("production", first.ID, "file=manifests/site.pp&line=1&around=51"), http.StatusBadRequest, "from 0 to 50"},
		{admin, path("production", first.ID, "file=manifests/none.pp&line=1"), http.StatusNotFound, "has no file"},
		{admin, path("production", "current", "file=manifests/site.pp&line=1"), http.StatusNotFound, "has no file"}, // the current version is another one
		{admin, path("production", "current", "file=hiera.yaml&line=1"), http.StatusBadRequest, "lines are shown of manifests"},
		{admin, path("production", "current", "file=manifests/../hiera.yaml&line=1"), http.StatusBadRequest, "lines are shown of manifests"},
		{admin, path("production", "abc", "file=manifests/site.pp&line=1"), http.StatusBadRequest, "at least 6 digits"},
		{admin, path("production", other.ID, "file=manifests/other.pp&line=1"), http.StatusOK, "class a"}, // may read all code
		{web, path("production", first.ID, "file=manifests/site.pp&line=1"), http.StatusOK, "class a"},
		{web, path("production", other.ID, "file=manifests/other.pp&line=1"), http.StatusNotFound, "has no version"},
		{web, path("testing", other.ID, "file=manifests/other.pp&line=1"), http.StatusForbidden, ""},
	} {
		w := b.call(c.as, http.MethodGet, c.path, nil)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %s: %d %s, want %d %s", c.as.name, c.path, w.Code, w.Body, c.status, c.text)
		}
	}
}
