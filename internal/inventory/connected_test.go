package inventory_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/inventory/inventorytest"
)

// connections are the nodes that are connected, in order.
type connections []fleet.Certname

func (c connections) Presence(node fleet.Certname) (inventory.Presence, bool) {
	return inventory.Presence{Since: time.Unix(7, 0)}, slices.Contains(c, node)
}

func (c connections) Connected() []fleet.Certname { return c }

// Whatever is stored, enrolled and connected, and however long the pages are, the pages list each node once, in order.
func TestConnectedNodesAreOnThePages(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		store := inventorytest.NewEnrolments()
		var there connections
		var want []fleet.Certname
		for _, name := range []fleet.Certname{"a", "b", "c", "d", "e", "f", "g"} {
			stored, connected, enrolled := r.IntN(3) == 0, r.IntN(3) == 0, r.IntN(3) == 0
			if enrolled {
				store.Issue(t, inventorytest.Card{Certname: name, At: time.Unix(7, 0), Ends: time.Now().Add(time.Hour)})
			}
			if stored {
				if _, _, err := store.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: "production", Values: []byte(`{}`)}); err != nil {
					t.Fatal(err)
				}
			}
			if connected {
				there = append(there, name)
			}
			if stored || connected || enrolled {
				want = append(want, name)
			}
		}
		known := inventory.WithConnected{NodeStore: inventory.WithEnrolled{NodeStore: store, Enrolments: store}, Connections: there}
		limit := 1 + r.IntN(8)
		var got []fleet.Certname
		for after := ""; len(got) <= len(want); {
			page, err := known.Nodes(t.Context(), inventory.Page{After: after, Limit: limit})
			if err != nil || len(page) > limit {
				t.Fatalf("%d nodes on a page of %d, %v", len(page), limit, err)
			}
			if len(page) == 0 {
				break
			}
			for _, n := range page {
				got = append(got, n.Certname)
			}
			after = string(page[len(page)-1].Certname)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("pages of %d (-want +got):\n%s", limit, diff)
		}
		for _, name := range want {
			if n, err := known.Node(t.Context(), name); err != nil || n.Certname != name {
				t.Errorf("%s: %+v, %v", name, n, err)
			}
		}
		if _, err := known.Node(t.Context(), "x"); fault.Of(err) != fault.NotFound {
			t.Errorf("a node that nobody knows: %v", err)
		}
	}
}
