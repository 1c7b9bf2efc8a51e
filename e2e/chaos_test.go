package e2e_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // to look into databases
	_ "modernc.org/sqlite"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/internal/sim"
)

// chaosSeed names the environment variable that repeats a schedule.
const chaosSeed = "TUTTI_CHAOS_SEED"

// What is in the chaos.
const (
	chaosNodes  = 300
	chaosAgents = 2
	chaosJobs   = 20
)

// While 20 jobs go to 300 simulated and 2 real agents, the server, the real agents and simulated
// ones are killed 30 times, connections break and messages go astray. No run is executed twice, none is
// lost sight of, every target ends in a final state that agrees with what its node did, and the
// database is sound.
func TestChaos(t *testing.T) {
	begin(t, 150)
	c := newChaos(t)
	schedule := sim.Schedule(c.seed, sim.Plan{
		Mix: sim.Mix{
			sim.KillServer: 8, sim.KillAgent: 10, sim.Crash: 9, sim.Reboot: 3, // 30 deaths
			sim.Cut: 4, sim.Storm: 1, sim.Quiet: 2,
		},
		Nodes: chaosNodes, Agents: chaosAgents, Victims: 60, MaxWait: 700 * time.Millisecond,
	})
	ordered := make(chan struct{})
	go func() {
		defer close(ordered)
		c.order(t)
	}()
	t.Cleanup(func() { <-ordered })
	for _, step := range schedule {
		c.do(t, step)
		c.check(t, step)
	}
	<-ordered
	c.finish(t)
	c.judge(t)
	checkIntegrity(t, c.server)
}

// chaos is everything that takes part.
type chaos struct {
	seed   uint64
	server *server
	client *api.Client
	fleet  *sim.Fleet
	names  []string
	agents []*daemon
	marks  string // directory in which real agents leave a file for each execution
	script string // digest of the script that jobs run

	mu   sync.Mutex
	jobs []chaosJob
	over map[string]map[string]int // how finished jobs' runs were counted
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	c := &chaos{seed: chaosSeedOf(t), names: sim.Names(chaosNodes, "chaos.test"), marks: t.TempDir(), over: map[string]map[string]int{}}
	c.server = startRaced(t, "--autosign", "all", "--access-log=false", "--listen", steadyAddress(t), "--job-poll-interval", "3s")
	c.client = apiClient(t, c.server)
	c.deploy(t)
	c.startFleet(t)
	for i := range chaosAgents {
		name := fmt.Sprintf("real-%d.chaos.test", i+1)
		d := joinNode(t, c.server, name)
		d.env = []string{"CHAOS_MARKS=" + c.marks, "CHAOS_NODE=" + name}
		d.start(t)
		c.agents = append(c.agents, d)
	}
	return c
}

// steadyAddress is an address for a server that goes and comes.
func steadyAddress(t *testing.T) string {
	t.Helper()
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// freeAddress is one that nobody listens on.
func freeAddress() (string, error) {
	port, err := rivals.FreePort(context.Background())
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// apiClient is a client of a server's API, with the administrator's token.
func apiClient(t *testing.T, s *server) *api.Client {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(s.data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(s.data, "ca", "ca_crt.pem"))
	if err != nil {
		t.Fatal(err)
	}
	client, err := api.NewClient(api.ClientConfig{Server: s.url, Token: string(token), CAPEM: ca})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (c *chaos) startFleet(t *testing.T) {
	t.Helper()
	enroller, err := sim.NewEnroller(c.server.url, c.server.roots(t))
	if err != nil {
		t.Fatal(err)
	}
	defer enroller.Close()
	c.fleet = sim.New(sim.Config{
		URLs: []string{"wss://localhost:" + c.server.port()}, Names: c.names, Identity: enroller.Enrol, Seed: c.seed,
		Faults:     sim.Faults{Drop: .02, Repeat: .03, Delay: .05, Cut: .004, MaxDelay: 300 * time.Millisecond},
		FirstPause: 100 * time.Millisecond, LongestPause: time.Second,
	})
	if err := c.fleet.Enrol(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.fleet.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := c.fleet.AwaitConnected(t.Context(), time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// do waits and then does what the step says.
func (c *chaos) do(t *testing.T, step sim.Step) {
	t.Helper()
	<-time.After(step.Wait)
	switch step.Kind {
	case sim.KillServer:
		if err := c.server.crash(); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if err := c.server.start(); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	case sim.KillAgent:
		for _, i := range step.Nodes {
			if c.agents[i].gone() {
				t.Errorf("%s: the agent of %s had ended by itself", step, c.agents[i].name)
			}
			c.agents[i].kill()
			c.agents[i].start(t)
		}
	case sim.Quiet, sim.Cut, sim.Crash, sim.Reboot, sim.Storm:
		c.fleet.Do(step)
	}
}

// check is what must hold at any time.
func (c *chaos) check(t *testing.T, after sim.Step) {
	t.Helper()
	if _, twice := c.fleet.Recorder().Totals(); len(twice) > 0 {
		t.Errorf("%s: executed twice: %v", after, twice)
	}
	c.mu.Lock()
	jobs := append([]chaosJob(nil), c.jobs...)
	c.mu.Unlock()
	for _, j := range jobs {
		job := c.show(t, j.id)
		counted := 0
		for _, n := range job.Counts {
			counted += n
		}
		if counted != job.Nodes || job.Nodes != len(j.targets) {
			t.Errorf("%s: job %s has %d nodes and counts %v; %d were ordered", after, j.id, job.Nodes, job.Counts, len(j.targets))
		}
		if before, over := c.over[j.id]; over {
			same(t, "the runs of job "+j.id+", which was over, after "+after.String(), before, job.Counts)
		} else if jobOver(job) {
			c.over[j.id] = job.Counts
		}
	}
}

// finish waits until all jobs are over.
func (c *chaos) finish(t *testing.T) {
	t.Helper()
	for _, j := range c.jobs {
		var job api.Job
		if !within(2*patience, func() bool { job = c.show(t, j.id); return jobOver(job) }) {
			t.Errorf("job %s (%s) is not over: %s %v", j.id, j.label, job.State, job.Counts)
		}
	}
}

func jobOver(job api.Job) bool {
	return job.State == "finished" || job.State == "failed" || job.State == "stopped"
}

func (c *chaos) show(t *testing.T, id string) api.Job {
	t.Helper()
	var job api.Job
	c.patiently(t, func(ctx context.Context) (err error) {
		job, err = api.JobShow.Call(ctx, c.client, api.JobRequest{Job: id})
		return err
	})
	return job
}

// checkIntegrity ends a server and looks whether its database is sound.
func checkIntegrity(t *testing.T, s *server) {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if s.three != nil {
		return // PostgreSQL keeps its own
	}
	db := openDatabase(t, s)
	var result string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity_check: %q, %v", result, err)
	}
	if err := db.QueryRowContext(t.Context(), "PRAGMA foreign_key_check").Scan(&result); !errors.Is(err, sql.ErrNoRows) {
		t.Errorf("foreign_key_check: %q, %v", result, err)
	}
}

// openDatabase lets a test look into a server's database.
func openDatabase(t *testing.T, s *server) *sql.DB {
	t.Helper()
	var driver, source string
	if s.three != nil {
		driver, source = "pgx", s.three.database
	} else {
		files, _ := filepath.Glob(filepath.Join(s.data, "*.db"))
		if len(files) != 1 {
			t.Fatalf("databases in the data directory: %v", files)
		}
		driver, source = "sqlite", "file:"+files[0]+"?mode=ro&_pragma=busy_timeout(60000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// chaosSeedOf is the seed of a chaos test; it is logged, so that it can be given again.
func chaosSeedOf(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(chaosSeed); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d repeats this schedule", chaosSeed, seed)
	return seed
}
