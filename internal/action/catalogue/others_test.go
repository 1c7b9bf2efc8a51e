package catalogue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/action/catalogue/cataloguetest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Two servers on one store know the modules of all nodes, whichever of the two they are connected to: soon when each is told that the other has saved
// something, and a little later when nobody tells it.
func TestServersOnOneStoreKnowAllNodes(t *testing.T) {
	t.Parallel()
	for name, soon := range map[string]bool{"told": true, "not told": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := cataloguetest.NewStore()
				var a, b *fleetOf
				tell := func(other **fleetOf) func() {
					return func() {
						if soon && *other != nil {
							(*other).follower.Heard()
						}
					}
				}
				a = newFleetOn(t, store, tell(&b))
				b = newFleetOn(t, store, tell(&a))
				wait := 12 * time.Second
				if soon {
					wait = 3*time.Second + time.Millisecond
				}
				both := func(what string, module string, want ...fleet.Certname) {
					t.Helper()
					for server, f := range map[string]*fleetOf{"the first server": a, "the second server": b} {
						if diff := cmp.Diff(want, f.service.Having(module)); diff != "" {
							t.Errorf("%s: %s knows of %s (-want +got):\n%s", what, server, module, diff)
						}
					}
				}
				lamp, fan := module("lamp", "1"), module("fan", "2")
				a.connect("web-1", lamp)
				b.connect("db-1", lamp, fan)
				a.questions(wait)
				both("all are connected", "lamp", "db-1", "web-1")
				both("all are connected", "fan", "db-1")
				for server, f := range map[string]*fleetOf{"the first server": a, "the second server": b} {
					if m, err := f.newest("fan"); err != nil || m.Version != "2" {
						t.Errorf("%s describes %+v, %v", server, m, err)
					}
				}

				a.leave("web-1")
				b.connect("web-1", fan)
				a.questions(wait)
				both("one has moved", "lamp", "db-1")
				both("one has moved", "fan", "db-1", "web-1")

				b.leave("db-1")
				store.Purge("db-1")
				b.service.Forget("db-1")
				a.questions(wait)
				both("one is purged", "lamp")
				both("one is purged", "fan", "web-1")

				store.Saved()
				a.questions(0)
				b.questions(0)
				if asked := append(a.questions(time.Minute), b.questions(0)...); len(asked) > 0 || len(store.Saved()) > 0 {
					t.Errorf("nothing happens, and %v is asked, or something is written", asked)
				}
				a.kill()
				a.start(catalogue.DefaultLimits())
				a.questions(wait)
				both("one was killed", "fan", "web-1")
			})
		})
	}
}

// leave is a node that is not connected to this server any more.
func (f *fleetOf) leave(node fleet.Certname) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away[node] = true
}
