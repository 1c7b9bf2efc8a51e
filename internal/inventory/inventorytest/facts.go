package inventorytest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

func factSet(node fleet.Certname, values string, at time.Time) inventory.FactSet {
	return inventory.FactSet{
		Certname: node, Environment: "production", Values: json.RawMessage(values),
		Timestamp: at.Add(-time.Second), ReceivedAt: at,
	}
}

func factsRoundTrip(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	stored, changed, err := s.SaveFacts(ctx, factSet("a.example", `{"os":{"name":"Debian","n":12345678901234567890.5},"b":[1,{"c":null}],"e":"ä\u0001"}`, start))
	ok(t, err)
	same(t, "changed", []string{"b[0]", "b[1].c", "e", "os.n", "os.name"}, changed)
	values := `{"b":[1,{"c":null}],"e":"ä\u0001","os":{"n":12345678901234567890.5,"name":"Debian"}}`
	want := factSet("a.example", values, start)
	want.Seq, want.Digest, want.ProducedAt = 1, fleet.DigestOf([]byte(values)), start
	same(t, "stored", want, stored)
	got, err := s.Facts(ctx, "a.example")
	ok(t, err)
	same(t, "read", want, got)
}

func factsDifferences(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	steps := []struct {
		values  string
		seq     int64
		changed []string
	}{
		{`{"a":1,"b":{"x":"1","y":[1,2]}}`, 1, []string{"a", "b.x", "b.y[0]", "b.y[1]"}},
		{` {"a" : 1, "b":{"x":"1","y":[1,2]}} `, 1, nil},
		{`{"a":2,"b":{"x":"1","y":[1,2]}}`, 2, []string{"a"}},
		{`{"a":2,"b":{"y":[1]},"c":true}`, 3, []string{"b.x", "b.y[1]", "c"}},
		{`{}`, 4, []string{"a", "b.y[0]", "c"}},
		{`{"a":2}`, 5, []string{"a"}},
	}
	for i, step := range steps {
		f := factSet("a.example", step.values, start.Add(time.Duration(i)*time.Minute))
		f.Environment = fleet.Environment(fmt.Sprintf("env%d", i))
		stored, changed, err := s.SaveFacts(ctx, f)
		ok(t, err)
		same(t, step.values+": changed", step.changed, changed)
		same(t, step.values+": seq", step.seq, stored.Seq)
		got, err := s.Facts(ctx, "a.example")
		ok(t, err)
		same(t, step.values+": read", stored, got)
	}
}

func factsAsTold(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	_, err := s.FactsAsTold(ctx, "a.example")
	isKind(t, "facts of an unknown node", err, fault.NotFound)
	steps := []struct {
		values, told string
		seq          int64
	}{
		{`{"a":1,"b":{"x":"1","y":[{"k":1,"l":2}]}}`, ``, 1},
		{`{"b":{"y":[{"l":2,"k":1}],"x":"1"},"a":1}`, ``, 2}, // the same facts, told in another order
		{`{"b":{"y":[{"l":2,"k":1}],"x":"1"},"a":1}`, ``, 2},
		{`{"b":{"y":[{"l":2,"k":1}],"x":"1"},"a":2}`, ``, 3},
		{`{"z":1,"trusted":{"x":1,"a":2},"b":{"d":0,"c":{}}}`, `{"z":1,"b":{"d":0,"c":{}}}`, 4},
		{`{"a":1,"trusted":{"x":1,"a":2},"b":2}`, `{"a":1,"b":2}`, 5},
		{`{}`, ``, 6},
	}
	for i, step := range steps {
		stored, _, err := s.SaveFacts(ctx, factSet("a.example", step.values, start.Add(time.Duration(i)*time.Minute)))
		ok(t, err)
		same(t, step.values+": seq", step.seq, stored.Seq)
		got, err := s.FactsAsTold(ctx, "a.example")
		ok(t, err)
		same(t, step.values+": as told", cmp.Or(step.told, step.values), string(got.Values))
		got.Values = stored.Values
		same(t, step.values+": all but the values", stored, got)
	}
	f := factSet("a.example", `{"a":1,"b":2}`, start.Add(time.Hour))
	f.Digest, f.Arrangement = fleet.DigestOf(f.Values), "1,0"
	_, _, err = s.SaveFacts(ctx, f)
	ok(t, err)
	got, err := s.FactsAsTold(ctx, "a.example")
	ok(t, err)
	same(t, "as the arrangement says", `{"b":2,"a":1}`, string(got.Values))
	for _, arrangement := range []string{"1", "1,1", "0,2", "1,0;0", "x,y"} {
		f.Arrangement = arrangement
		_, _, err := s.SaveFacts(ctx, f)
		isKind(t, "arrangement "+arrangement, err, fault.Invalid)
	}
}

func factsShapes(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	steps := []struct {
		values  string
		changed []string
	}{
		{`{"a":"1"}`, []string{"a"}},
		{`{"a":1}`, []string{"a"}},
		{`{"a":1.0}`, []string{"a"}},
		{`{"a":null}`, []string{"a"}},
		{`{"a":{}}`, []string{"a"}},
		{`{"a":[]}`, []string{"a"}},
		{`{"a":{"a.b":"x","a":{"b":"y"}}}`, []string{"a", `a."a.b"`, "a.a.b"}},
		{`{"a":["x"]}`, []string{`a."a.b"`, "a.a.b", "a[0]"}},
		{`{"a":false,"":"empty key"}`, []string{`""`, "a", "a[0]"}},
	}
	for _, step := range steps {
		_, changed, err := s.SaveFacts(ctx, factSet("a.example", step.values, start))
		ok(t, err)
		same(t, step.values+": changed", step.changed, changed)
	}
}

func factsInvalid(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for _, values := range []string{``, `[]`, `{"a":`, `{"a":NaN}`, `"x"`, `{"a":1}x`} {
		_, _, err := s.SaveFacts(ctx, factSet("a.example", values, start))
		isKind(t, "facts "+values, err, fault.Invalid)
	}
	_, err := s.Node(ctx, "a.example")
	isKind(t, "node", err, fault.NotFound)
}

func factsConcurrent(t *testing.T, s Store) {
	t.Helper()
	const writers, rounds = 8, 5
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				if _, _, err := s.SaveFacts(t.Context(), factSet("a.example", fmt.Sprintf(`{"w":%d,"r":{"%d":%d}}`, w, r, w), start)); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
			}
		})
	}
	wg.Wait()
	before, err := s.Facts(t.Context(), "a.example")
	ok(t, err)
	if before.Seq < 2 || before.Seq > writers*rounds {
		t.Errorf("seq is %d after %d saves", before.Seq, writers*rounds)
	}
	// What is stored must still be whole: a difference from it is exact.
	_, changed, err := s.SaveFacts(t.Context(), factSet("a.example", `{}`, start))
	ok(t, err)
	if len(changed) != 2 || changed[1] != "w" {
		t.Errorf("taking all away changed %q, want two paths", changed)
	}
}

func factLeaves(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for name, values := range map[fleet.Certname]string{
		"a.example": `{"os":{"family":"Debian"},"n":[1,2.50,true,null,{},[]],"we.ird":{"0":"k"}}`,
		"b.example": `{"os":{"family":"RedHat"},"n":"x"}`,
		"c.example": `{"os":"none"}`,
	} {
		_, _, err := s.SaveFacts(ctx, factSet(name, values, start))
		ok(t, err)
	}
	paths := []string{
		facts.PathText("os", "family"), facts.PathText("n"), facts.PathText("we.ird", "0"),
		facts.PathText("none"), facts.PathText("os"),
	}
	for i := range 6 {
		paths = append(paths, facts.PathText("n", int64(i)))
	}
	got, err := s.FactLeaves(ctx, []fleet.Certname{"c.example", "a.example", "b.example", "x.example"}, paths)
	ok(t, err)
	for _, leaves := range got {
		slices.SortFunc(leaves, func(a, b facts.Leaf) int { return strings.Compare(a.Path, b.Path) })
	}
	stored, err := s.Facts(ctx, "a.example")
	ok(t, err)
	all, err := facts.Flatten(stored.Values)
	ok(t, err)
	slices.SortFunc(all, func(a, b facts.Leaf) int { return strings.Compare(a.Path, b.Path) })
	same(t, "leaves", map[fleet.Certname][]facts.Leaf{
		"a.example": all,
		"b.example": {{Path: "n", Kind: facts.String, Text: "x"}, {Path: "os.family", Kind: facts.String, Text: "RedHat"}},
		"c.example": {{Path: "os", Kind: facts.String, Text: "none"}},
	}, got)
	for _, c := range [][2]any{{[]fleet.Certname{}, paths}, {[]fleet.Certname{"a.example"}, []string(nil)}, {[]fleet.Certname{"a.example"}, []string{"none"}}} {
		names, _ := c[0].([]fleet.Certname)
		paths, _ := c[1].([]string)
		none, err := s.FactLeaves(ctx, names, paths)
		ok(t, err)
		same(t, "none", 0, len(none))
	}
	_, err = s.FactLeaves(ctx, make([]fleet.Certname, inventory.MaxNamed+1), paths)
	isKind(t, "too many", err, fault.Invalid)
}
