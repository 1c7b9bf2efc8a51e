package cataloguetest

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// RunStore holds stores to the port's contract. open is called once a test and gives an empty one.
func RunStore(t *testing.T, open func(*testing.T) catalogue.Store) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, catalogue.Store){
		"what is saved is there":          savesAll,
		"what is there stays as it is":    keepsFirst,
		"what is forgotten comes again":   forgetsFirst,
		"an agent takes the place of one": replacesAgents,
		"metadata that are not there":     hasNot,
		"what is in use is not forgotten": keepsUsed,
		"another stamp for each change":   stamps,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0).UTC() }

func setOf(names ...string) action.Set {
	var found []action.Listed
	for _, name := range names {
		found = append(found, action.Listed{Name: name, Version: "1.0", Provider: action.BuiltIn, Digest: fleet.DigestOf([]byte(name))})
	}
	return action.NewSet(append(found, action.Listed{Name: "broken", Provider: action.External, Problem: "it says ' and \" and ä"}))
}

func metadataOf(name string) catalogue.Metadata {
	text := []byte(`{"name":"` + name + `","more":"` + strings.Repeat("ä", 5000) + `"}`)
	return catalogue.Metadata{
		Described: catalogue.Described{
			Digest: fleet.DigestOf([]byte(name)), Name: name, Version: "1.0", Provider: action.Choria, Description: "What " + name + " does", Known: at(1),
			Bytes: int64(len(text)),
		},
		Text: text,
	}
}

func save(t *testing.T, s catalogue.Store, c catalogue.Change) {
	t.Helper()
	if err := s.SaveCatalogue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, s catalogue.Store, want catalogue.Known) {
	t.Helper()
	known, err := s.Catalogue(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(known.Agents, func(a, b catalogue.Agent) int { return cmp.Compare(a.Node, b.Node) })
	slices.SortFunc(known.Modules, func(a, b catalogue.Described) int { return cmp.Compare(a.Name, b.Name) })
	for i := range known.Agents {
		known.Agents[i].Told = known.Agents[i].Told.UTC()
	}
	for i := range known.Modules {
		known.Modules[i].Known = known.Modules[i].Known.UTC()
	}
	if len(known.Sets) == 0 {
		known.Sets = nil
	}
	if diff := gocmp.Diff(want, known); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func savesAll(t *testing.T, s catalogue.Store) {
	is(t, s, catalogue.Known{})
	save(t, s, catalogue.Change{})
	is(t, s, catalogue.Known{})
	a, b, none := setOf("echo", "ping"), setOf("ping"), action.Set{}
	agents := []catalogue.Agent{
		{Node: "db-1", Set: b.Digest(), Version: "1.0", OS: "linux", Arch: "arm64", Told: at(1)},
		{Node: "web-1", Set: a.Digest(), Version: "1.0", OS: "linux", Arch: "amd64", Told: at(2)},
	}
	save(t, s, catalogue.Change{
		Sets: map[fleet.Digest]action.Set{a.Digest(): a, b.Digest(): b, none.Digest(): none}, Modules: []catalogue.Metadata{metadataOf("echo"), metadataOf("ping")},
		Agents: agents,
	})
	known, err := s.Catalogue(t.Context())
	if err != nil || len(known.Sets) != 3 || len(known.Sets[none.Digest()]) != 0 {
		t.Fatalf("%v, %v", known.Sets, err)
	}
	for digest, set := range known.Sets {
		if set.Digest() != digest && len(set) > 0 {
			t.Errorf("the set %s has the digest %s: %v", digest, set.Digest(), set)
		}
	}
	save(t, s, catalogue.Change{ForgetSets: []fleet.Digest{none.Digest()}})
	is(t, s, catalogue.Known{
		Agents: agents, Sets: map[fleet.Digest]action.Set{a.Digest(): a, b.Digest(): b}, Modules: []catalogue.Described{
			metadataOf("echo").Described, metadataOf("ping").Described,
		},
	})
	text, err := s.Metadata(t.Context(), metadataOf("ping").Digest)
	if err != nil || string(text) != string(metadataOf("ping").Text) {
		t.Errorf("metadata: %.80s, %v", text, err)
	}
}

func keepsFirst(t *testing.T, s catalogue.Store) {
	a := setOf("echo", "ping")
	save(t, s, catalogue.Change{Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Metadata{metadataOf("echo")}})
	other := metadataOf("echo")
	other.Description, other.Text = "another", []byte("{}")
	save(t, s, catalogue.Change{Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Metadata{other}})
	is(t, s, catalogue.Known{Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Described{metadataOf("echo").Described}})
}

func forgetsFirst(t *testing.T, s catalogue.Store) {
	a, b := setOf("echo"), setOf("ping")
	save(t, s, catalogue.Change{
		Sets: map[fleet.Digest]action.Set{a.Digest(): a, b.Digest(): b}, Modules: []catalogue.Metadata{metadataOf("echo"), metadataOf("ping")},
	})
	save(t, s, catalogue.Change{
		ForgetSets: []fleet.Digest{a.Digest(), b.Digest(), setOf("never").Digest()}, ForgetModules: []fleet.Digest{
			metadataOf("echo").Digest, metadataOf("ping").Digest,
		},
		Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Metadata{metadataOf("echo")},
	})
	is(t, s, catalogue.Known{Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Described{metadataOf("echo").Described}})
}

func replacesAgents(t *testing.T, s catalogue.Store) {
	many := make([]catalogue.Agent, 3000)
	for i := range many {
		many[i] = catalogue.Agent{
			Node: fleet.Certname("node-" + string(rune('a'+i%26)) + strings.Repeat("x", i/26)), Set: setOf("echo").Digest(), Version: "1", OS: "linux",
			Arch: "amd64", Told: at(i),
		}
		many[i].Node = many[i].Node[:min(len(many[i].Node), 200)]
	}
	slices.SortFunc(many, func(a, b catalogue.Agent) int { return cmp.Compare(a.Node, b.Node) })
	save(t, s, catalogue.Change{Agents: many})
	many[7].Version, many[7].Told = "2", at(9999)
	save(t, s, catalogue.Change{Agents: many[7:8]})
	is(t, s, catalogue.Known{Agents: many})
}

func hasNot(t *testing.T, s catalogue.Store) {
	if _, err := s.Metadata(t.Context(), fleet.DigestOf(nil)); fault.Of(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
}

func keepsUsed(t *testing.T, s catalogue.Store) {
	a, b := setOf("echo"), setOf("ping")
	agents := []catalogue.Agent{{Node: "web-1", Set: a.Digest(), Version: "1", OS: "linux", Arch: "amd64", Told: at(1)}}
	save(t, s, catalogue.Change{
		Sets: map[fleet.Digest]action.Set{a.Digest(): a, b.Digest(): b}, Modules: []catalogue.Metadata{metadataOf("echo"), metadataOf("ping")}, Agents: agents,
	})
	save(t, s, catalogue.Change{ // of a server that does not know of web-1 yet
		ForgetSets: []fleet.Digest{a.Digest(), b.Digest()}, ForgetModules: []fleet.Digest{metadataOf("echo").Digest, metadataOf("ping").Digest},
	})
	is(t, s, catalogue.Known{Agents: agents, Sets: map[fleet.Digest]action.Set{a.Digest(): a}, Modules: []catalogue.Described{metadataOf("echo").Described}})
}

func stamps(t *testing.T, s catalogue.Store) {
	a := setOf("echo")
	seen := map[string]int{}
	stamp := func() {
		t.Helper()
		one, err := s.Stamp(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen[one]++
	}
	stamp()
	agent := catalogue.Agent{Node: "web-1", Set: a.Digest(), Version: "1", OS: "linux", Arch: "amd64", Told: at(1)}
	for _, c := range []catalogue.Change{
		{Sets: map[fleet.Digest]action.Set{a.Digest(): a}},
		{Modules: []catalogue.Metadata{metadataOf("echo")}},
		{Agents: []catalogue.Agent{agent}},
		{Agents: []catalogue.Agent{{Node: "web-1", Set: a.Digest(), Version: "2", OS: "linux", Arch: "amd64", Told: at(2)}}},
		{Agents: []catalogue.Agent{{Node: "web-2", Set: a.Digest(), Version: "2", OS: "linux", Arch: "amd64", Told: at(2)}}},
	} {
		save(t, s, c)
		stamp()
	}
	if len(seen) != 6 {
		t.Errorf("six states have the stamps %v", seen)
	}
}
