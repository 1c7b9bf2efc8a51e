package pdbdiff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// nodes is how many there are; seed decides what they are like.
const (
	nodes = 320
	seed  = 20260301
)

// dawn is when the made-up fleet begins to report. Nothing in it comes from a clock.
var dawn = time.Date(2025, 3, 1, 6, 0, 0, 0, time.UTC)

// command is one command in the form in which the terminus sends it.
type command struct {
	name     string
	version  int
	certname string
	at       time.Time
	payload  []byte
}

// node is one made-up machine.
type node struct {
	index                       int
	certname, role              string
	environment, producer       string
	facts, catalog, reports     bool // what it has sent
	deactivated                 bool
	rng                         *rand.Rand
	catalogUUID, catalogVersion string
}

// object is a JSON object.
type object = map[string]any

var roles = [...]string{"web", "db", "cache", "build"}

// makeNode decides what the i-th node is. Every fortieth knows one thing only;
// every fiftieth is deactivated at the end.
func makeNode(i int) node {
	n := node{
		index: i, role: roles[i%len(roles)], facts: true, catalog: true, reports: true, deactivated: i%50 == 49,
		environment: "production", producer: fmt.Sprintf("puppet-%d.example.org", i%3+1),
		rng: rand.New(rand.NewPCG(seed, uint64(i))),
	}
	n.certname = fmt.Sprintf("%s-%03d.example.org", n.role, i)
	n.catalogUUID = n.uuid(1)
	n.catalogVersion = fmt.Sprint(1740800000 + i%7)
	switch {
	case i%10 == 9:
		n.environment = "Feature_1"
	case i%10 > 5:
		n.environment = "testing"
	}
	switch i % 40 {
	case 37:
		n.catalog, n.reports = false, false
	case 38:
		n.facts, n.catalog = false, false
	case 39:
		n.facts, n.reports = false, false
	}
	return n
}

// uuid is the node's k-th.
func (n node) uuid(k int) string {
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", 0xa0000000+n.index, k)
}

func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// fleet is every command, in the order in which it is sent; the last ones take
// nodes away and must come after all others.
func fleet() (commands, farewells []command) {
	for i := range nodes {
		n := makeNode(i)
		at := dawn.Add(time.Duration(i)*time.Minute + time.Duration(n.rng.IntN(1000))*time.Millisecond)
		if n.facts {
			commands = append(commands, n.command("replace_facts", 5, at, n.factSet(at)))
		}
		if n.catalog {
			commands = append(commands, n.command("replace_catalog", 9, at.Add(time.Second), n.makeCatalog(at.Add(time.Second))))
		}
		for k := range 3 {
			if n.reports {
				then := at.Add(time.Duration(k) * 7 * time.Hour)
				commands = append(commands, n.command("store_report", 8, then.Add(time.Minute), n.report(k, then)))
			}
		}
		if n.deactivated {
			gone := dawn.Add(48*time.Hour + time.Duration(i)*time.Second)
			farewells = append(farewells, n.command("deactivate_node", 3, gone, object{"certname": n.certname, "producer_timestamp": stamp(gone)}))
		}
	}
	return commands, farewells
}

func (n node) command(name string, version int, at time.Time, payload object) command {
	text, err := json.Marshal(payload)
	if err != nil {
		panic(err) // objects of this file always marshal
	}
	return command{name: name, version: version, certname: n.certname, at: at, payload: text}
}

// pick is one of some values.
func pick[T any](n node, values ...T) T { return values[n.rng.IntN(len(values))] }
