package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/hint/bus"
)

// ordered has nodes of both servers ordered from both. What happened is read from the nodes themselves: what each command wrote there, and the agent's own
// record of what it was asked.
func (f *several) ordered(t *testing.T, a, b *server) {
	t.Helper()
	names := []string{"at-a.test", "at-b.test"}
	nodes := map[*server]*daemon{a: joinNode(t, a, names[0]), b: joinNode(t, b, names[1])}
	for s, d := range nodes {
		d.start(t)
		d.connectedTo(t, strings.TrimPrefix(s.url, "https://"))
	}
	for _, s := range []*server{a, b} {
		eventually(t, patience, "NATS is there for "+s.data, func() bool { return decode[api.Cluster](t, s, "cluster", "status").Bus.State == api.BusUp })
		eventually(t, patience, "both nodes are known on "+s.data, func() bool { return connected(t, s) == len(names) })
	}
	f.modulesAreKnown(t, []*server{a, b}, names)
	same(t, "who dispatches", idOf(t, a), f.sql(t, "SELECT holder FROM leases WHERE name = 'jobs' AND until > 0"))
	for node, s := range map[string]*server{names[0]: a, names[1]: b} {
		same(t, "the server of "+node, idOf(t, s), f.sql(t, "SELECT server FROM presence WHERE uri = 'pcp://"+node+"/agent'"))
	}

	count := filepath.Join(t.TempDir(), "count.")
	ran := map[string][]string{} // by node, in order
	order := func(s *server, node, word string, more ...string) string {
		t.Helper()
		began := time.Now()
		said := s.tutti(t, append([]string{"command", "run", "echo " + word + " >> " + count + node + "; echo " + word, "--targets", node, "--yes"}, more...)...)
		t.Logf("%s on %s: %s", word, node, time.Since(began))
		ran[node] = append(ran[node], word)
		return said
	}
	for _, node := range names {
		contains(t, order(a, node, "from-a"), "from-a")
		contains(t, order(b, node, "from-b"), "from-b")
	}

	f.traced(t, names[1], map[string]*server{"wait for its turn": a, "run": b})

	// NATS is away: an order for the other server's node waits, and is done once when NATS is back.
	f.nats.Kill()
	for _, s := range []*server{a, b} {
		eventually(t, patience, "NATS is away for "+s.data, func() bool { return decode[api.Cluster](t, s, "cluster", "status").Bus.State == api.BusDown })
	}
	order(a, names[1], "later", "--no-wait")
	order(a, names[0], "meanwhile")
	same(t, "what came to b's node without NATS", strings.Join(ran[names[1]][:2], "\n")+"\n", readText(t, count+names[1]))
	f.nats.Again()
	eventually(t, patience, "what waited is done", func() bool { return strings.HasSuffix(readText(t, count+names[1]), "later\n") })

	for _, d := range nodes {
		same(t, "what commands wrote on "+d.name, strings.Join(ran[d.name], "\n")+"\n", readText(t, count+d.name))
		var records string
		eventually(t, patience, "what was asked of "+d.name+" is over", func() bool {
			records = d.executed(t)
			return strings.Count(records, " success\n") == len(ran[d.name])
		})
		known := ""
		if !within(patience, func() bool {
			known = f.sql(t, "SELECT id || ' success' FROM job_runs WHERE node = '"+d.name+"' AND state = 'succeeded' ORDER BY id") + "\n"
			return known == records
		}) {
			same(t, "what the servers know of "+d.name, records, known)
		}
	}
	for _, d := range nodes {
		d.end(syscall.SIGTERM)
	}
}

// modulesAreKnown wants each server to know what each node can do, whichever server the node is connected to.
func (f *several) modulesAreKnown(t *testing.T, servers []*server, nodes []string) {
	t.Helper()
	for _, s := range servers {
		for _, node := range nodes {
			eventually(t, patience, s.data+" knows the modules of "+node, func() bool {
				r := s.try(t, "action", "list", "--node", node)
				return r.code == 0 && strings.Contains(r.out, "rpcutil") && strings.Contains(r.out, "service")
			})
		}
	}
}

// hints listens to what servers tell each other from now on, and says whether there was one of a kind.
func (f *several) hints(t *testing.T) (said func(kind string) bool) {
	t.Helper()
	ear := f.nats.Join(t)
	t.Cleanup(func() { _ = ear.Close() })
	var kinds sync.Map
	_, err := ear.Subscribe(bus.Subscriber{Subject: "tutti.hint", Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
		var told map[string][]string
		err := json.Unmarshal(data, &told)
		for kind := range told {
			kinds.Store(kind, true)
		}
		return nil, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func(kind string) bool {
		_, is := kinds.Load(kind)
		return is
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

// executed is the commands of which the agent has a record, one in a line, with what became of it.
func (d *daemon) executed(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(d.dir, "data", "spool", "*", "metadata")) // in order
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, path := range found {
		var kept struct {
			Module string `json:"module"`
			Status string `json:"status"`
		}
		if err := json.Unmarshal([]byte(readText(t, path)), &kept); err != nil {
			t.Fatal(err)
		}
		if kept.Module == "command" {
			fmt.Fprintln(&all, filepath.Base(filepath.Dir(path)), kept.Status)
		}
	}
	return all.String()
}
