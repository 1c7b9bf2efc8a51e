package rest_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// TestDeploysAreChecked holds that a version with mistakes is a conflict that says them, and changes nothing.
func TestDeploysAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, step := range []struct {
		origin, check       string
		status              int
		versions, mistakes  int
		deployed, wasForced bool
	}{
		{"broken", "", http.StatusConflict, 0, 1, false, false},
		{"broken", "maybe", http.StatusBadRequest, 0, 0, false, false},
		{"broken", "force", http.StatusOK, 1, 1, true, true},
		{"broken", "off", http.StatusOK, 1, 0, true, false},
		{"fine", "", http.StatusOK, 1, 0, true, false},
	} {
		body, err := json.Marshal(map[string]any{"manifest": json.RawMessage(`{"module_path":["modules"],"files":[]}`), "origin": step.origin, "check": step.check})
		check(t, err)
		w := b.call(admin, http.MethodPost, api.Prefix+"/environments/production/versions", body)
		if w.Code != step.status {
			t.Errorf("%+v: %d %s", step, w.Code, w.Body)
			continue
		}
		var answer struct {
			ID    string
			Kind  string
			Check *api.CodeCheck
		}
		check(t, json.Unmarshal(w.Body.Bytes(), &answer))
		mistakes, forced := 0, false
		if answer.Check != nil {
			mistakes, forced = answer.Check.Mistakes, answer.Check.Forced
			if f := answer.Check.Findings[0]; f.File != "site.pp" || f.Line != 3 || f.Level != "mistake" {
				t.Errorf("%+v: %+v", step, f)
			}
		}
		if mistakes != step.mistakes || forced != step.wasForced || (answer.ID != "") != step.deployed {
			t.Errorf("%+v: %s", step, w.Body)
		}
		var list api.List[api.Version]
		check(t, json.Unmarshal(b.call(admin, http.MethodGet, api.Prefix+"/environments/production/versions", nil).Body.Bytes(), &list))
		if len(list.Items) != step.versions {
			t.Errorf("%+v: there are %d versions", step, len(list.Items))
		}
	}
}
