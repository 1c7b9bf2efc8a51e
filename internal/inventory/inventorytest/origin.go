package inventorytest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// originCases are about what other servers send, and about nodes that leave.
func originCases() map[string]func(t *testing.T, s Store) {
	return map[string]func(t *testing.T, s Store){
		"facts of another server may come late":  factsLate,
		"facts that arrive here are never late":  factsArrive,
		"numbered facts come in any order":       factsNumbered,
		"packages are replaced as a whole":       packages,
		"received catalogs may come late":        receivedCatalogs,
		"received catalogs and compilations":     receivedAndCompiled,
		"catalog inputs may come late":           catalogInputs,
		"reports are the latest by their origin": reportOrigin,
		"a deactivated node comes back":          deactivated,
		"a deactivation may come late":           deactivatedLate,
		"nodes expire without a sign of life":    expired,
		"nodes that may not expire stay":         configured,
		"nodes that left long ago are purged":    left,
	}
}

func from(server string, at time.Time) inventory.Origin {
	return inventory.Origin{Producer: server, ProducedAt: at}
}

func sentFacts(node fleet.Certname, values string, produced time.Time) inventory.FactSet {
	f := factSet(node, values, start)
	f.Origin, f.Timestamp = from("ps.example", produced), produced
	return f
}

func factsNumbered(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	save := func(number int64, values string, minute int) (inventory.FactSet, []string) {
		f := factSet("a.example", values, start.Add(time.Duration(minute)*time.Minute))
		f.Number = number
		stored, changed, err := s.SaveFacts(ctx, f)
		ok(t, err)
		return stored, changed
	}
	newest, _ := save(7, `{"a":7}`, 0)
	same(t, "number", int64(7), newest.Number)
	for _, number := range []int64{7, 3} { // repeated, and overtaken
		stored, changed := save(number, `{"a":3}`, 1)
		same(t, "stored", newest, stored)
		same(t, "changed", []string(nil), changed)
	}
	stock, changed := save(0, `{"a":0}`, 2) // comes with a run
	same(t, "changed", []string{"a"}, changed)
	same(t, "number", int64(7), stock.Number)
	stored, _ := save(6, `{"a":6}`, 3)
	same(t, "stored", stock, stored)
	stored, changed = save(8, `{"a":0}`, 4)
	same(t, "changed", []string(nil), changed)
	same(t, "number and seq", [2]int64{8, stock.Seq}, [2]int64{stored.Number, stored.Seq})
	got, err := s.Facts(ctx, "a.example")
	ok(t, err)
	same(t, "facts", stored, got)
}

func factsLate(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	newer, _, err := s.SaveFacts(ctx, sentFacts("a.example", `{"a":2}`, start))
	ok(t, err)
	same(t, "origin", from("ps.example", start), newer.Origin)
	late := sentFacts("a.example", `{"b":1}`, start.Add(-time.Second))
	late.Environment, late.ReceivedAt = "late", start.Add(time.Hour)
	stored, changed, err := s.SaveFacts(ctx, late)
	ok(t, err)
	same(t, "stored", newer, stored)
	same(t, "changed", []string(nil), changed)
	got, err := s.Facts(ctx, "a.example")
	ok(t, err)
	same(t, "facts", newer, got)
	readNode(t, s, inventory.Node{Certname: "a.example", Environment: "production", FactsAt: start, CreatedAt: start})
	_, changed, err = s.SaveFacts(ctx, sentFacts("a.example", `{"a":3}`, start)) // as old as the stored ones
	ok(t, err)
	same(t, "changed", []string{"a"}, changed)
}

func factsArrive(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	_, _, err := s.SaveFacts(ctx, sentFacts("a.example", `{"a":1}`, start.Add(time.Hour))) // another clock is ahead
	ok(t, err)
	stored, changed, err := s.SaveFacts(ctx, factSet("a.example", `{"a":2}`, start))
	ok(t, err)
	same(t, "changed", []string{"a"}, changed)
	same(t, "origin", from("", start), stored.Origin)
}

func packages(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	vim, ssh := inventory.Package{Name: "vim", Version: "2:9.0", Provider: "apt"}, inventory.Package{Name: "openssh", Version: "1", Provider: "apt"}
	newSSH, gem := inventory.Package{Name: "openssh", Version: "2", Provider: "apt"}, inventory.Package{Name: "openssh", Version: "1", Provider: "gem"}
	for i, step := range []struct{ given, want []inventory.Package }{
		{[]inventory.Package{vim, ssh, vim}, []inventory.Package{ssh, vim}},
		{[]inventory.Package{ssh, vim}, []inventory.Package{ssh, vim}},
		{[]inventory.Package{vim, newSSH, gem}, []inventory.Package{gem, newSSH, vim}},
		{nil, nil},
		{[]inventory.Package{vim}, []inventory.Package{vim}},
	} {
		for _, node := range []fleet.Certname{"a.example", "b.example"} {
			f := sentFacts(node, `{"a":1}`, start.Add(time.Duration(i)*time.Second))
			f.Packages = step.given
			_, _, err := s.SaveFacts(ctx, f)
			ok(t, err)
			got, err := s.Packages(ctx, node)
			ok(t, err)
			same(t, "packages", step.want, got)
		}
	}
	late := sentFacts("a.example", `{"a":1}`, start)
	late.Packages = []inventory.Package{ssh}
	_, _, err := s.SaveFacts(ctx, late)
	ok(t, err)
	got, err := s.Packages(ctx, "a.example")
	ok(t, err)
	same(t, "packages after late facts", []inventory.Package{vim}, got)
	ok(t, s.PurgeNode(ctx, "a.example"))
	got, err = s.Packages(ctx, "a.example")
	ok(t, err)
	same(t, "packages of a purged node", []inventory.Package(nil), got)
	got, err = s.Packages(ctx, "b.example")
	ok(t, err)
	same(t, "packages of another node", []inventory.Package{vim}, got)
}

func received(node fleet.Certname, digest string, produced time.Time) inventory.Catalog {
	c := catalog(node, digest)
	c.Origin, c.Received, c.Version, c.ConfigVersion = from("ps.example", produced), true, "", "1700000000"
	return c
}

func receivedCatalogs(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	first := received("a.example", "1", start)
	ok(t, s.SaveCatalog(ctx, first))
	readCatalog(t, s, first)
	digests, err := s.CatalogDigests(ctx)
	ok(t, err)
	same(t, "documents", []fleet.Digest(nil), digests)
	late := received("a.example", "2", start.Add(-time.Second))
	late.CompiledAt, late.Environment = start.Add(time.Hour), "late"
	ok(t, s.SaveCatalog(ctx, late))
	readCatalog(t, s, first)
	node, err := s.Node(ctx, "a.example")
	ok(t, err)
	same(t, "environment", first.Environment, node.Environment)
	again := received("a.example", "1", start.Add(time.Minute))
	again.UUID = "again"
	ok(t, s.SaveCatalog(ctx, again))
	readCatalog(t, s, again)
}

func receivedAndCompiled(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	compiled := catalog("a.example", "1")
	compiled.Compilation = 8
	ok(t, s.SaveCatalog(ctx, compiled))
	ok(t, s.SaveCatalog(ctx, received("a.example", "2", start.Add(-time.Second))))
	readCatalog(t, s, compiled)
	sent := received("a.example", "3", start.Add(time.Hour))
	ok(t, s.SaveCatalog(ctx, sent))
	sent.Compilation = 8
	readCatalog(t, s, sent)
	older := catalog("a.example", "4")
	older.Compilation, older.CompiledAt = 7, start.Add(2*time.Hour)
	ok(t, s.SaveCatalog(ctx, older))
	readCatalog(t, s, sent)
	newer := catalog("a.example", "5")
	newer.Compilation = 9 // what is compiled here is the newest, whatever the clocks say
	ok(t, s.SaveCatalog(ctx, newer))
	readCatalog(t, s, newer)
	digests, err := s.CatalogDigests(ctx)
	ok(t, err)
	same(t, "documents", []fleet.Digest{newer.Digest}, digests)
}

func reportOrigin(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	newest := report("a.example", 5)
	ok(t, s.SaveReport(ctx, newest))
	late := report("a.example", 6)
	late.ProducedAt = start
	ok(t, s.SaveReport(ctx, late))
	plan := report("a.example", 7)
	plan.Type, plan.Environment = "plan", "plans"
	ok(t, s.SaveReport(ctx, plan))
	node, err := s.Node(ctx, "a.example")
	ok(t, err)
	same(t, "latest", newest.ID, node.LatestReport)
	same(t, "environment", newest.Environment, node.Environment)
	got, err := s.Report(ctx, string(plan.ID))
	ok(t, err)
	same(t, "plan", plan, got)
}

func isActive(t *testing.T, what string, s Store, name fleet.Certname, want bool) {
	t.Helper()
	node, err := s.Node(t.Context(), name)
	ok(t, err)
	same(t, what, want, node.DeactivatedAt.IsZero() && node.ExpiredAt.IsZero())
}

func deactivated(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	at := start.Add(time.Hour)
	for name, save := range map[fleet.Certname]func(name fleet.Certname, produced time.Time) error{
		"facts.example": func(name fleet.Certname, produced time.Time) error {
			_, _, err := s.SaveFacts(ctx, sentFacts(name, `{"a":1}`, produced))
			return err
		},
		"catalog.example": func(name fleet.Certname, produced time.Time) error {
			return s.SaveCatalog(ctx, received(name, "1", produced))
		},
		"report.example": func(name fleet.Certname, produced time.Time) error {
			r := report(name, int(produced.Sub(start)/time.Minute))
			r.ProducedAt = produced
			return s.SaveReport(ctx, r)
		},
	} {
		ok(t, save(name, start))
		ok(t, s.DeactivateNode(ctx, name, at))
		node, err := s.Node(ctx, name)
		ok(t, err)
		same(t, string(name), at, node.DeactivatedAt)
		ok(t, save(name, at.Add(-time.Minute)))
		isActive(t, "older "+string(name), s, name, false)
		ok(t, save(name, at.Add(time.Minute)))
		isActive(t, "newer "+string(name), s, name, true)
	}
	ok(t, s.DeactivateNode(ctx, "compiled.example", start)) // nothing else is known of it
	isActive(t, "new", s, "compiled.example", false)
	c := catalog("compiled.example", "1")
	c.CompiledAt = at
	ok(t, s.SaveCatalog(ctx, c))
	isActive(t, "compiled", s, "compiled.example", false)
}

func deactivatedLate(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	_, _, err := s.SaveFacts(ctx, sentFacts("a.example", `{"a":1}`, start))
	ok(t, err)
	ok(t, s.DeactivateNode(ctx, "a.example", start.Add(-time.Second)))
	isActive(t, "late", s, "a.example", true)
	ok(t, s.DeactivateNode(ctx, "a.example", start.Add(time.Hour)))
	ok(t, s.DeactivateNode(ctx, "a.example", start.Add(time.Minute)))
	node, err := s.Node(ctx, "a.example")
	ok(t, err)
	same(t, "since", start.Add(time.Hour), node.DeactivatedAt)
}

func expired(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	limit, now := start.Add(time.Hour), start.Add(24*time.Hour)
	_, _, err := s.SaveFacts(ctx, sentFacts("old.example", `{"a":1}`, start))
	ok(t, err)
	c := catalog("old.example", "1")
	c.CompiledAt = limit.Add(time.Minute) // compiled for a node that is gone
	ok(t, s.SaveCatalog(ctx, c))
	_, _, err = s.SaveFacts(ctx, sentFacts("facts.example", `{"a":1}`, limit))
	ok(t, err)
	ok(t, s.SaveCatalog(ctx, received("catalog.example", "1", limit)))
	r := report("report.example", 1)
	r.ProducedAt = limit
	ok(t, s.SaveReport(ctx, r))
	ok(t, s.DeactivateNode(ctx, "gone.example", start))
	count, err := s.ExpireNodes(ctx, limit, now)
	ok(t, err)
	same(t, "count", 1, count)
	node, err := s.Node(ctx, "old.example")
	ok(t, err)
	same(t, "expired", now, node.ExpiredAt)
	for _, name := range []fleet.Certname{"facts.example", "catalog.example", "report.example"} {
		isActive(t, string(name), s, name, true)
	}
	count, err = s.ExpireNodes(ctx, limit, now.Add(time.Hour))
	ok(t, err)
	same(t, "count of a second time", 0, count)
	_, _, err = s.SaveFacts(ctx, sentFacts("old.example", `{"a":1}`, now.Add(time.Second)))
	ok(t, err)
	isActive(t, "back", s, "old.example", true)
}

func configured(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	_, _, err := s.SaveFacts(ctx, sentFacts("a.example", `{"a":1}`, start))
	ok(t, err)
	ok(t, s.ConfigureExpiration(ctx, "a.example", false, start.Add(time.Minute)))
	ok(t, s.ConfigureExpiration(ctx, "a.example", true, start)) // late
	ok(t, s.ConfigureExpiration(ctx, "new.example", false, start))
	now := start.Add(24 * time.Hour)
	count, err := s.ExpireNodes(ctx, now, now)
	ok(t, err)
	same(t, "count", 0, count)
	ok(t, s.ConfigureExpiration(ctx, "a.example", true, start.Add(time.Hour)))
	count, err = s.ExpireNodes(ctx, start.Add(time.Hour), now)
	ok(t, err)
	same(t, "count before the word was old", 0, count)
	count, err = s.ExpireNodes(ctx, now, now)
	ok(t, err)
	same(t, "count after", 1, count)
}

func left(t *testing.T, s Store) {
	t.Helper()
	ctx := t.Context()
	for i, name := range []fleet.Certname{"d.example", "c.example", "b.example"} {
		ok(t, s.DeactivateNode(ctx, name, start.Add(time.Duration(i)*time.Minute)))
	}
	_, _, err := s.SaveFacts(ctx, inventory.FactSet{
		Certname: "a.example", Values: json.RawMessage(`{}`), ReceivedAt: start.Add(-time.Hour), Origin: from("ps", start.Add(-time.Hour)),
	})
	ok(t, err)
	_, err = s.ExpireNodes(ctx, start, start.Add(-time.Minute))
	ok(t, err)
	_, _, err = s.SaveFacts(ctx, factSet("active.example", `{}`, start))
	ok(t, err)
	ok(t, s.SaveCatalog(ctx, catalog("d.example", "d")))
	_, _, err = s.SaveFacts(ctx, factSet("back.example", `{}`, start))
	ok(t, err)
	ok(t, s.DeactivateNode(ctx, "back.example", start.Add(time.Second)))
	_, _, err = s.SaveFacts(ctx, factSet("back.example", `{}`, start.Add(2*time.Second)))
	ok(t, err)
	for _, step := range []struct {
		limit int
		want  []fleet.Certname
	}{{0, nil}, {2, []fleet.Certname{"a.example", "d.example"}}, {5, []fleet.Certname{"c.example"}}, {5, nil}} {
		got, err := s.PurgeLeftNodes(ctx, start.Add(2*time.Minute), step.limit)
		ok(t, err)
		same(t, "purged", step.want, got)
	}
	isKind(t, "purge again", s.PurgeNode(ctx, "d.example"), fault.NotFound)
	_, err = s.Catalog(ctx, "d.example")
	isKind(t, "catalog", err, fault.NotFound)
	nodes, err := s.Nodes(ctx, inventory.Page{Limit: 9})
	ok(t, err)
	var names []fleet.Certname
	for _, node := range nodes {
		names = append(names, node.Certname)
	}
	same(t, "nodes", []fleet.Certname{"active.example", "b.example", "back.example"}, names)
}
