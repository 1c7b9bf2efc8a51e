package preview

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Acknowledgement is that somebody acknowledged a change of a preview, and did not take it back.
type Acknowledgement struct {
	Preview int64
	Author  string
	Change  api.ChangeGroup
}

// Suggestion is noise that people seem to take for it.
type Suggestion struct {
	Name     string
	Noise    Noise
	Previews int      // in which such a change was acknowledged
	People   []string // who did
	Titles   []string // of the changes: the first ones
}

// The bounds of suggestions.
const (
	MaxAcknowledgements = 20_000 // the newest are looked at
	maxSuggestions      = 50
	maxShownTitles      = 5
	severalTitles       = 2 // that differ in numbers only are one pattern
)

// Suggest finds the changes that were acknowledged in so many previews or more, and that no rule hides: those of the
// same kind, type, title and parameters. Titles that differ in numbers only count as one.
func Suggest(env fleet.Environment, acks []Acknowledgement, rules []NoiseRule, least int) []Suggestion {
	type like struct {
		change, kind, title, parameters string
	}
	type seen struct {
		example  api.ChangeGroup
		previews map[int64]bool
		people   map[string]bool
		titles   map[string]bool
	}
	found := map[like]*seen{}
	for _, a := range acks {
		g := a.Change
		if g.OrderOnly || g.Change == "error" || g.Type == "" || hides(rules, env, g) {
			continue
		}
		key := like{g.Change, g.Type, string(fleet.Numberless(g.Title)), strings.Join(slices.Sorted(slices.Values(g.Parameters)), ",")}
		s := found[key]
		if s == nil {
			s = &seen{g, map[int64]bool{}, map[string]bool{}, map[string]bool{}}
			found[key] = s
		}
		s.previews[a.Preview], s.people[a.Author], s.titles[g.Title] = true, true, true
	}
	var all []Suggestion
	for key, s := range found {
		if len(s.previews) < least {
			continue
		}
		noise := Noise{Environments: []fleet.Environment{env}, Change: key.change, Type: fleet.Glob(key.kind), Title: fleet.Glob(s.example.Title)}
		if len(s.titles) >= severalTitles || strings.Contains(s.example.Title, "*") {
			noise.Title = fleet.Glob(key.title)
		}
		for _, name := range slices.Sorted(slices.Values(s.example.Parameters)) {
			noise.Parameters = append(noise.Parameters, fleet.Glob(name))
		}
		titles := slices.Sorted(maps.Keys(s.titles))
		all = append(all, Suggestion{
			Noise: noise, Previews: len(s.previews), People: slices.Sorted(maps.Keys(s.people)), Titles: titles[:min(len(titles), maxShownTitles)],
		})
	}
	slices.SortFunc(all, func(a, b Suggestion) int {
		return cmp.Or(cmp.Compare(b.Previews, a.Previews), cmp.Compare(a.Noise.Type, b.Noise.Type), cmp.Compare(a.Noise.Title, b.Noise.Title),
			cmp.Compare(a.Noise.Change, b.Noise.Change), slices.Compare(a.Noise.Parameters, b.Noise.Parameters))
	})
	all = all[:min(len(all), maxSuggestions)]
	nameAll(all, rules)
	return all
}

// hides says whether a rule without a query of nodes hides such a change already.
func hides(rules []NoiseRule, env fleet.Environment, g api.ChangeGroup) bool {
	return slices.ContainsFunc(rules, func(r NoiseRule) bool { return r.Nodes == "" && r.covers(env, g) })
}

var unnameable = regexp.MustCompile(`[^a-z0-9]+`)

// nameAll gives suggestions names that nothing else has.
func nameAll(all []Suggestion, rules []NoiseRule) {
	taken := map[string]bool{}
	for _, r := range rules {
		taken[r.Name] = true
	}
	for i, s := range all {
		text := strings.ToLower(fmt.Sprintf("%s %s", s.Noise.Type, s.Noise.Title))
		base := strings.Trim(unnameable.ReplaceAllString(text, "-"), "-")
		base = strings.Trim(base[:min(len(base), 50)], "-")
		name := cmp.Or(base, "noise")
		for n := 2; taken[name]; n++ {
			name = fmt.Sprintf("%s-%d", cmp.Or(base, "noise"), n)
		}
		taken[name], all[i].Name = true, name
	}
}
