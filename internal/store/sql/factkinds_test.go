package sql

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// TestFactPathsFollowTheFacts takes a path's witness away, in each way there is.
func TestFactPathsFollowTheFacts(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, open func(testing.TB) *Store) {
		t.Helper()
		s := open(t)
		save := func(node fleet.Certname, values string) {
			t.Helper()
			if _, _, err := s.Facts.SaveFacts(t.Context(), inventory.FactSet{
				Certname: node, Environment: "production",
				Values: json.RawMessage(values), ReceivedAt: time.Now(),
			}); err != nil {
				t.Fatal(err)
			}
		}
		want := func(step, rows string) {
			t.Helper()
			got, _ := askAll(t, s, checked(t, `fact_paths[path, type] { name = "disk" order by path, type }`))
			if text := fmt.Sprint(got); text != rows {
				t.Errorf("%s: %s, want %s", step, text, rows)
			}
		}
		save("a.example", `{"disk": {"sda": 1, "sdb": "x"}}`)
		save("b.example", `{"disk": {"sda": 2}}`)
		want("two nodes", "[map[path:[disk sda] type:integer] map[path:[disk sdb] type:string]]")
		save("a.example", `{"disk": {"sda": "one", "sdb": "x"}}`)
		want("another kind", "[map[path:[disk sda] type:integer] map[path:[disk sda] type:string] map[path:[disk sdb] type:string]]")
		if err := s.Facts.findWitnesses(t.Context()); err != nil {
			t.Fatal(err)
		}
		want("witnesses found", "[map[path:[disk sda] type:integer] map[path:[disk sda] type:string] map[path:[disk sdb] type:string]]")
		save("a.example", `{"disk": {"sda": "one"}}`)
		want("a leaf less", "[map[path:[disk sda] type:integer] map[path:[disk sda] type:string]]")
		if err := s.Nodes.PurgeNode(t.Context(), "a.example"); err != nil {
			t.Fatal(err)
		}
		want("a node less", "[map[path:[disk sda] type:integer]]")
		save("b.example", `{"disk": {"sdb": "y"}}`)
		want("seen again", "[map[path:[disk sdb] type:string]]")
	})
}
