package rest_test

import (
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
	if states["File[/srv/a]"] != "failed" || states["Service[app]"] != "skipped" || states["Group[ops]"] != "skipped" || states["User[ops]"] != "" || len(states) != 7 {
		t.Errorf("the boxes: %v", states)
	}
	var lines []string
	for _, l := range g.Lines {
		lines = append(lines, l.From+" "+strings.Join(l.Kinds, "+")+" "+l.To)
		if len(l.Points) < 2 || l.Back {
			t.Errorf("a line of %v", l)
		}
	}
	if want := []string{"File[/srv/a] required-by Service[app]", "Service[app] notifies Exec[warm]"}; !slices.Equal(lines, want) || g.OtherCatalog || g.Show != "failed" {
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

	check(t, b.known.SaveCatalog(t.Context(), inventory.Catalog{
		Certname: "db-1", Environment: "production", Digest: fleet.DigestOf([]byte("newer")), UUID: "catalog-newer", Origin: inventory.Origin{ProducedAt: time.Now()},
	}))
	if g = get[api.ResourceGraph](t, b, "viewer", "/nodes/db-1/graph"); !g.OtherCatalog || len(g.Boxes) != 7 {
		t.Errorf("with another catalog: %+v", g)
	}
	if g = get[api.ResourceGraph](t, b, "viewer", "/nodes/web-1/graph"); len(g.Boxes) != 0 {
		t.Errorf("a node whose run was well: %+v", g)
	}
}
