package release_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/release"
)

func TestSpread(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 300).Draw(rt, "nodes")
		var nodes []fleet.Certname
		for i := range n {
			nodes = append(nodes, nodeOf(i))
		}
		sizes := append(rapid.SliceOfN(rapid.SampledFrom([]string{"1%", "10%", "33.3%", "5", "1", "@n0"}), 0, 4).Draw(rt, "sizes"), "rest")
		members := func(string) ([]fleet.Certname, error) { return nodes[:min(n, 10)], nil }
		waves, place, err := release.Spread(sizes, nodes, 7, members)
		if err != nil {
			if !strings.Contains(err.Error(), "group n0") {
				rt.Fatal(err)
			}
			return
		}
		counted := map[int]int{}
		for _, node := range nodes {
			counted[place[node]]++
		}
		total := 0
		for _, w := range waves {
			if counted[w.Number] != w.Nodes || w.Nodes == 0 {
				rt.Errorf("wave %d has %d nodes, not %d", w.Number, counted[w.Number], w.Nodes)
			}
			total += w.Nodes
		}
		again, same, _ := release.Spread(sizes, nodes, 7, members)
		if total != n || cmp.Diff(waves, again) != "" || cmp.Diff(place, same) != "" {
			rt.Errorf("%d of %d nodes are in waves", total, n)
		}
	})
}
