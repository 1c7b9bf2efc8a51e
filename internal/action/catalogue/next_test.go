package catalogue_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Whatever the situation is: no thing is asked for twice, no node two things at a time, nobody who rests or does not have it, never more than
// may be open; and what can be asked is asked.
func TestNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1_700_000_000, 0)
		moment := rapid.Map(rapid.IntRange(-3, 3), func(minutes int) time.Time { return now.Add(time.Duration(minutes) * time.Minute) })
		node := rapid.Map(rapid.IntRange(0, 9), func(n int) fleet.Certname { return fleet.Certname(fmt.Sprintf("node-%d", n)) })
		thing := rapid.Map(rapid.IntRange(0, 12), func(n int) catalogue.Thing {
			if n < 4 {
				return catalogue.Thing{Set: fleet.Digest(fmt.Sprint(n))}
			}
			return catalogue.Thing{Module: fleet.Digest(fmt.Sprint(n)), Name: "m"}
		})
		s := catalogue.Situation{Now: now, Most: rapid.IntRange(0, 8).Draw(t, "most"), Resting: rapid.MapOf(node, moment).Draw(t, "resting")}
		holders := map[catalogue.Thing]map[fleet.Certname]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "wanted") {
			w := catalogue.Wanted{Thing: thing.Draw(t, "thing"), NotBefore: moment.Draw(t, "not before")}
			nodes := rapid.SliceOfDistinct(node, rapid.ID[fleet.Certname]).Draw(t, "holders")
			w.Holders = slices.Values(nodes)
			if holders[w.Thing] == nil {
				holders[w.Thing] = map[fleet.Certname]bool{}
			}
			for _, n := range nodes {
				if !now.Before(w.NotBefore) {
					holders[w.Thing][n] = true
				}
			}
			s.Wanted = append(s.Wanted, w)
		}
		busy, asked := map[fleet.Certname]bool{}, map[catalogue.Thing]bool{}
		for range rapid.IntRange(0, 4).Draw(t, "open") {
			q := catalogue.Question{Node: node.Draw(t, "node"), Thing: thing.Draw(t, "asked")}
			if !busy[q.Node] && !asked[q.Thing] {
				busy[q.Node], asked[q.Thing] = true, true
				s.Open = append(s.Open, q)
			}
		}
		next := catalogue.Next(s)
		if len(next) > 0 && len(s.Open)+len(next) > s.Most {
			t.Fatalf("%d are open, %d may be", len(s.Open)+len(next), s.Most)
		}
		for _, q := range next {
			if busy[q.Node] || asked[q.Thing] || !holders[q.Thing][q.Node] || now.Before(s.Resting[q.Node]) {
				t.Fatalf("%+v is asked, of %+v", q, s)
			}
			busy[q.Node], asked[q.Thing] = true, true
		}
		if len(s.Open)+len(next) >= s.Most {
			return
		}
		for thing, nodes := range holders {
			for n := range nodes {
				if !asked[thing] && !busy[n] && !now.Before(s.Resting[n]) {
					t.Fatalf("%+v could be asked of %s", thing, n)
				}
			}
		}
	})
}
