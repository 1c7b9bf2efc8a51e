package ruby

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

func TestKilledWorkerIsReplacedInsideTheCompile(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bench"): copyTree(t, "testdata/bench")})
	mustCompile(t, pool, order(t, "production", "bench", "small-1.example.org"))
	done := compileLater(pool, t.Context(), order(t, "production", "bench", "large-1.example.org"))
	await(t, "a busy worker", func() bool { return aWorker(t, pool).busy.Load() })
	killed := aWorker(t, pool)
	pid := hostPID(t, killed)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	if r := <-done; r.err != nil {
		t.Errorf("after its worker was killed the order failed: %v", r.err)
	}
	await(t, "the end of the killed worker", func() bool { return !isRunning(pid) })
}

func TestKilledZygoteIsStartedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := running(t, Config{Workers: 2, Dir: dir}, directories{version("bad"): tree(t, badCode)})
	done := compileLater(pool, t.Context(), order(t, "production", "bad", "loops.example.org"))
	w := aWorker(t, pool)
	await(t, "a busy worker", w.busy.Load)
	ctx, cancel := context.WithCancel(t.Context())
	idle := compileLater(pool, ctx, order(t, "production", "bad", "fine.example.org"))
	if r := <-idle; r.err != nil {
		t.Fatal(r.err)
	}
	cancel()
	pid := hostPID(t, w)
	_ = syscall.Kill(w.z.pid(), syscall.SIGKILL)
	await(t, "the end of the killed zygote's worker", func() bool { return !isRunning(pid) })
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))

	// The looping order was tried again in the new zygote; that one dies as well.
	await(t, "a new busy worker", func() bool { return aWorker(t, pool).z != w.z })
	again := aWorker(t, pool)
	_ = syscall.Kill(again.z.pid(), syscall.SIGKILL)
	r := <-done
	if _, ours := errors.AsType[*compile.Error](r.err); r.err == nil || ours {
		t.Errorf("got %v, want an error that says to try again", r.err)
	}
}

func TestCancelledCompileKillsWorkerAndItsChildren(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bad"): tree(t, badCode)})
	ctx, cancel := context.WithCancel(t.Context())
	done := compileLater(pool, ctx, order(t, "production", "bad", "sleeps.example.org"))
	w := aWorker(t, pool)
	pid := hostPID(t, w)
	var children []int
	await(t, "the child that generate() started", func() bool {
		children = childrenOf(pid)
		return len(children) == 1
	})
	cancel()
	if r := <-done; !errors.Is(r.err, context.Canceled) {
		t.Errorf("got %v, want the context's error", r.err)
	}
	await(t, "the end of the worker and its child", func() bool { return !isRunning(pid) && !isRunning(children[0]) })
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

func TestWaitingForASlotCanBeCancelled(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bad"): tree(t, badCode)})
	first, cancel := context.WithCancel(t.Context())
	busy := compileLater(pool, first, order(t, "production", "bad", "loops.example.org"))
	await(t, "a busy worker", aWorker(t, pool).busy.Load)
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := pool.Compile(short, order(t, "production", "bad", "fine.example.org")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	cancel()
	<-busy
}

// TestMain also is the child process of the next test: a server with a worker
// that loops and one whose child sleeps, until it is killed.
func TestMain(m *testing.M) {
	dir := os.Getenv("TUTTI_TEST_SERVER_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	made := loose
	if os.Getenv("TUTTI_TEST_SERVER_CELL") != "" {
		var err error
		if made, err = open(); err != nil {
			panic(err)
		}
	}
	pool := New(Config{Workers: 2, Dir: dir, Keeper: made}, directories{version("bad"): os.Getenv("TUTTI_TEST_SERVER_CODE")}, nil, discard())
	for _, node := range []fleet.Certname{"loops.example.org", "sleeps.example.org"} {
		o := compile.Order{Node: node, Environment: "production", Version: version("bad"), Facts: json.RawMessage("{}")}
		go func() { _, _ = pool.Compile(context.Background(), o) }()
	}
	_ = pool.Run(context.Background())
}

func TestKilledServerLeavesNoOrphans(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	for name, variable := range map[string]string{"in a cell": "TUTTI_TEST_SERVER_CELL=1", "without": "TUTTI_TEST_SERVER_CELL="} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, code := t.TempDir(), tree(t, badCode)
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
			cmd.Env = append(os.Environ(), "TUTTI_TEST_SERVER_DIR="+dir, "TUTTI_TEST_SERVER_CODE="+code, variable)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var started []int
			await(t, "zygote, workers and a child of generate()", func() bool {
				started = belowOf(cmd.Process.Pid)[1:]
				workers, sleeping := 0, 0
				for _, pid := range started {
					line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
					if strings.HasPrefix(string(line), "tutti worker") {
						workers++
					}
					if strings.HasPrefix(string(line), "/bin/sleep") {
						sleeping++
					}
				}
				return workers >= 2 && sleeping > 0
			})
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			await(t, "the end of all that the server started", func() bool { return !slices.ContainsFunc(started, isRunning) && len(processesIn(dir)) == 0 })
		})
	}
}

func TestRunEndsEverything(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	dir := t.TempDir()
	pool := New(Config{Workers: 2, Dir: dir}, directories{version("bad"): tree(t, badCode)}, nil, discard())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- pool.Run(ctx) }()
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
	busy := compileLater(pool, t.Context(), order(t, "production", "bad", "sleeps.example.org"))
	await(t, "a busy worker", func() bool { return len(childrenOf(hostPID(t, aWorker(t, pool)))) > 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	await(t, "the end of all that was killed", func() bool { return len(processesIn(dir)) == 0 })
	if r := <-busy; r.err == nil {
		t.Error("the interrupted compile did not fail")
	}
	if _, err := pool.Compile(t.Context(), order(t, "production", "bad", "fine.example.org")); err == nil {
		t.Error("a stopped pool still compiles")
	}
	left, err := filepath.Glob(filepath.Join(dir, "zygotes", "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("directories are left: %v, %v", left, err)
	}
}

func manyOrdersFewWorkers(t *testing.T, pool *Pool) {
	t.Helper()
	var group sync.WaitGroup
	for n := range 50 {
		group.Go(func() {
			node := fmt.Sprintf("fine%d.example.org", n)
			outcome, err := pool.Compile(t.Context(), order(t, "production", "bad", node))
			if err != nil {
				t.Errorf("%s: %v", node, err)
				return
			}
			if c := parse(t, outcome.Catalog); c.Name != node {
				t.Errorf("got the catalog of %s, want %s", c.Name, node)
			}
		})
	}
	group.Wait()
	pool.mu.Lock()
	defer pool.mu.Unlock()
	if len(pool.workers) > 2 {
		t.Errorf("%d workers live, want at most 2", len(pool.workers))
	}
}

// generation is an environment whose classes, functions, templates and data
// carry a mark, so that anything that leaks shows.
func generation(mark string) map[string]string {
	return map[string]string{
		"hiera.yaml":                  "version: 5\nhierarchy: [{name: all, path: all.yaml, datadir: data, data_hash: yaml_data}]\n",
		"data/all.yaml":               "value: data " + mark + "\n",
		"manifests/site.pp":           "node default { include m }\n",
		"modules/m/manifests/init.pp": "class m { notify { 'all': message => [m::ruby(), m::dsl(), template('m/t.erb'), epp('m/t.epp'), lookup('value'), 'body " + mark + "', m3()] } }\n",
		"modules/m/functions/dsl.pp":  "function m::dsl() { 'dsl " + mark + "' }\n",
		"modules/m/lib/puppet/functions/m/ruby.rb": "MARK = 'ruby " + mark +
			"' unless defined?(MARK)\nPuppet::Functions.create_function(:'m::ruby') { def ruby; MARK; end }\n",
		"modules/m/lib/puppet/parser/functions/m3.rb": "Puppet::Parser::Functions.newfunction(:m3, type: :rvalue) { |_| '3x " + mark + "' }\n",
		"modules/m/templates/t.erb":                   "erb " + mark,
		"modules/m/templates/t.epp":                   "epp " + mark,
	}
}

func TestVersionsAndEnvironmentsDoNotLeak(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 2, Zygotes: 2}, directories{
		version("one"): tree(t, generation("one")), version("two"): tree(t, generation("two")), version("three"): tree(t, generation("three")),
	})
	type place struct{ environment, version string }
	places := []place{{"production", "one"}, {"production", "two"}, {"testing", "three"}, {"testing", "one"}}
	for round := range 2 {
		var group sync.WaitGroup
		for _, p := range places {
			group.Go(func() {
				outcome, err := pool.Compile(t.Context(), order(t, p.environment, p.version, "n.example.org"))
				if err != nil {
					t.Errorf("round %d, %v: %v", round, p, err)
					return
				}
				c := parse(t, outcome.Catalog)
				if c.Environment != p.environment || fleet.Digest(c.Version) != version(p.version) {
					t.Errorf("%v: the catalog is of %s, version %s", p, c.Environment, c.Version)
				}
				for _, text := range c.find("Notify[all]").Parameters["message"].([]any) {
					if !strings.HasSuffix(text.(string), " "+p.version) {
						t.Errorf("round %d, %v: got %q", round, p, text)
					}
				}
			})
		}
		group.Wait()
	}
	await(t, "the end of zygotes that are too many", func() bool {
		pool.mu.Lock()
		defer pool.mu.Unlock()
		return len(pool.entries) <= 2
	})
}

func TestWarm(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bench"): copyTree(t, "testdata/bench")})
	samples := []compile.Order{order(t, "production", "bench", "medium-0.example.org"), order(t, "production", "bench", "unknown.example.org"), {}}
	if err := pool.Warm(t.Context(), "production", version("bench"), samples); err != nil {
		t.Fatal(err)
	}
	warm, err := pool.Compile(t.Context(), order(t, "production", "bench", "medium-1.example.org"))
	if err != nil {
		t.Fatal(err)
	}
	pool.mu.Lock()
	var lessons int64
	for _, e := range pool.entries {
		lessons = e.z.lessons.Load()
	}
	pool.mu.Unlock()
	if lessons != 1 {
		t.Errorf("the zygote had %d lessons, want 1: a warm one needs no more", lessons)
	}
	compareCatalogs(t, "medium-1", stockCatalogs(t, "bench", []compile.Order{order(t, "production", "bench", "medium-1.example.org")})[0], warm.Catalog)
	if found := len(parse(t, warm.Catalog).Resources); found < 500 {
		t.Errorf("the warm catalog has %d resources: that is not the one of the fixture", found)
	}
}

func TestSamplesThatNeverEndLeaveALoadedZygote(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, WarmTimeout: 2 * time.Second}, directories{version("bad"): tree(t, badCode)})
	samples := []compile.Order{order(t, "production", "bad", "fine.example.org"), order(t, "production", "bad", "loops.example.org")}
	if err := pool.Warm(t.Context(), "production", version("bad"), samples); err != nil {
		t.Fatal(err)
	}
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

func TestSamplesThatLeavePuppetHalfWayAreNotKept(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("bad"): tree(t, badCode)})
	samples := []compile.Order{order(t, "production", "bad", "recursion.example.org"), order(t, "production", "bad", "fails.example.org")}
	if err := pool.Warm(t.Context(), "production", version("bad"), samples); err != nil {
		t.Fatal(err)
	}
	if !pool.isSlow(key{environment: "production", version: version("bad")}) {
		t.Error("the zygote that compiled an endless recursion is still used")
	}
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

func TestIdleZygotesEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := running(t, Config{Workers: 1, Dir: dir, IdleZygote: 100 * time.Millisecond}, directories{version("bad"): tree(t, badCode)})
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
	await(t, "the end of the idle zygote", func() bool { return len(processesIn(dir)) == 0 })
	mustCompile(t, pool, order(t, "production", "bad", "fine.example.org"))
}

// abandoning is an environment in which a compile, of a node or as a sample, leaves a process behind: out of its group, its session, and its parents' reach.
func abandoning(seconds string) map[string]string {
	return map[string]string{
		"environment.conf": "modulepath = modules\n",
		"manifests/site.pp": `
node 'leaves.example.org' { bad::abandon() }
node 'leaves-and-fails.example.org' { bad::abandon() fail('because I say so') }
node 'sleeps.example.org' { $x = generate('/bin/sleep', '300') }
node default { $x = generate('/bin/echo', 'x') notify { 'fine': } }
`,
		"modules/bad/lib/puppet/functions/bad/abandon.rb": function("abandon", "", `
    system('setsid', 'sh', '-c', 'setsid sleep `+seconds+` & exit 0')
    nil until Dir.glob('/proc/[0-9]*/cmdline').any? { |path| (File.read(path) rescue '') == "sleep\x00`+seconds+`\x00" }`),
	}
}

// sleepers counts the processes of this machine that sleep for a time that only one test has.
func sleepers(seconds string) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		text, err := os.ReadFile(name)
		pid, _ := strconv.Atoi(strings.Split(name, "/")[2])
		if err == nil && string(text) == "sleep\x00"+seconds+"\x00" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// What a compile leaves behind has ended when the catalog is there, so it is neither seen nor counted by the next one; a worker whose programs ended by
// themselves is used again.
func TestACompileLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, cells := range map[string]*cell.Keeper{"in a cell": keeper(t), "without": loose} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seconds := fmt.Sprintf("%d.%d", 5000+os.Getpid(), time.Now().UnixNano())
			pool := running(t, Config{Workers: 2, Keeper: cells, Timeout: time.Minute}, directories{version("left"): tree(t, abandoning(seconds))})
			mustCompile(t, pool, order(t, "production", "left", "fine.example.org"))
			kept := aWorker(t, pool)
			mustCompile(t, pool, order(t, "production", "left", "fine.example.org"))
			if now := aWorker(t, pool); now != kept {
				t.Error("a worker that left nothing behind was not used again")
			}
			mustCompile(t, pool, order(t, "production", "left", "leaves.example.org"))
			if left := sleepers(seconds); len(left) > 0 {
				t.Errorf("after the catalog was there %v still run", left)
			}
			_ = fails(t, pool, order(t, "production", "left", "leaves-and-fails.example.org"))
			if left := sleepers(seconds); len(left) > 0 {
				t.Errorf("after the compile failed %v still run", left)
			}

			ctx, cancel := context.WithCancel(t.Context())
			busy := compileLater(pool, ctx, order(t, "production", "left", "sleeps.example.org"))
			var asleep []int
			await(t, "a worker that waits for a program", func() bool {
				asleep = childrenOf(hostPID(t, aWorker(t, pool)))
				return len(asleep) > 0
			})
			if err := pool.Warm(t.Context(), "production", version("left"), []compile.Order{order(t, "production", "left", "leaves.example.org")}); err != nil {
				t.Fatal(err)
			}
			if left := sleepers(seconds); len(left) > 0 {
				t.Errorf("after the samples %v still run", left)
			}
			if slices.ContainsFunc(asleep, func(pid int) bool { return !isRunning(pid) }) {
				t.Error("what the samples left behind was ended, and with it what a worker waits for")
			}
			cancel()
			<-busy
		})
	}
}
