package codecheck

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// TestChosenNodesCoverWhatTheyCan compares with a naive count of files: the sets come first, then whoever reads most of what is left,
// and nothing that somebody reads is left unsaid.
func TestChosenNodesCoverWhatTheyCan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		readings := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) *compile.Reading {
			files := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"}), 0, 4, rapid.ID[string]).Draw(t, "files")
			slices.Sort(files)
			return &compile.Reading{Files: files}
		}), 1, 8).Draw(t, "readings")
		var kinds []kind
		for i := range rapid.IntRange(0, 14).Draw(t, "kinds") {
			k := kind{node: fleet.Certname(fmt.Sprint("n", i)), nodes: rapid.IntRange(1, 5).Draw(t, "nodes")}
			k.classes = fleet.Digest(rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "classes"))
			if rapid.IntRange(0, 5).Draw(t, "known") > 0 {
				k.reads = rapid.SampledFrom(readings).Draw(t, "reads")
			}
			kinds = append(kinds, k)
		}
		most := rapid.IntRange(1, 8).Draw(t, "most")
		chosen, sets, left := choose(kinds, most)

		name := func(k kind) string {
			if k.classes == "" {
				return string(k.node)
			}
			return string(k.classes)
		}
		size, nodes := map[string]int{}, 0
		for _, k := range kinds {
			size[name(k)] += k.nodes
			nodes += k.nodes
		}
		if sets != len(size) || len(chosen) > most {
			t.Fatalf("%d sets, want %d; %d chosen of at most %d", sets, len(size), len(chosen), most)
		}
		covered, stood, smallest := map[string]bool{}, map[string]bool{}, 1<<30
		missing := func(k kind) (n int) {
			for _, file := range k.files() {
				if !covered[file] {
					n++
				}
			}
			return n
		}
		of := func(fits func(kind) bool) (best int) {
			for _, k := range kinds {
				if fits(k) {
					best = max(best, missing(k))
				}
			}
			return best
		}
		total := 0
		for i, s := range chosen {
			total += s.nodes
			switch {
			case s.more != (i >= min(sets, most)):
				t.Fatalf("the %d. of %d sets is more: %v", i, sets, s.more)
			case s.more && (missing(s.kind) == 0 || missing(s.kind) != of(func(kind) bool { return true })):
				t.Fatalf("%s reads %d more files, others read %d", s.node, missing(s.kind), of(func(kind) bool { return true }))
			case !s.more && (stood[name(s.kind)] || size[name(s.kind)] > smallest):
				t.Fatalf("the set of %s is not next", s.node)
			case !s.more && missing(s.kind) != of(func(k kind) bool { return name(k) == name(s.kind) }):
				t.Fatalf("%s reads less than another one of its set", s.node)
			}
			if !s.more {
				stood[name(s.kind)], smallest = true, size[name(s.kind)]
			}
			for _, file := range s.files() {
				covered[file] = true
			}
		}
		if sets <= most && total != nodes {
			t.Fatalf("the chosen stand for %d of %d nodes", total, nodes)
		}
		for _, file := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			read := slices.ContainsFunc(kinds, func(k kind) bool { return slices.Contains(k.files(), file) })
			if unread := read && !covered[file]; unread != slices.Contains(left, file) {
				t.Fatalf("%s is left: %v, said: %v", file, unread, left)
			} else if unread && len(chosen) < most {
				t.Fatalf("%s is left, and there is room", file)
			}
		}
	})
}
