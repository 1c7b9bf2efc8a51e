package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// One evaluator decides: the nodes of a group are those that a compilation would
// find in it.
func TestMembersAreThoseThatClassificationFinds(t *testing.T) {
	t.Parallel()
	p := openParts(t, func(*settings.Config) {})
	var names []fleet.Certname
	for i := range 12 {
		name := fleet.Certname(fmt.Sprint("web-", i))
		names = append(names, name)
		values := fmt.Sprintf(`{"n":%d,"list":[%d.50,true,null,{},"x"],"os":{"family":%q},"odd.key":{"0":"k%d"}}`, i, i, []string{"Debian", "RedHat"}[i%2], i%3)
		if i == 11 {
			continue // nothing is known of it
		}
		if _, _, err := p.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: "production", Values: []byte(values)}); err != nil {
			t.Fatal(err)
		}
	}
	enrolled(t, p, "web-3")
	pinned := []fleet.Certname{"web-10", "web-11"}
	for _, rule := range []string{
		`facts.os.family = "Debian"`, `facts.n >= 5 and facts.list[0] < 9`, `facts.list[1] = true`, `facts.list[1] = "true"`, `facts.list[0] = "3.50"`,
		`facts.list[2] = ""`, `facts.list[3] != "x"`, `facts.os = "Debian"`, `facts."odd.key"."0" = "k1"`, `facts."odd.key"[0] = "k1"`,
		`trusted.certname ~ "."`, `not trusted.certname = "web-3" and facts.n > 1`, `name ~ "[24]$"`,
	} {
		id := newGroup(t, p, classify.RootID, rule, pinned...)
		members, err := p.groups.Members(t.Context(), id, names)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			explained, err := p.groups.Explain(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			isPinned, got := members[name]
			if want := slices.Contains(explained.Result.Groups, id); got != want || isPinned != slices.Contains(pinned, name) {
				t.Errorf("%s: %s is a member: %t, pinned: %t; want %t", rule, name, got, isPinned, want)
			}
		}
	}
	none, err := p.groups.Members(t.Context(), classify.NewID(), names)
	if err != nil || len(none) != 0 {
		t.Errorf("of no group: %v, %v", none, err)
	}
}

// enrolled gives a node a certificate.
func enrolled(t *testing.T, p *parts, name fleet.Certname) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: string(name)}}, key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.ca.Requests.Submit(t.Context(), name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.ca.Requests.Sign(t.Context(), name, 0); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkMembers asks which of 20 000 nodes are in a group that is below another.
func BenchmarkMembers(b *testing.B) {
	p := openParts(b, func(*settings.Config) {})
	const nodes = 20_000
	names := make([]fleet.Certname, nodes)
	var saving errgroup.Group
	saving.SetLimit(32)
	for i := range nodes {
		names[i] = fleet.Certname(fmt.Sprintf("node-%05d", i))
		values := map[string]any{"os": map[string]any{"family": []string{"Debian", "RedHat"}[i%2]}, "cores": i % 64}
		for n := range 28 {
			values[fmt.Sprint("fact_", n)] = fmt.Sprint(n, "-", i)
		}
		saving.Go(func() error {
			text, err := json.Marshal(values)
			if err != nil {
				return err
			}
			_, _, err = p.store.Facts.SaveFacts(b.Context(), inventory.FactSet{Certname: names[i], Environment: "production", Values: text})
			return err
		})
	}
	if err := saving.Wait(); err != nil {
		b.Fatal(err)
	}
	want := 0
	for i := range nodes {
		if i%2 == 0 && i%64 >= 32 {
			want++
		}
	}
	above := newGroup(b, p, classify.RootID, `facts.os.family = "Debian"`)
	group := newGroup(b, p, above, `facts.cores >= 32 and not name ~ "^web"`)
	b.ReportAllocs()
	for b.Loop() {
		found := 0
		for batch := range slices.Chunk(names, inventory.MaxNamed) {
			members, err := p.groups.Members(b.Context(), group, batch)
			if err != nil {
				b.Fatal(err)
			}
			found += len(members)
		}
		if found != want {
			b.Fatal(found)
		}
	}
	b.ReportMetric(nodes*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
}

func newGroup(tb testing.TB, p *parts, parent classify.ID, rule string, pinned ...fleet.Certname) classify.ID {
	tb.Helper()
	parsed, err := classify.ParseRule(rule)
	if err != nil {
		tb.Fatal(err)
	}
	id := classify.NewID()
	g := classify.Group{ID: id, Name: "group " + string(id[:8]), Parent: parent, Rule: parsed, Pinned: pinned}
	if _, err := p.store.Groups.ChangeGroups(tb.Context(), []classify.Change{{Kind: classify.Create, Group: g}}); err != nil {
		tb.Fatal(err)
	}
	return id
}
