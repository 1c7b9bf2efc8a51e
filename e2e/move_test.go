package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// A server with a real agent moves from SQLite and its directory to PostgreSQL and S3 while a job runs on the node, and back, by the commands of the
// page. Nobody notices but that it was away: the job ends, the catalog is the same, the CA has forgotten nothing.
func TestAServerMovesThereAndBack(t *testing.T) {
	begin(t, 120)
	f := startSeveral(t)
	m := startMoving(t, f)
	s := m.server
	before := m.known(t)
	if len(before.catalog) < 100 {
		t.Fatalf("a catalog: %s", before.catalog)
	}
	gate := m.longCommand(t)

	// There, while it runs.
	there := m.begin(t, m.lines(t, "There")[0])
	there.says(t, "Stop the server now: a server uses "+s.data)
	contains(t, s.tutti(t, "code", "status"), "production") // it serves until it is stopped
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	there.ends(t)
	t.Log(there.outText())
	s.flags = m.with("server.new.yaml")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	m.agent.connectedTo(t, m.address)
	m.same(t, before)
	if err := os.WriteFile(gate, []byte("done"), 0o600); err != nil { // returns when the command reads it
		t.Fatal(err)
	}
	eventually(t, patience, "the job that was under way has ended", func() bool { return decode[api.Job](t, s, "job", "show", "1").State == "finished" })
	contains(t, s.tutti(t, "command", "run", "echo again", "--targets", m.agent.name, "--yes"), "again")
	late := enrol(t, s, "late.test")
	s.tutti(t, "ca", "revoke", "second.test")
	m.oldOneIsRefused(t)

	// And back.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	r := s.try(t, "move", filepath.Join(m.dir, "server.yaml"), "--config", filepath.Join(m.dir, "server.new.yaml"))
	if r.code != 5 || !strings.Contains(r.err, "make another database, or remove that one") {
		t.Errorf("over the records that it left: %d %s", r.code, r.text())
	}
	f.follows(t, s, "Back", map[string]string{"server.yaml": filepath.Join(m.dir, "server.yaml"), "server.new.yaml": filepath.Join(m.dir, "server.new.yaml")})
	s.flags = m.with("server.yaml")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	m.agent.connectedTo(t, m.address)
	m.node.client.CloseIdleConnections()
	after := m.known(t)
	same(t, "the catalog", before.catalog, after.catalog)
	contains(t, s.tutti(t, "command", "run", "echo at home", "--targets", m.agent.name, "--yes"), "at home")
	contains(t, s.tutti(t, "job", "list"), "finished")
	opensslSays(t, s, map[*node]string{m.node: ": OK", late: ": OK", m.gone: "certificate revoked", m.second: "certificate revoked"})
	if a, err := m.second.do(http.MethodGet, "/puppet/v3/node/"+m.second.name+"?environment=production", "", nil); err == nil {
		t.Errorf("who was revoked meanwhile is let in: %d %s", a.status, a.body)
	}
}

// movingServer is a server that moves, with what is asked of it before and after.
type movingServer struct {
	server             *server
	several            *several
	dir                string // of its configuration files
	agent              *daemon
	node, gone, second *node
	address            string
}

func startMoving(t *testing.T, f *several) *movingServer {
	t.Helper()
	m := &movingServer{several: f, dir: t.TempDir(), server: newServer(t.TempDir())}
	s := m.server
	writeFile(t, filepath.Join(m.dir, "server.yaml"), "autosign: all\n")
	writeFile(t, filepath.Join(m.dir, "server.new.yaml"), "autosign: all\n"+f.shared("s3://tutti/moved"))
	s.flags = []string{"--config", filepath.Join(m.dir, "server.yaml")}
	s.startFor(t)
	m.address = "localhost:" + s.port()
	s.deploy(t, "production")
	m.agent = joinNode(t, s, "web-1.test")
	m.agent.start(t)
	m.agent.connectedTo(t, m.address)
	m.node, m.gone, m.second = enrol(t, s, "node.test"), enrol(t, s, "gone.test"), enrol(t, s, "second.test")
	s.tutti(t, "ca", "revoke", m.gone.name)
	return m
}

// with is the flags of the server with another configuration file, on the port that agents know.
func (m *movingServer) with(name string) []string {
	_, port, _ := strings.Cut(m.address, ":")
	return []string{"--listen", "127.0.0.1:" + port, "--config", filepath.Join(m.dir, name)}
}

// longCommand is a job that runs on the agent until somebody writes into the gate.
func (m *movingServer) longCommand(t *testing.T) (gate string) {
	t.Helper()
	gate = filepath.Join(m.agent.dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	m.server.tutti(t, "command", "run", "cat "+gate, "--targets", m.agent.name, "--no-wait", "--yes")
	eventually(t, patience, "the job runs", func() bool { return decode[api.Job](t, m.server, "job", "show", "1").Counts["running"] == 1 })
	return gate
}

// knownThings is what a server is asked before and after a move.
type knownThings struct {
	catalog, list, status string
}

func (m *movingServer) known(t *testing.T) (k knownThings) {
	t.Helper()
	c, err := m.node.catalog("production", map[string]any{"role": "web"})
	if err != nil || c.status != http.StatusOK {
		t.Fatalf("a catalog: %d %s, %v", c.status, c.body, err)
	}
	k.catalog = c.body
	k.list = m.server.tutti(t, "ca", "list")
	k.status = regexp.MustCompile("deployed .* ago").ReplaceAllString(m.server.tutti(t, "code", "status"), "deployed")
	return k
}

// same wants what was known to be known.
func (m *movingServer) same(t *testing.T, before knownThings) {
	t.Helper()
	m.node.client.CloseIdleConnections() // they were to the server that stopped
	if diff := cmp.Diff(before, m.known(t), cmp.AllowUnexported(knownThings{})); diff != "" {
		t.Errorf("after the move (-before +after):\n%s", diff)
	}
}

// oldOneIsRefused starts a server and a backup with the settings from before.
func (m *movingServer) oldOneIsRefused(t *testing.T) {
	t.Helper()
	if err := m.server.stop(); err != nil {
		t.Fatal(err)
	}
	m.server.flags = m.with("server.yaml")
	contains(t, refuses(t, m.server), "the records of this database moved to PostgreSQL postgres at ", "use the settings that were given to")
	r := m.server.try(t, "backup", "create", filepath.Join(m.dir, "stale"), "--recipient", "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")
	if r.code != 5 || !strings.Contains(r.err, "moved to PostgreSQL") {
		t.Errorf("a backup of the old records: %d %s", r.code, r.text())
	}
	m.server.flags = m.with("server.new.yaml")
	if err := m.server.start(); err != nil {
		t.Fatal(err)
	}
	r = m.server.try(t, "move", filepath.Join(m.dir, "server.new.yaml"), "--config", filepath.Join(m.dir, "server.yaml"))
	if r.code != 0 || !strings.Contains(r.out, "already") {
		t.Errorf("moved once more: %d %s", r.code, r.text())
	}
}

// lines is the commands of a part of the page, with the paths of this story.
func (m *movingServer) lines(t *testing.T, part string) (lines []string) {
	t.Helper()
	paths := strings.NewReplacer("server.yaml", filepath.Join(m.dir, "server.yaml"), "server.new.yaml", filepath.Join(m.dir, "server.new.yaml"))
	for _, block := range regexp.MustCompile("(?s)```\n\\$ (.*?)```").FindAllStringSubmatch(partOf(t, "many-servers.md", "### "+part), -1) {
		lines = append(lines, paths.Replace(block[1]))
	}
	return lines
}

// moveCommand is a `tutti move` that runs.
type moveCommand struct {
	cmd  *exec.Cmd
	want string // what the page says that it prints
	mu   sync.Mutex
	said strings.Builder // on standard error
	out  strings.Builder
}

// Write takes what is said on standard error.
func (c *moveCommand) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(p)
}

func (c *moveCommand) saidText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

func (c *moveCommand) outText() string { return strings.TrimSuffix(c.out.String(), "\n") }

// begin runs a command of the page.
func (m *movingServer) begin(t *testing.T, command string) *moveCommand {
	t.Helper()
	line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n"), "\n")
	c := &moveCommand{want: want, cmd: exec.CommandContext(t.Context(), "sh", "-c", "exec "+line)}
	c.cmd.Env = append(cleanEnv(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "TUTTI_DATA="+m.server.data)
	c.cmd.Stderr, c.cmd.Stdout = c, &c.out
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *moveCommand) says(t *testing.T, text string) {
	t.Helper()
	eventually(t, patience, "the move says "+text, func() bool { return strings.Contains(strings.Join(strings.Fields(c.saidText()), " "), text) })
}

func (c *moveCommand) ends(t *testing.T) {
	t.Helper()
	err := c.cmd.Wait()
	pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(c.want), "…", "(?s:.*)") + "$"
	if err != nil || !regexp.MustCompile(pattern).MatchString(c.outText()) {
		t.Fatalf("%v: %v\n%s\n%s\nthe page says\n%s", c.cmd.Args, err, c.outText(), c.saidText(), c.want)
	}
}

// moveKills is how often a move is killed.
const moveKills = 6

// A move is killed again and again at random moments: the server starts with its old settings and has everything, until one move has ended; it
// starts with the new ones then.
func TestKilledMoves(t *testing.T) {
	begin(t, 90)
	f := startSeveral(t)
	m := startMoving(t, f)
	s := m.server
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	k := killing{server: s, random: random, dir: m.dir}
	k.deployContent(t)
	before := m.known(t)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s.flags = m.with("server.yaml")
	args := []string{"move", filepath.Join(m.dir, "server.new.yaml"), "--config", filepath.Join(m.dir, "server.yaml")}
	killed := 0
	for n := range moveKills {
		if k.killed(t, time.Duration(n+1)*500*time.Millisecond, args...) { // later and later
			break
		}
		killed++
		if err := s.start(); err != nil {
			if strings.Contains(err.Error(), "moved to") { // at the last step
				break
			}
			t.Fatal(err)
		}
		m.same(t, before)
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d moves were killed", killed); killed == 0 {
		t.Error("no move was killed")
	}
	s.tutti(t, args...)
	s.flags = m.with("server.new.yaml")
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	m.same(t, before)
}

// The content of several servers moves when all of them are stopped, not only the one whose data directory it is: what another one took meanwhile
// would be nowhere.
func TestContentOfSeveralServersMoves(t *testing.T) {
	begin(t, 60)
	f := startSeveral(t)
	a, b := f.server(t, "a"), f.server(t, "b")
	a.startFor(t)
	a.deploy(t, "production")
	b.startFor(t)
	old, next := filepath.Join(f.dir, "old.yaml"), filepath.Join(f.dir, "next.yaml")
	writeFile(t, old, f.shared("s3://tutti/content"))
	writeFile(t, next, f.shared("s3://tutti/moved"))
	if err := a.stop(); err != nil {
		t.Fatal(err)
	}
	m := &movingServer{server: a}
	c := m.begin(t, "tutti move "+next+" --config "+old+`
Moved the content from … to …: … blobs, … of them copied (…), … while the server was stopped
The server had to be stopped for …. …`)
	c.says(t, "Stop the server now: a server uses PostgreSQL")
	b.deploy(t, "other")
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	c.ends(t)
	a.flags = append(a.flags, "--blobs", "s3://tutti/moved")
	if err := a.start(); err != nil {
		t.Fatal(err)
	}
	contains(t, a.tutti(t, "code", "show", "other", "manifests/site.pp:1"), "node default {") // it is content
}

// Who moves the records alone, and later the content with the settings from before the first move, is told that the content did not move.
func TestContentThatStayedIsNamed(t *testing.T) {
	begin(t, 30)
	f := startSeveral(t)
	s := newServer(t.TempDir())
	s.startFor(t)
	s.deploy(t, "production")
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	paths := map[string]string{}
	for name, text := range map[string]string{
		"old": "log_level: info\n", "records": "database: " + f.database + "\n",
		"both": fmt.Sprintf("database: %s\nblobs: s3://tutti/late\nblobs_endpoint: %s\nblobs_credentials: %s\n",
			f.database, f.store.Endpoint, f.store.Credentials(blobs3test.SecretKey)),
	} {
		paths[name] = filepath.Join(f.dir, name+".yaml")
		writeFile(t, paths[name], text)
	}
	s.tutti(t, "move", paths["records"], "--config", paths["old"])
	r := s.try(t, "move", paths["both"], "--config", paths["old"])
	said := strings.Join(strings.Fields(r.err), " ")
	if r.code != 0 || !strings.Contains(r.out, "already") || !strings.Contains(said, "in directory and not in s3://tutti/late") {
		t.Errorf("the content did not move: %d %s", r.code, r.text())
	}
	contains(t, s.tutti(t, "move", paths["both"], "--config", paths["records"]), "Moved the content from directory to s3://tutti/late")
	if r := s.try(t, "move", paths["both"], "--config", paths["old"]); r.code != 0 || strings.Contains(r.err, "not in") {
		t.Errorf("all has moved: %d %s", r.code, r.text())
	}
}
