package deliver_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/deliver"
	"github.com/tutti-project/tutti/internal/deliver/delivertest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// braked is a service over a fake store whose nodes are in live mode.
func braked(limits *deliver.Limits) (*deliver.Service, *delivertest.Fake) {
	store := delivertest.New()
	return deliver.NewService(deliver.Parts{
		Store: store, Groups: new(delivertest.Groups), Promoter: new(delivertest.Shown), Setting: func() deliver.Mode { return deliver.Live },
		Limits: func() deliver.Limits { return *limits },
	}), store
}

func has(n int) func() (int, error) { return func() (int, error) { return n, nil } }

func TestRule(t *testing.T) {
	t.Parallel()
	limits := deliver.Limits{Hold: 0, Warn: 50}
	s, store := braked(&limits)
	one, two, three := delivertest.CatalogOf("one"), delivertest.CatalogOf("two"), delivertest.CatalogOf("three")
	rules := func(what string, c deliver.Catalog, left int, want deliver.Ruling) deliver.Ruled {
		t.Helper()
		got, err := s.Rule(t.Context(), "web-1", c, has(left))
		if err != nil || got.Ruling != want {
			t.Errorf("%s: %+v, %v; want %s", what, got, err, want)
		}
		return got
	}
	if got := rules("a first catalog", one, 0, deliver.Give); got.Over != "" {
		t.Errorf("a first catalog is over %s", got.Over)
	}
	store.Gave("web-1", one, 38)
	if got := rules("one that lost all", two, 0, deliver.Hold); got.Over != one.Digest {
		t.Errorf("ruled over %s, want %s", got.Over, one.Digest)
	}
	l, ok, err := s.OnHold(t.Context(), "web-1")
	if err != nil || !ok || l.Was != 38 || l.Left != 0 || l.Kept != one || l.Catalog != two {
		t.Errorf("held %+v, %v, %v", l, ok, err)
	}
	const story = "catalog held: lost all of its 38 resources (version "
	if text := l.Story(); !strings.HasPrefix(text, story) || !strings.HasSuffix(text, "let go: tutti catalog let web-1") ||
		!strings.Contains(text, "it keeps the one of version "+one.Version.Short()) {
		t.Errorf("people are told %q", text)
	}
	_, err = s.Rule(t.Context(), "web-1", two, func() (int, error) {
		t.Error("what is known to be held is counted again")
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
	newer := two
	newer.Version = three.Version
	rules("the same of another version", newer, 0, deliver.Hold)
	if l, _, err := s.OnHold(t.Context(), "web-1"); err != nil || l.Catalog.Version != three.Version {
		t.Errorf("the hold is of version %s (%v), want the newest", l.Catalog.Version, err)
	}
	if _, err := s.LetGo(t.Context(), deliver.Let{Node: "web-1", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	rules("what was let go", newer, 0, deliver.Give)
	rules("another one that lost all", three, 0, deliver.Hold)
	rules("one that lost most", delivertest.CatalogOf("four"), 3, deliver.Warn)
	if n := s.Warned(); n != 1 {
		t.Errorf("%d warnings counted, want 1", n)
	}
	limits = deliver.Limits{Hold: deliver.Off, Warn: deliver.Off}
	rules("the brake is off", three, 0, deliver.Give)
	for _, l := range []deliver.Let{{By: "ann"}, {Node: "web-1", Version: two.Version, By: "ann"}} {
		if _, err := s.LetGo(t.Context(), l); fault.Of(err) != fault.Invalid {
			t.Errorf("let go of %+v: %v", l, err)
		}
	}
}

// TestHoldsWhateverComes: catalogs of some versions are given to some nodes, let go, mended and moved into released mode, in any order. A node in live
// mode never loses all of its resources unless somebody said so, and a hold is there exactly while its newest word is that.
func TestHoldsWhateverComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := deliver.Limits{Hold: 0, Warn: 50}
		s, store := braked(&limits)
		nodes := []fleet.Certname{"a", "b"}
		sizes := map[fleet.Certname]int{}
		let := map[string]bool{}
		held := map[fleet.Certname]string{}
		serial := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"give": func(t *rapid.T) {
				node, text, left := rapid.SampledFrom(nodes).Draw(t, "node"), rapid.StringMatching("[a-d]").Draw(t, "catalog"), rapid.IntRange(0, 4).Draw(t, "left")
				serial++
				c := delivertest.CatalogOf(text + string(rune('0'+left)))
				c.Version, c.Compilation, c.CompiledAt = fleet.DigestOf([]byte(text)), serial, time.Unix(serial, 0)
				had, _, _ := store.Had(t.Context(), node)
				ruled, err := s.Rule(t.Context(), node, c, has(left))
				if err != nil {
					t.Fatal(err)
				}
				word := let["node "+string(node)+string(c.Digest)] || let[string(c.Version)]
				if lost := left == 0 && sizes[node] > 0 && had.Digest != c.Digest; (ruled.Ruling == deliver.Hold) != (lost && !word) {
					t.Fatalf("%d of %d: %s though somebody's word is %v", left, sizes[node], ruled.Ruling, word)
				}
				if ruled.Ruling == deliver.Hold {
					held[node] = string(c.Digest)
					return
				}
				store.Gave(node, c, left)
				sizes[node] = left
				delete(held, node)
			},
			"let": func(t *rapid.T) {
				node := rapid.SampledFrom(nodes).Draw(t, "node")
				l, ok, _ := s.OnHold(t.Context(), node)
				order := deliver.Let{Node: node, By: "ann"}
				if rapid.Bool().Draw(t, "version") && ok {
					order = deliver.Let{Version: l.Catalog.Version, By: "ann"}
				}
				freed, err := s.LetGo(t.Context(), order)
				if (err == nil) != ok {
					t.Fatalf("let go of %+v: %v", order, err)
				}
				if order.Version != "" {
					let[string(order.Version)] = true
				} else if ok {
					let["node "+string(node)+string(l.Catalog.Digest)] = true
				}
				for _, n := range freed {
					delete(held, n)
				}
			},
			"": func(t *rapid.T) {
				for _, node := range nodes {
					l, ok, err := s.OnHold(t.Context(), node)
					if err != nil || ok != (held[node] != "") || ok && string(l.Catalog.Digest) != held[node] {
						t.Fatalf("%s: held %v %s (%v), want %q", node, ok, l.Catalog.Digest, err, held[node])
					}
				}
			},
		})
	})
}
