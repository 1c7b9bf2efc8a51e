package previewtest

import (
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// noise is a rule as it is saved by somebody.
func noise(name, author string, second int, n preview.Noise) preview.NoiseRule {
	return preview.NoiseRule{Name: name, Stamp: fleet.Stamp{Author: author, At: when(second)}, Noise: n}
}

// stamped is a rule as it is read again.
func stamped(r preview.NoiseRule, version int) preview.NoiseRule {
	r.Version = version
	return r
}

func noiseVersions(t *testing.T, s preview.Store) {
	t.Helper()
	same(t, "no rules", []preview.NoiseRule{}, must[[]preview.NoiseRule](t)(s.NoiseRules(t.Context())))
	motd := noise("motd", "ann", 1, preview.Noise{Type: "File", Title: "/etc/motd*", Why: "ünï"})
	full := noise("all-of-it", "bob", 2, preview.Noise{
		Environments: []fleet.Environment{"production"}, Change: "changed", Type: "File", Title: "*", Parameters: []fleet.Glob{"content"},
		Nodes: `facts.role = "web"`, Why: "they differ",
	})
	same(t, "saved", stamped(motd, 1), must[preview.NoiseRule](t)(s.SaveNoise(t.Context(), motd)))
	same(t, "saved", stamped(full, 1), must[preview.NoiseRule](t)(s.SaveNoise(t.Context(), full)))
	wider := noise("motd", "bob", 3, preview.Noise{Type: "File", Title: "/etc/*"})
	same(t, "once more", stamped(wider, 2), must[preview.NoiseRule](t)(s.SaveNoise(t.Context(), wider)))
	same(t, "rules", []preview.NoiseRule{stamped(full, 1), stamped(wider, 2)}, must[[]preview.NoiseRule](t)(s.NoiseRules(t.Context())))

	gone := preview.NoiseRule{Name: "motd", Stamp: fleet.Stamp{Author: "cyd", At: when(4), Removed: true}}
	removed := stamped(gone, 3)
	removed.Noise = wider.Noise
	same(t, "removed", removed, must[preview.NoiseRule](t)(s.SaveNoise(t.Context(), gone)))
	_, err := s.SaveNoise(t.Context(), gone)
	kind(t, "removed twice", fault.NotFound, err)
	same(t, "what is left", []preview.NoiseRule{stamped(full, 1)}, must[[]preview.NoiseRule](t)(s.NoiseRules(t.Context())))
	same(t, "history", []preview.NoiseRule{removed, stamped(wider, 2), stamped(motd, 1)}, must[[]preview.NoiseRule](t)(s.NoiseHistory(t.Context(), "motd")))
	same(t, "back again", stamped(motd, 4), must[preview.NoiseRule](t)(s.SaveNoise(t.Context(), motd)))
	_, err = s.NoiseHistory(t.Context(), "none")
	kind(t, "a rule that never was", fault.NotFound, err)
	_, err = s.SaveNoise(t.Context(), preview.NoiseRule{Name: "none", Stamp: fleet.Stamp{Removed: true}})
	kind(t, "removing what never was", fault.NotFound, err)
	if n, err := s.PruneNoise(t.Context(), when(100), 2); err != nil || n != 2 {
		t.Errorf("pruned %d, %v, want 2", n, err)
	}
	same(t, "what is left of it", []preview.NoiseRule{stamped(motd, 4), removed}, must[[]preview.NoiseRule](t)(s.NoiseHistory(t.Context(), "motd")))
}

func wholeGroups(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 3)
	groups := []preview.Group{group("b", 0, 1, 2), group("a", 1), group("c", 0, 2)}
	done(t, s, p, shares, when(6), groups...)
	same(t, "all", groups, must[[]preview.Group](t)(s.WholeGroups(t.Context(), p.ID, preview.GroupPage{Limit: 9})))
	same(t, "one", groups[1:2], must[[]preview.Group](t)(s.WholeGroups(t.Context(), p.ID, preview.GroupPage{From: 1, Limit: 1})))
	same(t, "none", []preview.Group{}, must[[]preview.Group](t)(s.WholeGroups(t.Context(), 4711, preview.GroupPage{Limit: 1})))
}

func acknowledged(t *testing.T, s preview.Store) {
	t.Helper()
	say := func(p preview.Preview, kind preview.RemarkKind, key, author string) {
		must[[]preview.Remark](t)(s.AddRemarks(t.Context(), p.ID, []preview.Remark{{Group: key, Kind: kind, Author: author, Text: "x", At: when(9)}}))
	}
	a, b := group("a", 0), group("b", 0)
	p, shares := create(t, s, 1)
	done(t, s, p, shares, when(6), a, b)
	q, more := create(t, s, 1)
	done(t, s, q, more, when(7), a, b)
	other, foreign := create(t, s, 1, func(p *preview.Preview) { p.Environment = "testing" })
	done(t, s, other, foreign, when(8), a)
	say(p, preview.Acknowledged, "a", "ann")
	say(p, preview.Acknowledged, "a", "bob")
	say(p, preview.Comment, "b", "bob")
	say(q, preview.Acknowledged, "a", "ann")
	say(q, preview.Withdrawn, "a", "ann")
	say(q, preview.Acknowledged, "b", "ann")
	say(q, preview.Acknowledged, "", "ann")
	say(other, preview.Acknowledged, "a", "ann")
	want := []preview.Acknowledgement{{Preview: q.ID, Author: "ann", Change: b.Change}, {Preview: p.ID, Author: "bob", Change: a.Change}}
	same(t, "acknowledged", want, must[[]preview.Acknowledgement](t)(s.Acknowledgements(t.Context(), "production", 9)))
	same(t, "the newest", want[:1], must[[]preview.Acknowledgement](t)(s.Acknowledgements(t.Context(), "production", 1)))
}
