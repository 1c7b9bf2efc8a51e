package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/hint/natsbus/natsbustest"
	"github.com/tutti-project/tutti/internal/store/blobs3/blobs3test"
)

// With TUTTI_E2E=cluster the stories are told again, each with three servers behind HAProxy in the place of its one. A story knows nothing of
// that: its server has one address, which is HAProxy's, and one data directory, which is the first server's. What a story asks is answered by any of the three.

// several3 is whether that is so, and what all such servers share: one PostgreSQL, one S3 store, one NATS, a key. Each story has a database, a place and a
// prefix of its own there.
var several3 threes

type threes struct {
	on bool

	once     sync.Once
	run      *runTB
	database string
	store    *blobs3test.Server
	nats     *natsbustest.Server
	secret   string // file with the S3 store's keys
	key      string // file with the key that servers share
	err      error
	count    atomic.Int64
}

func (c *threes) choose(mode string) error {
	switch mode {
	case "":
		return nil
	case "cluster":
		c.on = true
		return nil
	}
	return fmt.Errorf("TUTTI_E2E is %q; it can be cluster, which tells the stories with three servers", mode)
}

// leaveOut keeps those of a run's stories out of it that make no sense with several servers, unless the caller said with -skip what is left out.
func (c *threes) leaveOut() error {
	if !c.on || flag.Lookup("test.skip").Value.String() != "" {
		return nil
	}
	const says = "e2e: %d stories are left out with three servers; e2e/onlyone_test.go says which, and why. -skip '^$' tells them, too.\n"
	fmt.Fprintf(os.Stderr, says, len(aboutOneServer))
	return flag.Set("test.skip", exactly(slices.Sorted(maps.Keys(aboutOneServer))))
}

// exactly is the pattern, as -run and -skip take it, of tests and subtests of these names.
func exactly(names []string) string {
	var all []string
	for _, name := range names {
		all = append(all, "^"+strings.ReplaceAll(regexp.QuoteMeta(name), "/", "$/^")+"$")
	}
	return strings.Join(all, "|")
}

// shared starts what all share, once.
func (c *threes) shared() error {
	c.once.Do(func() { c.err = attempt("start what three servers share", c.start) })
	return c.err
}

func (c *threes) start() {
	c.run = newRunTB()
	c.database = startPostgres(c.run, "-c", "max_connections=600")
	c.store = blobs3test.Start(c.run)
	c.nats = natsbustest.Start(c.run, "")
	c.secret = c.store.Credentials(blobs3test.SecretKey)
	c.key = filepath.Join(c.run.TempDir(), "cluster.key")
	if err := os.WriteFile(c.key, []byte(strings.Repeat("0123456789abcdef", 4)+"\n"), 0o600); err != nil {
		c.run.Fatal(err)
	}
}

// attempt makes an error of a runTB's failure, and of any other panic: what a runTB is not asked for otherwise is nil.
func attempt(what string, do func()) (err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case runFailed:
			err = fmt.Errorf("%s: %w", what, failed)
		case error:
			err = fmt.Errorf("%s: %w\n%s", what, failed, debug.Stack())
		default:
			err = fmt.Errorf("%s: %v\n%s", what, failed, debug.Stack())
		}
	}()
	do()
	return nil
}

func (c *threes) close() error {
	if c.run == nil {
		return nil
	}
	return c.run.end()
}

// newDatabase makes one, and returns its URL.
func (c *threes) newDatabase(name string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(postgresBin(c.run), "psql"), "-At", "-c", "CREATE DATABASE "+name, c.database).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("make a database: %w\n%s", err, out)
	}
	return strings.Replace(c.database, "/postgres?", "/"+name+"?", 1), nil
}

// three are the servers that stand for one.
type three struct {
	servers  []*server
	database string   // URL
	common   []string // flags by which they share
	address  string   // HAProxy's
	dir      string   // of HAProxy
	lb       *balancer
}

// standsForThree tells whether this server is to be three. One that says itself what it shares with others is what its story is about.
func (s *server) standsForThree() bool {
	return several3.on && !slices.ContainsFunc(s.flags, func(flag string) bool {
		name, _, _ := strings.Cut(flag, "=")
		return slices.Contains([]string{"--cluster", "--database", "--blobs", "--roles"}, name)
	})
}

// startThree starts the three, and HAProxy before them.
func (s *server) startThree() error {
	if s.three == nil {
		if err := s.describeThree(); err != nil {
			return err
		}
	}
	if err := s.three.take(s); err != nil {
		return err
	}
	all := s.three.servers
	if err := all[0].startOne(); err != nil { // the first start makes what the others take
		return err
	}
	s.cmd, s.ended = all[0].cmd, all[0].ended
	var wrong [2]error
	var starting sync.WaitGroup
	for i, member := range all[1:] {
		starting.Go(func() { wrong[i] = member.startOne() })
	}
	starting.Wait()
	err := errors.Join(wrong[:]...)
	if err == nil {
		err = s.three.balance()
	}
	if err == nil {
		s.url = s.three.lb.url
		// Commands that ask this data directory's server ask any of them.
		err = os.WriteFile(filepath.Join(s.data, "address"), []byte(s.url+"\n"), 0o600)
	}
	if err != nil {
		return errors.Join(err, s.three.each((*server).stop))
	}
	return nil
}

// env is what tells servers where they share.
func (c *threes) env() []string {
	return []string{"TUTTI_NATS_URL=" + c.nats.Config().URL, "TUTTI_BLOBS_ENDPOINT=" + c.store.Endpoint, "TUTTI_BLOBS_CREDENTIALS=" + c.secret}
}

// describeThree makes three of the description of one.
func (s *server) describeThree() error {
	if err := several3.shared(); err != nil {
		return err
	}
	place := fmt.Sprintf("story%d", several3.count.Add(1))
	database, err := several3.newDatabase(place)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(several3.run.TempDir(), "lb-")
	if err != nil {
		return err
	}
	s.three = &three{database: database, dir: dir, common: []string{
		"--cluster", "--cluster-key-file", several3.key, "--database", database, "--blobs", "s3://tutti/" + place, "--nats-prefix", place,
		"--compile-workers", "1", "--proxy-protocol-from", balancerSource,
	}}
	for i := range 3 {
		member := &server{data: s.data, log: s.log}
		if i > 0 {
			member.data, member.log = fmt.Sprintf("%s-%d", s.data, i+1), fmt.Sprintf("%s-%d", s.log, i+1)
		}
		s.three.servers = append(s.three.servers, member)
	}
	return nil
}

// take gives the three what the one has now: a story may change flags between two starts.
func (g *three) take(s *server) error {
	flags, address := withoutListen(s.flags)
	if address != "" {
		g.address = address
	}
	if g.address == "" {
		var err error
		if g.address, err = freeAddress(); err != nil {
			return err
		}
	}
	for i, member := range g.servers {
		own := flags
		if i > 0 {
			own = ownAddresses(flags)
		}
		member.flags = slices.Concat(g.common, own)
		member.program, member.as, member.env = s.program, s.as, slices.Concat(s.env, several3.env())
	}
	return nil
}

// balance starts HAProxy before the servers that run now.
func (g *three) balance() error {
	if g.lb != nil {
		g.lb.stop()
	}
	at := map[string]string{}
	for i, member := range g.servers {
		at[fmt.Sprintf("pup-%d", i+1)] = "127.0.0.1:" + member.port()
	}
	var err error
	g.lb, err = newBalancer(g.dir, g.address, filepath.Join(g.servers[0].data, "ca", "ca_crt.pem"), true, at)
	if err != nil {
		return err
	}
	return g.lb.start()
}

// each does something to all of them, and ends HAProxy when it is done: what servers say at their end gets through.
func (g *three) each(do func(*server) error) error {
	wrong := make([]error, len(g.servers))
	var doing sync.WaitGroup
	for i, member := range g.servers {
		if member.cmd != nil {
			doing.Go(func() { wrong[i] = do(member) })
		}
	}
	doing.Wait()
	if g.lb != nil {
		g.lb.stop()
		g.lb = nil
	}
	return errors.Join(wrong...)
}

// withoutListen takes the address out of the flags: it is HAProxy's.
func withoutListen(flags []string) (rest []string, address string) {
	for i := 0; i < len(flags); i++ {
		if flags[i] == "--listen" {
			i++
			address = flags[i]
			continue
		}
		rest = append(rest, flags[i])
	}
	return rest, address
}

// ownAddresses are the flags of a further server: what listens on a certain address does so on the first one only, and what takes any port on each.
func ownAddresses(flags []string) (rest []string) {
	for i := 0; i < len(flags); i++ {
		certain := i+1 < len(flags) && !strings.HasSuffix(flags[i+1], ":0")
		if strings.HasPrefix(flags[i], "--") && strings.HasSuffix(flags[i], "-listen") && certain {
			i++
			continue
		}
		rest = append(rest, flags[i])
	}
	return rest
}

// runTB is a testing.TB that ends with the whole run.
type runTB struct {
	testing.TB // nil: what is not below is not asked for
	dir        string

	mu   sync.Mutex
	ends []func()
}

// runFailed is what a runTB fails with.
type runFailed string

func (f runFailed) Error() string { return string(f) }

func newRunTB() *runTB {
	dir, err := os.MkdirTemp("", "e2e-three-")
	if err != nil {
		panic(runFailed(err.Error()))
	}
	r := &runTB{dir: dir}
	if err := os.Chmod(dir, 0o711); err != nil {
		r.Fatal(err)
	}
	return r
}

func (r *runTB) Helper()                           {}
func (r *runTB) Context() context.Context          { return context.Background() }
func (r *runTB) Fatal(args ...any)                 { panic(runFailed(fmt.Sprint(args...))) }
func (r *runTB) Fatalf(format string, args ...any) { panic(runFailed(fmt.Sprintf(format, args...))) }

func (r *runTB) Cleanup(end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, end)
}

func (r *runTB) TempDir() string {
	dir, err := os.MkdirTemp(r.dir, "")
	if err != nil {
		r.Fatal(err)
	}
	return dir
}

// end ends all of it, also when a part does not end well.
func (r *runTB) end() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, end := range slices.Backward(r.ends) {
		err = errors.Join(err, attempt("end what three servers share", end))
	}
	return errors.Join(err, os.RemoveAll(r.dir))
}

// A mistake in what three servers share fails every story that wants it: it is no success, whatever kind of panic tells of it.
func TestAMistakeInWhatThreeServersShareFails(t *testing.T) {
	t.Parallel()
	run := newRunTB()
	for name, do := range map[string]func(){
		"a failure":                    func() { run.Fatalf("PostgreSQL is %s", "missing") },
		"what a runTB cannot":          func() { run.Skip("there is no NATS") },
		"a mistake of another package": func() { panic("an odd flag") },
		"nil":                          func() { _ = *(*int)(nil) },
	} {
		if err := attempt(name, do); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := attempt("nothing", func() {}); err != nil {
		t.Error(err)
	}
	ended := false
	run.Cleanup(func() { ended = true })
	run.Cleanup(func() { panic("it does not end") })
	if err := (&threes{run: run}).close(); err == nil || !strings.Contains(err.Error(), "it does not end") || !ended {
		t.Errorf("the end: %v; the rest has ended: %t", err, ended)
	}
	if _, err := os.Stat(run.dir); err == nil {
		t.Errorf("%s is left behind", run.dir)
	}
}
