package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/job"
	"github.com/tutti-project/tutti/internal/job/jobtest"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
	"github.com/tutti-project/tutti/internal/target"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// order is a server's job core with a real broker and a real database, without a listener.
type orderer struct {
	*parts
	t       testing.TB
	config  settings.Config
	out     io.Writer
	stop    context.CancelFunc
	ended   chan error
	serving sync.WaitGroup
}

func newOrderer(tb testing.TB, out io.Writer, changes ...func(*settings.Config)) *orderer {
	tb.Helper()
	c := settings.Default()
	c.Data, c.JobReconnect, c.LogLevel = filepath.Join(tb.TempDir(), "data"), time.Millisecond, "debug"
	for _, change := range changes {
		change(&c)
	}
	s := &orderer{t: tb, config: c, out: out}
	s.start()
	tb.Cleanup(func() { s.halt() })
	return s
}

func (s *orderer) start() {
	s.t.Helper()
	p, err := open(context.Background(), s.config, newLogger(s.config, s.out))
	if err == nil {
		err = p.openBroker(s.config, new(atomic.Bool))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s.parts, s.stop, s.ended = p, stop, make(chan error, 1)
	go func() { s.ended <- jobtest.Serve(ctx, p.jobs) }()
}

// halt stops the server; agents lose their connections.
func (s *orderer) halt() {
	s.broker.Stop()
	s.stop()
	s.serving.Wait()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	if err := s.close(); err != nil {
		s.t.Error(err)
	}
}

func (s *orderer) order(spec job.Spec) job.Job {
	s.t.Helper()
	j, err := s.jobs.Create(s.t.Context(), admin(), spec)
	if err != nil {
		s.t.Fatal(err)
	}
	return j
}

func admin() fleet.Actor {
	return fleet.Actor{Kind: fleet.UserActor, Name: "ann", Grants: []fleet.Grant{{Permission: fleet.Everything}}}
}

// until waits for a job, as long as tests may take.
func (s *orderer) until(id int64, enough func(job.Job) bool) (job.Job, []job.Run) {
	s.t.Helper()
	for {
		c, err := s.jobs.Changes(s.t.Context(), id, math.MaxInt64, 1)
		if err != nil {
			s.t.Fatal(err)
		}
		if enough(c.Job) {
			runs, err := s.jobs.Runs(s.t.Context(), id, job.RunPage{Limit: 100_000})
			if err != nil {
				s.t.Fatal(err)
			}
			return c.Job, runs
		}
		if c.Job.Status.Final() {
			s.t.Fatalf("the job is %s: %v", c.Job.Status, c.Job.Counts)
		}
		if err := s.jobs.Wait(s.t.Context(), id, c.Job.Change); err != nil {
			s.t.Fatal(err)
		}
	}
}

func ended(j job.Job) bool { return j.Status.Final() }

func uptime(nodes ...fleet.Certname) job.Spec {
	return job.Spec{Kind: job.Command, Command: &job.CommandSpec{Command: "uptime"}, Targets: job.Targets{Nodes: nodes}}
}

func TestAJobOverFiftyAgentsAndTwoServers(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	holds := make(chan struct{})
	manners := map[job.State]manner{ // nodes that end like this
		job.Succeeded: {stdout: "up 3 days\nload 0.1\n"},
		job.RunFailed: {exit: 3, twice: true},
		job.Refused:   {refuses: pxp.Refused + ": command"},
		job.Errored:   {refuses: "no such thing"},
		job.Lost:      {silent: true},
	}
	// What has to happen has all the time that a slow machine needs; only what never comes is waited for in vain.
	answering, silent, away := uptime(), uptime(), uptime()
	answering.WaitOffline, silent.WaitOffline = time.Hour, time.Hour
	silent.Timeout, away.WaitOffline = 5*time.Second, 2*time.Second
	want := map[fleet.Certname]job.State{}
	var agents []*agent
	for state, m := range manners {
		for i := range 8 {
			name := fleet.Certname(fmt.Sprintf("%s%d.example", strings.ReplaceAll(string(state), "_", ""), i))
			want[name] = state
			spec := &answering
			if m.silent {
				spec = &silent
			}
			spec.Targets.Nodes = append(spec.Targets.Nodes, name)
			own := m
			if i%2 == 1 && m.refuses == "" && !m.silent {
				own.holds = holds
			}
			agents = append(agents, newAgent(name, own))
		}
	}
	for i := range 10 { // these have no agent
		name := fleet.Certname(fmt.Sprintf("offline%d.example", i))
		away.Targets.Nodes, want[name] = append(away.Targets.Nodes, name), job.Offline
	}
	for _, a := range agents {
		a.join(t, s.broker, &s.serving)
	}
	jobs := []job.Job{s.order(answering), s.order(silent), s.order(away)}
	s.until(jobs[0].ID, func(j job.Job) bool { return j.Counts[job.Running] == 8 && j.Counts.Open() == 8 }) // those that are held

	s.halt()
	close(holds) // they end while nobody listens
	s.start()
	for _, a := range agents {
		a.join(t, s.broker, &s.serving)
	}
	got := map[fleet.Certname]job.State{}
	for _, ordered := range jobs {
		j, runs := s.until(ordered.ID, ended)
		if j.Status != job.Failed {
			t.Errorf("job %d is %s", j.ID, j.Status)
		}
		for _, r := range runs {
			if got[r.Node] = r.State; r.Reason == "" {
				t.Errorf("%s has no reason", r.Node)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
	for _, a := range agents {
		for id, n := range a.begun {
			if n != 1 {
				t.Errorf("%s began %s %d times", a.name, id, n)
			}
		}
	}
	lines, _, err := s.jobs.Output(t.Context(), jobs[0].ID, job.OutputPage{Limit: 1000})
	if err != nil || len(lines) != 16 || lines[0].Text != "up 3 days" {
		t.Errorf("%d lines of output, %v", len(lines), err)
	}
}

func TestAnAgentCannotAnswerForAnother(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	s := newOrderer(t, &log)
	holds := make(chan struct{})
	victim, thief := newAgent("victim.example", manner{holds: holds}), newAgent("thief.example", manner{})
	victim.join(t, s.broker, &s.serving)
	l := thief.join(t, s.broker, &s.serving)
	j := s.order(uptime("victim.example"))
	_, runs := s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Running] == 1 })
	l.end(runs[0].ID)
	if !strings.Contains(log.String(), "a node answered for another one, refused") || !strings.Contains(log.String(), "node=thief.example") {
		t.Error("nothing is in the log")
	}
	thief.manner.speaks = agentOf("victim.example")
	l.end(runs[0].ID)
	if _, runs := s.until(j.ID, func(job.Job) bool { return true }); runs[0].State != job.Running {
		t.Errorf("the run is %s", runs[0].State)
	}
	close(holds)
	if j, _ := s.until(j.ID, ended); j.Status != job.Finished {
		t.Errorf("the job is %s", j.Status)
	}
}

// Neither the database, nor its log of changes, nor the server's log ever hold a secret.
func TestSecretsAreNowhere(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	var log lockedBuffer
	s := newOrderer(t, &log)
	holds := make(chan struct{})
	a := newAgent("n.example", manner{holds: holds})
	a.join(t, s.broker, &s.serving)
	j := s.order(job.Spec{Kind: job.Task, Targets: job.Targets{Nodes: []fleet.Certname{"n.example"}}, Task: &job.TaskSpec{
		Name: "m::t", Files: []job.FileRef{{Name: "m/tasks/t.sh", Digest: fleet.DigestOf(nil)}},
		Parameters: []byte(`{"user":"ann-from-accounting"}`), Secret: []byte(`{"password":"` + secret + `"}`),
	}})
	s.until(j.ID, func(j job.Job) bool { return j.Counts[job.Running] == 1 })
	if text := string(a.requests[0].Params); !strings.Contains(text, secret) || !strings.Contains(text, "ann-from-accounting") {
		t.Errorf("the node was sent %s", text)
	}
	nowhere := func(when string) {
		t.Helper()
		if strings.Contains(log.String(), secret) {
			t.Errorf("%s: the log has it", when)
		}
		err := filepath.WalkDir(s.config.Data, func(path string, entry os.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			content, err := os.ReadFile(path)
			if bytes.Contains(content, []byte(secret)) {
				t.Errorf("%s: %s has it", when, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	nowhere("while it runs")
	if info, err := os.Stat(filepath.Join(s.config.Data, datadir.SealFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key: %v, %v", info, err)
	}
	sealed, err := s.store.Jobs.Sealed(t.Context(), j.ID)
	if err != nil || len(sealed) == 0 {
		t.Errorf("sealed: %d bytes, %v", len(sealed), err)
	}
	close(holds)
	s.until(j.ID, ended)
	nowhere("when it has ended")
	if sealed, err := s.store.Jobs.Sealed(t.Context(), j.ID); err != nil || len(sealed) > 0 {
		t.Errorf("when it has ended %d bytes are sealed, %v", len(sealed), err)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	for i, name := range []fleet.Certname{"db-1", "db-2", "web-1"} {
		values := fmt.Appendf(nil, `{"role":%q,"n":%d}`, string(name[:2]), i)
		if _, _, err := s.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: "production", Values: values}); err != nil {
			t.Fatal(err)
		}
	}
	newAgent("guest", manner{}).join(t, s.broker, &s.serving)
	group := newGroup(t, s.parts, classify.RootID, `facts.role = "db"`, "pinned")
	for what, c := range map[string]struct {
		targets job.Targets
		want    string
	}{
		"named":          {job.Targets{Nodes: []fleet.Certname{"z", "a", "z"}}, "[a z]"},
		"condition":      {job.Targets{Query: `facts.role = "db"`}, "[db-1 db-2]"},
		"query":          {job.Targets{Query: `inventory[certname] { facts.n > 0 }`}, "[db-2 web-1]"},
		"query as AST":   {job.Targets{Query: `["from", "nodes", ["extract", "certname", ["=", "certname", "web-1"]]]`}, "[web-1]"},
		"all":            {job.Targets{All: true}, "[db-1 db-2 guest web-1]"},
		"without some":   {job.Targets{All: true, Exclude: []fleet.Certname{"db-1", "nobody"}}, "[db-2 guest web-1]"},
		"of a group":     {job.Targets{Group: string(group)}, "[db-1 db-2]"},
		"several ways":   {job.Targets{Nodes: []fleet.Certname{"x"}, Query: `certname = "web-1"`, Group: string(group)}, "[db-1 db-2 web-1 x]"},
		"nobody at last": {job.Targets{Nodes: []fleet.Certname{"x"}, Exclude: []fleet.Certname{"x"}}, "[]"},
	} {
		got, err := s.resolver.Resolve(t.Context(), c.targets)
		if err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v; want %s", what, got, err, c.want)
		}
	}
	for what, c := range map[string]struct {
		targets job.Targets
		want    fault.Kind
	}{
		"wrong condition": {job.Targets{Query: "facts.role = "}, fault.Invalid},
		"wrong query":     {job.Targets{Query: "nodes { certname ~ }"}, fault.Invalid},
		"no certname":     {job.Targets{Query: `facts[name] { certname = "db-1" }`}, fault.Invalid},
		"no such group":   {job.Targets{Group: "nothing"}, fault.NotFound},
	} {
		if got, err := s.resolver.Resolve(t.Context(), c.targets); err == nil || fault.Of(err) != c.want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
}

func TestWhoMayOrderWhat(t *testing.T) {
	t.Parallel()
	s := newOrderer(t, io.Discard)
	for name, env := range map[fleet.Certname]fleet.Environment{"db-1": "production", "web-1": "production", "web-2": "testing"} {
		if _, _, err := s.store.Facts.SaveFacts(t.Context(), inventory.FactSet{Certname: name, Environment: env, Values: []byte(`{}`)}); err != nil {
			t.Fatal(err)
		}
	}
	all := []fleet.Certname{"db-1", "nobody", "web-1", "web-2"}
	puppet := func(env fleet.Environment) job.Spec {
		return job.Spec{Kind: job.Puppet, Puppet: &job.PuppetSpec{}, Environment: env}
	}
	task := job.Spec{Kind: job.Task, Task: &job.TaskSpec{Name: "m::t"}}
	for what, c := range map[string]struct {
		grant   fleet.Grant
		spec    job.Spec
		refused int
	}{
		"everything":               {fleet.Grant{Permission: fleet.Everything}, uptime(), 0},
		"the kind":                 {fleet.Grant{Permission: fleet.CommandRun}, uptime(), 0},
		"another kind":             {fleet.Grant{Permission: fleet.TaskRun}, uptime(), 4},
		"some nodes":               {fleet.Grant{Permission: fleet.CommandRun, Nodes: `certname ~ "^web"`}, uptime(), 2},
		"an environment":           {fleet.Grant{Permission: fleet.PuppetRun, Environments: []string{"testing"}}, puppet(""), 3},
		"into another environment": {fleet.Grant{Permission: fleet.PuppetRun, Environments: []string{"testing"}}, puppet("production"), 4},
		"from another environment": {fleet.Grant{Permission: fleet.PuppetRun, Environments: []string{"testing"}}, puppet("testing"), 3},
		"a task":                   {fleet.Grant{Permission: fleet.TaskRun, Tasks: []string{"m::*"}}, task, 0},
		"another task":             {fleet.Grant{Permission: fleet.TaskRun, Tasks: []string{"x"}}, task, 4},
	} {
		actor := fleet.Actor{Kind: fleet.UserActor, Name: "bob", Grants: []fleet.Grant{c.grant}}
		refused, err := target.Gate{Scopes: target.Scopes{Inventory: s.store.Queries}, Nodes: s.store.Nodes}.Refused(t.Context(), actor, c.spec, all)
		if err != nil || len(refused) != c.refused {
			t.Errorf("%s: %v, %v", what, refused, err)
		}
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}
