package e2e_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/store/backup"
)

// A server is backed up while a job runs; then its machine is lost. Restored elsewhere, into PostgreSQL, it goes on: agents notice
// nothing, who was revoked stays so, and the job says what became of it. So it does when it is restored once more, from there into SQLite.
func TestABackupBringsAServerBack(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all")
	s.deploy(t, "production")
	agent := joinNode(t, s, "web-1.test")
	agent.start(t)
	address := "localhost:" + s.port()
	agent.connectedTo(t, address)
	gone, stays := enrol(t, s, "gone.test"), enrol(t, s, "stays.test")
	s.tutti(t, "ca", "revoke", gone.name)
	gate, count := filepath.Join(agent.dir, "gate"), filepath.Join(agent.dir, "count")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	s.tutti(t, "command", "run", "echo x >> "+count+"; cat "+gate, "--targets", "web-1.test,stays.test", "--wait-offline", "1h", "--no-wait", "--yes")
	eventually(t, patience, "the job runs", func() bool {
		return decode[api.Job](t, s, "job", "show", "1").Counts["running"] == 1
	})

	dir := t.TempDir()
	key, target := filepath.Join(dir, "key"), filepath.Join(dir, "backups")+"/"
	public := strings.TrimSpace(s.tutti(t, "backup", "key", key))
	made := decode[backup.Result](t, s, "backup", "create", target, "--recipient", public)
	if made.Rows == 0 || made.Blobs == 0 || made.NewBlobs != made.Blobs {
		t.Errorf("%+v", made)
	}
	port := s.port()
	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.data); err != nil {
		t.Fatal(err)
	}

	database := startPostgres(t)
	other := newServer(t.TempDir(), "--autosign", "all", "--database", database, "--listen", "127.0.0.1:"+port)
	wrong := filepath.Join(dir, "wrong")
	s.tutti(t, "backup", "key", wrong)
	refused := other.try(t, "backup", "restore", target, "--identity-file", wrong, "--database", database)
	if refused.code == 0 || !strings.Contains(refused.err, "does not open it") {
		t.Errorf("restored with another key: %d %s", refused.code, refused.err)
	}
	restored := other.tutti(t, "backup", "restore", target, "--identity-file", key, "--database", database) // the wrong key left nothing in its way
	contains(t, restored, "Restored all of backup "+made.ID, "stopped job 1, which was under way")
	again := other.try(t, "backup", "restore", target, "--identity-file", key, "--database", database)
	if again.code != 5 || !strings.Contains(again.err, "is not empty") {
		t.Errorf("restored over a server: %d %s", again.code, again.err)
	}
	other.startFor(t)
	agent.connectedTo(t, address)
	if err := os.WriteFile(gate, []byte("done"), 0o600); err != nil { // returns when the command reads it
		t.Fatal(err)
	}
	eventually(t, patience, "the job has ended", func() bool { return decode[api.Job](t, other, "job", "show", "1").State == "stopped" })
	job := decode[api.Job](t, other, "job", "show", "1")
	if job.Counts["succeeded"] != 1 || job.Counts["skipped"] != 1 || !strings.Contains(job.Reason, "the server was restored from the backup of ") {
		t.Errorf("the job: %+v, %s", job.Counts, job.Reason)
	}
	contains(t, other.tutti(t, "command", "run", "echo again", "--targets", "web-1.test", "--yes"), "again")
	if text, _ := os.ReadFile(count); string(text) != "x\n" {
		t.Errorf("the command ran %d times", len(text)/2)
	}
	if a, err := gone.do(http.MethodGet, "/puppet/v3/node/"+gone.name+"?environment=production", "", nil); err == nil {
		t.Errorf("a revoked certificate was let in: %d %s", a.status, a.body)
	}
	if a := stays.must(t, http.MethodGet, "/puppet/v3/node/"+stays.name+"?environment=production", "", nil); a.status != http.StatusOK {
		t.Errorf("a good certificate: %d %s", a.status, a.body)
	}
	contains(t, other.tutti(t, "code", "status"), "production")

	// And back, from PostgreSQL into a file: the CA has forgotten nothing of either.
	late, thrown := enrol(t, other, "late.test"), enrol(t, other, "thrown.test")
	other.tutti(t, "ca", "revoke", thrown.name)
	second := decode[backup.Result](t, other, "backup", "create", target, "--recipient", public, "--database", database)
	if err := other.crash(); err != nil {
		t.Fatal(err)
	}
	third := newServer(t.TempDir(), "--autosign", "all", "--listen", "127.0.0.1:"+port)
	contains(t, third.tutti(t, "backup", "restore", target, "--identity-file", key), "Restored all of backup "+second.ID)
	third.startFor(t)
	agent.connectedTo(t, address)
	for _, n := range []*node{gone, thrown} {
		if a, err := n.do(http.MethodGet, "/puppet/v3/node/"+n.name+"?environment=production", "", nil); err == nil {
			t.Errorf("%s is revoked and was let in: %d %s", n.name, a.status, a.body)
		}
	}
	fresh, known := enrol(t, third, "fresh.test"), map[string]bool{}
	opensslSays(t, third, map[*node]string{stays: ": OK", late: ": OK", fresh: ": OK", gone: "certificate revoked", thrown: "certificate revoked"})
	for _, n := range []*node{gone, stays, late, thrown, fresh} {
		serial := certificateOf(t, n).SerialNumber.Text(16)
		if known[serial] {
			t.Errorf("serial number %s of %s was given twice", serial, n.name)
		}
		known[serial] = true
	}
	if list := third.tutti(t, "ca", "list"); !holdsAll(list, []string{"gone.test", "stays.test", "late.test", "thrown.test", "fresh.test", "web-1.test"}) {
		t.Errorf("the CA knows only\n%s", list)
	}
}

// Every command of the page on backups works, and a server starts on what they restore.
func TestTheCommandsOfTheBackupPage(t *testing.T) {
	begin(t, 40)
	s, dir := startServer(t), t.TempDir()
	s.deploy(t, "production")
	s.follows(t, dir, "backup.md")
	other := newServer(t.TempDir())
	other.data = filepath.Join(dir, "restored")
	other.startFor(t)
	contains(t, other.tutti(t, "code", "status"), "production")
}

// Whatever is lost: what the page says brings it back. What was revoked after the backup is known again where the
// database or the CA remained.
func TestTheCommandsOfTheDisasterPage(t *testing.T) {
	begin(t, 90)
	s, dir := startServer(t, "--autosign", "all"), t.TempDir()
	s.deploy(t, "production")
	page, err := os.ReadFile(filepath.Join(docs, "disaster.md"))
	if err != nil {
		t.Fatal(err)
	}
	enrol(t, s, "early.test")
	public := s.tutti(t, "backup", "key", filepath.Join(dir, "tutti-backups.key"))
	s.tutti(t, "backup", "create", filepath.Join(dir, "backups")+"/", "--recipient", strings.TrimSpace(public))
	enrol(t, s, "late.test")
	s.tutti(t, "ca", "revoke", "early.test")

	part := func(heading string, known bool, before func()) {
		t.Helper()
		_, text, found := strings.Cut(string(page), "## "+heading+"\n")
		text, _, _ = strings.Cut(text, "\n## ")
		if !found || !strings.Contains(text, "```\n$ ") {
			t.Fatalf("the page has no commands below %q", heading)
		}
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		before()
		s.followsText(t, dir, "disaster.md", text)
		if err := s.start(); err != nil {
			t.Fatalf("%s: %v", heading, err)
		}
		contains(t, s.tutti(t, "code", "status"), "production")
		if list := s.tutti(t, "ca", "list", "--state", "revoked"); strings.Contains(list, "early.test") != known {
			t.Errorf("%s: revoked are\n%s", heading, list)
		}
	}
	copied := filepath.Join(dir, "copied.db")
	part("The database is lost", true, func() {})
	part("The content is lost", true, func() {})
	part("The CA's key is lost", true, func() {})
	copyOf(t, filepath.Join(s.data, "tutti.db"), copied) // while it runs
	part("All that is left is a copy of the database file", true, func() {
		if err := os.Mkdir(filepath.Join(dir, "lost"), 0o700); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	})
	part("Everything is lost", false, func() {
		if err := os.RemoveAll(s.data); err != nil {
			t.Fatal(err)
		}
	})

	copyOf(t, filepath.Join(s.data, "tutti.db"), copied)
	if err := s.crash(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tutti.db-wal", "tutti.db-shm"} {
		if err := os.Remove(filepath.Join(s.data, name)); err != nil {
			t.Fatal(err)
		}
	}
	copyOf(t, copied, filepath.Join(s.data, "tutti.db"))
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
	<-s.ended
	contains(t, s.logText(), "was copied while a server used it, without its log")
}

func copyOf(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}
