package e2e_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/tutti-project/tutti/internal/store/backup"
)

// Two servers on PostgreSQL, S3 and NATS are backed up while both store facts, sign and revoke. Then all of it is lost. What was acknowledged before the
// backup began is in it, whichever server acknowledged it, and the restored servers go on as two.
func TestABackupOfServersUnderLoad(t *testing.T) {
	begin(t, 120)
	f := startSeveral(t)
	a, b := f.server(t, "a", "--autosign", "all", "--facts-per-minute", "0"), f.server(t, "b", "--autosign", "all", "--facts-per-minute", "0")
	a.startFor(t)
	b.startFor(t)
	a.deploy(t, "production")
	key := filepath.Join(f.dir, "key")
	public := strings.TrimSpace(a.tutti(t, "backup", "key", key))

	l := startLoad(t, a, b)
	eventually(t, patience, "both servers are busy", func() bool { return l.busy(5) })
	begun := l.acknowledged()
	made := decode[backup.Result](t, a, "backup", "create", filepath.Join(f.dir, "backups")+"/", "--recipient", public, "--database", f.database,
		"--blobs", "s3://tutti/content")
	later := l.acknowledged()
	l.stop(t)
	if made.Rows == 0 || made.Blobs == 0 {
		t.Errorf("%+v", made)
	}
	t.Logf("acknowledged when the backup began: %s; when it had ended: %s", begun, later)
	if later.count() == begun.count() {
		t.Error("nothing was acknowledged meanwhile")
	}
	for _, s := range []*server{a, b} {
		if err := s.crash(); err != nil {
			t.Error(err)
		}
	}

	// Everything is lost but the backup and the key.
	f.sql(t, "CREATE DATABASE restored")
	f.database = strings.Replace(f.database, "/postgres?", "/restored?", 1)
	c, d := f.server(t, "c", "--autosign", "all", "--blobs", "s3://tutti/restored"), f.server(t, "d", "--autosign", "all", "--blobs", "s3://tutti/restored")
	contains(t,
		c.tutti(t, "backup", "restore", filepath.Join(f.dir, "backups"), "--identity-file", key, "--database", f.database, "--blobs", "s3://tutti/restored"),
		"Restored all of backup "+made.ID)
	c.startFor(t)
	l.isKnown(t, c, begun)
	d.startFor(t) // takes CA and seal from the database
	l.isKnown(t, d, begun)
	same(t, "who uses the records", "2", f.sql(t, "SELECT count(*) FROM servers"))
	contains(t, d.tutti(t, "code", "status"), "production")
	n := enrol(t, c, "fresh.test")
	if a := n.at(d).must(t, http.MethodGet, "/puppet/v3/file_content/modules/story/a.txt?environment=production", "", nil); a.status != http.StatusOK {
		t.Errorf("content that was backed up: %d %s", a.status, a.body)
	}
}

// serversLoad is nodes that send facts to two servers, and certificates that are signed and revoked there.
type serversLoad struct {
	ended sync.WaitGroup
	nodes []*node

	mu   sync.Mutex
	over bool
	done acknowledgements
	err  error
}

// acknowledgements is what servers said that they have.
type acknowledgements struct {
	facts   map[string]int  // of a node, the number of its newest facts
	signed  map[string]bool // names; true: revoked
	servers map[string]int  // how many came from each
}

func (a acknowledgements) count() (n int) {
	for _, of := range a.servers {
		n += of
	}
	return n
}

func (a acknowledgements) String() string {
	return fmt.Sprintf("facts %v, certificates %d, by server %v", a.facts, len(a.signed), a.servers)
}

func startLoad(t *testing.T, servers ...*server) *serversLoad {
	t.Helper()
	l := &serversLoad{done: acknowledgements{facts: map[string]int{}, signed: map[string]bool{}, servers: map[string]int{}}}
	for i, s := range servers {
		n, by := enrol(t, s, fmt.Sprintf("load-%d.test", i)), anonymous(t, s)
		l.nodes = append(l.nodes, n)
		l.ended.Go(func() { l.sendFacts(n) })
		l.ended.Go(func() { l.sign(t, s, by, fmt.Sprintf("signed-%d", i)) })
	}
	t.Cleanup(l.end)
	return l
}

// sendFacts sends facts with growing numbers, one after the other.
func (l *serversLoad) sendFacts(n *node) {
	for number := 1; !l.isOver(); number++ {
		answer, err := n.do(http.MethodPut, "/puppet/v3/facts/"+n.name+"?environment=production", "application/json",
			factsJSON(n.name, map[string]any{"number": number}))
		if err == nil && answer.status != http.StatusOK {
			if answer.status == http.StatusServiceUnavailable || answer.status == http.StatusTooManyRequests {
				number--
				continue
			}
			err = fmt.Errorf("facts: %d %s", answer.status, answer.body)
		}
		l.note(err, func(a *acknowledgements) { a.facts[n.name] = number; a.servers[n.server.data]++ })
		if err != nil {
			return
		}
	}
}

// sign has certificates signed, and every second one revoked.
func (l *serversLoad) sign(t *testing.T, s *server, by *node, prefix string) {
	t.Helper()
	for number := 1; !l.isOver(); number++ {
		name := fmt.Sprintf("%s-%d.test", prefix, number)
		_, err := requestCertificate(by, name)
		l.note(err, func(a *acknowledgements) { a.signed[name] = false; a.servers[s.data]++ })
		if err == nil && number%2 == 0 {
			r := s.try(t, "ca", "revoke", name)
			if r.code != 0 {
				err = errors.New(r.text())
			}
			l.note(err, func(a *acknowledgements) { a.signed[name] = true; a.servers[s.data]++ })
		}
		if err != nil {
			return
		}
	}
}

func (l *serversLoad) note(err error, add func(*acknowledgements)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		add(&l.done)
	case !l.over:
		l.err = errors.Join(l.err, err)
	}
}

// busy says whether each server has acknowledged so much.
func (l *serversLoad) busy(each int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range l.nodes {
		if l.done.servers[n.server.data] < each || l.done.facts[n.name] == 0 {
			return false
		}
	}
	return true
}

func (l *serversLoad) acknowledged() (a acknowledgements) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return acknowledgements{facts: maps.Clone(l.done.facts), signed: maps.Clone(l.done.signed), servers: maps.Clone(l.done.servers)}
}

func (l *serversLoad) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

// end waits until nothing is sent any more.
func (l *serversLoad) end() {
	l.mu.Lock()
	l.over = true
	l.mu.Unlock()
	l.ended.Wait()
}

func (l *serversLoad) stop(t *testing.T) {
	t.Helper()
	l.end()
	if l.err != nil {
		t.Fatal(l.err)
	}
}

// isKnown looks for all that was acknowledged.
func (l *serversLoad) isKnown(t *testing.T, s *server, a acknowledgements) {
	t.Helper()
	for name, number := range a.facts {
		eventually(t, patience, fmt.Sprintf("%s knows facts number %d of %s, or newer ones", s.data, number, name), func() bool { // they may wait to be applied
			got, _ := decode[map[string]any](t, s, "node", "facts", name)["number"].(float64)
			return int(got) >= number
		})
	}
	all, revoked := s.tutti(t, "ca", "list"), s.tutti(t, "ca", "list", "--state", "revoked")
	for name, gone := range a.signed {
		if !strings.Contains(all, name+" ") {
			t.Errorf("%s was signed, and is not known", name)
		}
		if gone && !strings.Contains(revoked, name+" ") {
			t.Errorf("%s was revoked, and is not", name)
		}
	}
}
