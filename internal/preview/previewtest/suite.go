package previewtest

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/preview"
)

// RunStore runs the conformance suite of preview.Store. open returns an empty store that
// the test owns.
func RunStore(t *testing.T, open func(t *testing.T) preview.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, preview.Store){
		"a preview is read as it was made":  readAsMade,
		"shares step on and stay":           sharesStay,
		"pages":                             pages,
		"ready with its groups":             ready,
		"cancelled":                         cancelled,
		"what people say":                   said,
		"old ones are forgotten":            forgotten,
		"catalogs that previews refer to":   digests,
		"noise rules have versions":         noiseVersions,
		"groups with their nodes":           wholeGroups,
		"what was acknowledged":             acknowledged,
		"what is not there":                 notThere,
		"more shares than one statement is": manyShares,
		"engines of what nodes have":        baseEngines,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// when is a time that every store can keep.
func when(second int) time.Time { return time.Date(2026, 11, 22, 8, 0, second, 654321000, time.UTC) }

// digest is one that looks like one.
func digest(n int) fleet.Digest { return fleet.Digest(fmt.Sprintf("%064x", n+1)) }

// create stores a preview of n nodes.
func create(t *testing.T, s preview.Store, n int, change ...func(*preview.Preview)) (preview.Preview, []preview.Share) {
	t.Helper()
	shares := make([]preview.Share, n)
	for i := range shares {
		shares[i] = preview.Share{Number: uint32(i), Node: fleet.Certname(fmt.Sprintf("n%05d.example", i)), State: preview.Waiting}
	}
	p := preview.Preview{
		Environment: "production", Version: digest(0), Commit: "abc123", Description: "ünï", Targets: "all", Author: "ann", AuthorKind: fleet.UserActor,
		Reach: `environment ~ "^(web)$"`,
		State: preview.Compiling, Counts: preview.Count(shares), CreatedAt: when(1),
	}
	for _, c := range change {
		c(&p)
	}
	p, err := s.CreatePreview(t.Context(), p, shares)
	if err != nil {
		t.Fatal(err)
	}
	return p, shares
}

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func kind(t *testing.T, what string, want fault.Kind, err error) {
	t.Helper()
	if err == nil || fault.Of(err) != want {
		t.Errorf("%s: %v, want a fault of kind %v", what, err, want)
	}
}

func readAsMade(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 3)
	if p.ID == 0 {
		t.Error("no ID")
	}
	same(t, "preview", p, must[preview.Preview](t)(s.Preview(t.Context(), p.ID)))
	same(t, "shares", shares, must[[]preview.Share](t)(s.PreviewShares(t.Context(), p.ID, preview.SharePage{Limit: 10})))
	other, _ := create(t, s, 1)
	if other.ID <= p.ID {
		t.Errorf("the second preview has the number %d after %d", other.ID, p.ID)
	}
	same(t, "open ones", []preview.Preview{p, other}, must[[]preview.Preview](t)(s.OpenPreviews(t.Context())))
}

func sharesStay(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 4)
	shares[1] = preview.Share{Number: 1, Node: shares[1].Node, State: preview.Waiting, Compilation: 77}
	shares[2] = preview.Share{
		Number: 2, Node: shares[2].Node, State: preview.Changed, Compilation: 78, Fresh: digest(2), Base: digest(3), Reused: true, Volatile: "it reads the time",
	}
	shares[3] = preview.Share{
		Number: 3, Node: shares[3].Node, State: preview.Failed, Compilation: 79, Failure: preview.Failure{
			Message: "Evaluation Error: ß", File: "manifests/site.pp", Line: 7,
		},
	}
	p = must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, shares[1:]))
	same(t, "counts", preview.Counts{preview.Waiting: 2, preview.Changed: 1, preview.Failed: 1}, p.Counts)
	again := []preview.Share{{Number: 2, Node: shares[2].Node, State: preview.Same}, {Number: 0, Node: shares[0].Node, State: preview.Unable}}
	p = must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, again))
	shares[0].State = preview.Unable
	same(t, "counts", preview.Counts{preview.Waiting: 1, preview.Changed: 1, preview.Failed: 1, preview.Unable: 1}, p.Counts)
	same(t, "shares", shares, must[[]preview.Share](t)(s.PreviewShares(t.Context(), p.ID, preview.SharePage{Limit: 10})))
	same(t, "preview", p, must[preview.Preview](t)(s.Preview(t.Context(), p.ID)))
}

func baseEngines(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 4)
	for i, engine := range []string{"", "seven", "eight", "eight"} {
		shares[i].State, shares[i].Base, shares[i].BaseEngine = preview.Changed, digest(i), engine
	}
	must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, shares))
	for engine, want := range map[string][]preview.Share{"": shares, "seven": shares[2:], "eight": shares[1:2], "nine": shares[1:]} {
		page := preview.SharePage{Limit: 10, NotBy: engine}
		same(t, "those not by "+engine, want, must[[]preview.Share](t)(s.PreviewShares(t.Context(), p.ID, page)))
	}
}

func pages(t *testing.T, s preview.Store) {
	t.Helper()
	a, shares := create(t, s, 5)
	b, _ := create(t, s, 1, func(p *preview.Preview) { p.Environment = "testing" })
	c, _ := create(t, s, 1)
	c = must[preview.Preview](t)(s.CancelPreview(t.Context(), preview.Preview{ID: c.ID, Reason: "no", EndedAt: when(2)}))
	for _, q := range []struct {
		page preview.Page
		want []preview.Preview
	}{
		{preview.Page{Limit: 9}, []preview.Preview{c, b, a}},
		{preview.Page{Limit: 2}, []preview.Preview{c, b}},
		{preview.Page{Limit: 2, Before: b.ID}, []preview.Preview{a}},
		{preview.Page{Limit: 9, Environment: "testing"}, []preview.Preview{b}},
		{preview.Page{Limit: 9, States: []preview.State{preview.Cancelled, preview.Ready}}, []preview.Preview{c}},
	} {
		same(t, fmt.Sprintf("%+v", q.page), q.want, must[[]preview.Preview](t)(s.Previews(t.Context(), q.page)))
	}
	shares[3].State = preview.Same
	must[preview.Preview](t)(s.SavePreviewShares(t.Context(), a.ID, shares[3:4]))
	for _, q := range []struct {
		page preview.SharePage
		want []preview.Share
	}{
		{preview.SharePage{Limit: 2}, shares[:2]},
		{preview.SharePage{From: 2, Limit: 2}, shares[2:4]},
		{preview.SharePage{From: 4, Limit: 2}, shares[4:]},
		{preview.SharePage{Limit: 9, States: []preview.ShareState{preview.Same}}, shares[3:4]},
		{preview.SharePage{Limit: 9, Node: shares[1].Node}, shares[1:2]},
	} {
		same(t, fmt.Sprintf("%+v", q.page), q.want, must[[]preview.Share](t)(s.PreviewShares(t.Context(), a.ID, q.page)))
	}
}

// group is a change of some nodes.
func group(key string, nodes ...uint32) preview.Group {
	return preview.Group{
		Change: api.ChangeGroup{
			Key: key, Change: "changed", Type: "File", Title: "/etc/motd", Parameters: []string{"content"}, Nodes: len(nodes), Examples: []string{"a"},
		},
		Nodes: nodes,
	}
}

// done makes a preview ready.
func done(t *testing.T, s preview.Store, p preview.Preview, shares []preview.Share, at time.Time, groups ...preview.Group) preview.Preview {
	t.Helper()
	for i := range shares {
		shares[i].State = preview.Changed
	}
	must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, shares))
	return must[preview.Preview](t)(s.FinishPreview(t.Context(), preview.Preview{ID: p.ID, Unseen: []preview.Unseen{{Reason: "time", Nodes: 2}}, EndedAt: at},
		Groups(groups...)))
}

func ready(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 3)
	_, err := s.FinishPreview(t.Context(), preview.Preview{ID: p.ID, EndedAt: when(5)}, Groups())
	kind(t, "a preview with shares that wait", fault.Conflict, err)
	groups := []preview.Group{group("b", 0, 1, 2), group("a", 1), group("c", 0, 2)}
	p = done(t, s, p, shares, when(6), groups...)
	if p.State != preview.Ready || !p.EndedAt.Equal(when(6)) {
		t.Errorf("the preview is %s, ended at %s", p.State, p.EndedAt)
	}
	same(t, "preview", p, must[preview.Preview](t)(s.Preview(t.Context(), p.ID)))
	same(t, "unseen", []preview.Unseen{{Reason: "time", Nodes: 2}}, p.Unseen)
	same(t, "groups", []api.ChangeGroup{groups[0].Change, groups[1].Change, groups[2].Change},
		must[[]api.ChangeGroup](t)(s.PreviewGroups(t.Context(), p.ID, preview.GroupPage{Limit: 9})))
	same(t, "one group", []api.ChangeGroup{groups[1].Change}, must[[]api.ChangeGroup](t)(s.PreviewGroups(t.Context(), p.ID, preview.GroupPage{From: 1, Limit: 1})))
	same(t, "nodes", []uint32{0, 2}, must[[]uint32](t)(s.PreviewGroupNodes(t.Context(), p.ID, "c")))
	_, err = s.PreviewGroupNodes(t.Context(), p.ID, "d")
	kind(t, "no such group", fault.NotFound, err)
	_, err = s.FinishPreview(t.Context(), preview.Preview{ID: p.ID, EndedAt: when(7)}, Groups())
	kind(t, "ready twice", fault.Conflict, err)
	_, err = s.SavePreviewShares(t.Context(), p.ID, shares)
	kind(t, "shares of a ready preview", fault.Conflict, err)
	same(t, "a ready one that is cancelled", p,
		must[preview.Preview](t)(s.CancelPreview(t.Context(), preview.Preview{ID: p.ID, Reason: "late", EndedAt: when(8)})))
	same(t, "open ones", []preview.Preview{}, must[[]preview.Preview](t)(s.OpenPreviews(t.Context())))
}

func cancelled(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 2)
	p = must[preview.Preview](t)(s.CancelPreview(t.Context(), preview.Preview{ID: p.ID, Reason: "cancelled by bob", EndedAt: when(3)}))
	if p.State != preview.Cancelled || p.Reason != "cancelled by bob" || !p.EndedAt.Equal(when(3)) {
		t.Errorf("%+v", p)
	}
	same(t, "once more", p, must[preview.Preview](t)(s.CancelPreview(t.Context(), preview.Preview{ID: p.ID, Reason: "again", EndedAt: when(4)})))
	_, err := s.SavePreviewShares(t.Context(), p.ID, shares)
	kind(t, "shares of a cancelled preview", fault.Conflict, err)
	_, err = s.FinishPreview(t.Context(), preview.Preview{ID: p.ID, EndedAt: when(5)}, Groups())
	kind(t, "a cancelled preview is made ready", fault.Conflict, err)
}

func said(t *testing.T, s preview.Store) {
	t.Helper()
	p, _ := create(t, s, 1)
	first := must[[]preview.Remark](t)(s.AddRemarks(t.Context(), p.ID, []preview.Remark{
		{Group: "a", Kind: preview.Acknowledged, Author: "ann", At: when(1)}, {Group: "b", Kind: preview.Acknowledged, Author: "ann", At: when(1)},
	}))
	second := must[[]preview.Remark](t)(s.AddRemarks(t.Context(), p.ID, []preview.Remark{
		{Kind: preview.Comment, Text: "wait – why?", Author: "bob", At: when(2)},
	}))
	if first[0].ID == 0 || first[0].ID >= first[1].ID || first[1].ID >= second[0].ID {
		t.Errorf("IDs do not rise: %v %v", first, second)
	}
	same(t, "remarks", append(first, second...), must[[]preview.Remark](t)(s.Remarks(t.Context(), p.ID)))
}

func forgotten(t *testing.T, s preview.Store) {
	t.Helper()
	old, shares := create(t, s, 2)
	done(t, s, old, shares, when(1), group("a", 0))
	must[[]preview.Remark](t)(s.AddRemarks(t.Context(), old.ID, []preview.Remark{{Kind: preview.Comment, Text: "x", Author: "bob", At: when(2)}}))
	open, _ := create(t, s, 1)
	newer, newerShares := create(t, s, 1)
	newer = done(t, s, newer, newerShares, when(30))
	if n := must[int](t)(s.PrunePreviews(t.Context(), when(10))); n != 1 {
		t.Errorf("%d were forgotten, want 1", n)
	}
	_, err := s.Preview(t.Context(), old.ID)
	kind(t, "a forgotten preview", fault.NotFound, err)
	same(t, "its shares", []preview.Share{}, must[[]preview.Share](t)(s.PreviewShares(t.Context(), old.ID, preview.SharePage{Limit: 9})))
	same(t, "its groups", []api.ChangeGroup{}, must[[]api.ChangeGroup](t)(s.PreviewGroups(t.Context(), old.ID, preview.GroupPage{Limit: 9})))
	same(t, "the others", []preview.Preview{newer, open}, must[[]preview.Preview](t)(s.Previews(t.Context(), preview.Page{Limit: 9})))
	next, _ := create(t, s, 1)
	if next.ID <= newer.ID {
		t.Errorf("a number is given twice: %d", next.ID)
	}
}

func digests(t *testing.T, s preview.Store) {
	t.Helper()
	p, shares := create(t, s, 3)
	shares[0].Fresh, shares[0].Base = digest(5), digest(6)
	shares[1].Fresh = digest(5)
	must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, shares))
	same(t, "digests", []fleet.Digest{digest(5), digest(6)}, must[[]fleet.Digest](t)(s.PreviewDigests(t.Context())))
}

func notThere(t *testing.T, s preview.Store) {
	t.Helper()
	_, err := s.Preview(t.Context(), 4711)
	kind(t, "Preview", fault.NotFound, err)
	_, err = s.SavePreviewShares(t.Context(), 4711, nil)
	kind(t, "SavePreviewShares", fault.NotFound, err)
	_, err = s.FinishPreview(t.Context(), preview.Preview{ID: 4711}, Groups())
	kind(t, "Finish", fault.NotFound, err)
	_, err = s.CancelPreview(t.Context(), preview.Preview{ID: 4711})
	kind(t, "Cancel", fault.NotFound, err)
	_, err = s.AddRemarks(t.Context(), 4711, []preview.Remark{{Kind: preview.Comment, Text: "x"}})
	kind(t, "AddRemarks", fault.NotFound, err)
	_, err = s.PreviewGroupNodes(t.Context(), 4711, "a")
	kind(t, "GroupNodes", fault.NotFound, err)
	same(t, "remarks", []preview.Remark{}, must[[]preview.Remark](t)(s.Remarks(t.Context(), 4711)))
}

func manyShares(t *testing.T, s preview.Store) {
	t.Helper()
	const n = 5_000
	p, shares := create(t, s, n)
	for i := range shares {
		shares[i].State, shares[i].Fresh = preview.Same, digest(i%7)
	}
	p = must[preview.Preview](t)(s.SavePreviewShares(t.Context(), p.ID, shares))
	same(t, "counts", preview.Counts{preview.Same: n}, p.Counts)
	same(t, "shares", shares, must[[]preview.Share](t)(s.PreviewShares(t.Context(), p.ID, preview.SharePage{Limit: n + 1})))
}
