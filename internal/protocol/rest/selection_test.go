package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// fleetBench has web-1, and n-0 to n-9: every second one Debian, in test, and every
// third one failed.
func fleetBench(t *testing.T) bench {
	t.Helper()
	b := newBench(t)
	for i := range 10 {
		name := fleet.Certname(fmt.Sprint("n-", i))
		family, env := []string{"RedHat", "Debian"}[i%2], fleet.Environment([]string{"production", "test"}[i%2])
		_, _, err := b.known.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: env, Values: []byte(`{"os":{"family":"` + family + `"}}`)})
		check(t, err)
		if i%3 == 0 {
			check(t, b.known.SaveReport(t.Context(), inventory.Report{
				ID: fleet.DigestOf([]byte(name)), Certname: name, Environment: env, Status: "failed", ReceivedAt: time.Now(),
			}))
		}
	}
	var made api.Group
	b.do(t, "POST", "/groups", `{"group":{"name":"Debian","rule":"facts.os.family = \"Debian\"","nodes":["n-0","never"]}}`, &made)
	b.do(t, "POST", "/groups", `{"group":{"name":"Few","parent":"Debian","rule":"name ~ \"[0-5]$\""}}`, &made)
	b.do(t, "POST", "/groups", `{"group":{"name":"Bare","parent":"Few"}}`, &made)
	return b
}

func TestNodesAreSelected(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	const where = `facts.os.family = "Debian" and certname ~ "n"`
	for query, want := range map[string]string{
		"":                                "n-0 n-1 n-2 n-3 n-4 n-5 n-6 n-7 n-8 n-9 web-1",
		"status=failed":                   "n-0 n-3 n-6 n-9 web-1", // web-1's newest catalog does not compile
		"status=none&environment=test":    "n-1 n-5 n-7",
		"group=Debian":                    "n-0 n-1 n-3 n-5 n-7 n-9 web-1",
		"group=Few&status=failed":         "n-0 n-3 web-1",
		"group=Bare":                      "",
		"connected=yes":                   "web-1",
		"connected=no":                    "n-0 n-1 n-2 n-3 n-4 n-5 n-6 n-7 n-8 n-9",
		"connected=never&group=Debian":    "n-0 n-3 n-5 n-7 n-9",
		"connected=no&status=failed":      "n-0 n-3 n-6 n-9",
		"where=" + url.QueryEscape(where): "n-1 n-3 n-4",
		"group=Few&where=" + url.QueryEscape(where): "n-1 n-3",
	} {
		for _, limit := range []int{1, 2, 3, 100} {
			var got []string
			for after, pages := "", 0; ; pages++ {
				var page api.List[api.Node]
				b.do(t, "GET", fmt.Sprintf("/nodes?%s&limit=%d&after=%s", query, limit, after), "", &page)
				for _, n := range page.Items {
					got = append(got, n.Name)
				}
				if len(page.Items) > limit || pages > 20 {
					t.Fatalf("%s: %d items of %d on page %d", query, len(page.Items), limit, pages)
				}
				if after = page.Next; after == "" {
					break
				}
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s, %d at once: got %v, want %s", query, limit, got, want)
			}
		}
	}
}

// A node whose agent is away says since when, and which it was.
func TestNodesSayWhenTheyWereConnectedLast(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	for node, want := range map[string]*api.LastSeen{
		"web-1": nil,
		"n-0":   nil,
		"n-1": {
			Since: time.Unix(1_700_000_000, 0).UTC(), Until: time.Unix(1_700_003_600, 0).UTC(),
			Agent: "tutti-agent/2", Client: "tutti-agent", ClientVersion: "2",
		},
	} {
		var shown api.Node
		b.do(t, "GET", "/nodes/"+node, "", &shown)
		if diff := cmp.Diff(want, shown.LastConnected); diff != "" {
			t.Errorf("%s (-want +got):\n%s", node, diff)
		}
	}
	b.gets(t, "GET", "/nodes?connected=perhaps", "", 400, "connected must be yes, no or never")
}

func TestNodesOfAGroup(t *testing.T) {
	t.Parallel()
	b := fleetBench(t)
	var page api.List[api.GroupNode]
	b.do(t, "GET", "/groups/Few/nodes", "", &page)
	want := []api.GroupNode{{Name: "n-0"}, {Name: "n-1"}, {Name: "n-3"}, {Name: "n-5"}}
	if diff := cmp.Diff(want, page.Items[:4]); diff != "" || page.Next != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	b.do(t, "GET", "/groups/Debian/nodes?limit=2", "", &page)
	if diff := cmp.Diff([]api.GroupNode{{Name: "n-0", Pinned: true}, {Name: "n-1"}}, page.Items); diff != "" || page.Next != "n-1" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
