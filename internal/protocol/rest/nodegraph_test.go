package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func TestTheGraphOfARedNode(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	redNode(t, b)
	g := get[api.ResourceGraph](t, b, "viewer", "/nodes/db-1/graph")
	states := map[string]string{}
	for _, box := range g.Boxes {
		states[box.Name] = box.State
	}
	if states["File[/srv/a]"] != "failed" || states["Service[app]"] != "skipped" || states["Group[ops]"] != "skipped" ||
		states["User[ops]"] != "" || len(states) != 7 {
		t.Errorf("the boxes: %v", states)
	}
	var lines []string
	for _, l := range g.Lines {
		lines = append(lines, l.From+" "+strings.Join(l.Kinds, "+")+" "+l.To)
		if len(l.Points) < 2 || l.Back {
			t.Errorf("a line of %v", l)
		}
	}
	if want := []string{"File[/srv/a] required-by Service[app]", "Service[app] notifies Exec[warm]"}; !slices.Equal(lines, want) ||
		g.OtherCatalog || g.Show != "failed" {
		t.Errorf("%q, %+v", lines, g)
	}

	g = get[api.ResourceGraph](t, b, "viewer", "/nodes/db-1/graph?show=catalog&near=Exec%5Bwarm%5D")
	if len(g.Boxes) != 3 || g.Boxes[0].Name != "File[/srv/a]" || g.Boxes[0].State != "failed" || g.Boxes[0].Row != 0 || g.Boxes[2].Row != 2 {
		t.Errorf("the catalog: %+v", g.Boxes)
	}
	for path, code := range map[string]int{
		"/nodes/db-1/graph?show=all": http.StatusBadRequest, "/nodes/db-1/graph?near=File%5B%2Fx%5D": http.StatusNotFound, "/nodes/nobody/graph": http.StatusNotFound,
	} {
		if w := b.call(admin, http.MethodGet, api.Prefix+path, nil); w.Code != code {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}

	for near, want := range map[string][]string{
		"near=File%5B%2Fsrv%2Fb%5D": {"the catalog of db-1 has no resource File[/srv/b]", "did you mean File[/srv/a]?"},
		"near=Nothing%5Blike-it%5D": {"has no resource Nothing[like-it]", "`tutti catalog show db-1` lists"},
		"near=nothing-like-it":      {"has no resource nothing-like-it", "a resource is named as Service[nginx]"},
		"near=User%5Bops%5D":        {"User[ops] neither failed nor was skipped in the last run of db-1", ""},
	} {
		notPictured(t, b, near, want[0], want[1])
	}

	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Certname: "db-1", Environment: "production", Digest: fleet.DigestOf([]byte("newer")), UUID: "catalog-newer", Origin: inventory.Origin{ProducedAt: time.Now()},
		Resources: []inventory.Resource{{Type: "Notify", Title: "well"}, {Type: "Stage", Title: "main"}},
	}))
	notPictured(t, b, "near=Notify%5Bwell%5D", "Notify[well] neither failed nor was skipped", "--catalog shows the whole catalog")
	// it failed there
	notPictured(t, b, "show=catalog&near=File%5B%2Fsrv%2Fa%5D", "File[/srv/a] was in the last run of db-1, and is not in its newest catalog", "")
	notPictured(t, b, "show=catalog&near=Stage%5Bmain%5D", "Stage[main] is in the catalog of db-1, but not in the picture", "")
	if g = get[api.ResourceGraph](t, b, "viewer", "/nodes/db-1/graph"); !g.OtherCatalog || len(g.Boxes) != 7 {
		t.Errorf("with another catalog: %+v", g)
	}
	if g = get[api.ResourceGraph](t, b, "viewer", "/nodes/web-1/graph"); len(g.Boxes) != 0 {
		t.Errorf("a node whose run was well: %+v", g)
	}
}

// notPictured asks for the neighbourhood of a resource that is not in the picture, and holds what is said.
func notPictured(t *testing.T, b bench, query, says, hint string) {
	t.Helper()
	w := b.call(admin, http.MethodGet, api.Prefix+"/nodes/db-1/graph?"+query, nil)
	var p api.Problem
	check(t, json.Unmarshal(w.Body.Bytes(), &p))
	if w.Code != http.StatusNotFound || !strings.Contains(p.Message, says) || !strings.Contains(p.Hint, hint) || hint == "" && p.Hint != "" {
		t.Errorf("%s: %d %s; %s", query, w.Code, p.Message, p.Hint)
	}
}
