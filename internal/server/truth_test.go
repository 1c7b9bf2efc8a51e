package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tutti-project/tutti/e2e/truth"
)

// mistakenWorlds is how many of the worlds below have a mistake that was put in, suiteWorlds how many there are.
const (
	mistakenWorlds = 3
	suiteWorlds    = 16
)

// The catalogs of random control repositories are what plain Puppet gives, or there is
// none for the same reason; also after a random change, or many, when most are not
// compiled again. Every second world has Puppet 7's settings for what is strict: with
// those of Puppet 8 many end at the first variable that is not set. The suite takes few that have all constructs together, and some more.
// TUTTI_SEED, TUTTI_COUNT and TUTTI_STEPS choose others: `make soak-truth`.
func TestCatalogsArePlainPuppets(t *testing.T) {
	t.Parallel()
	seeds, steps := truth.Cover(mistakenWorlds), number(t, "TUTTI_STEPS", 1)
	for seed := uint64(1000); len(seeds) < suiteWorlds; seed++ {
		seeds = append(seeds, seed)
	}
	if count := number(t, "TUTTI_COUNT", 0); count > 0 {
		seeds = nil
		for i := range count {
			seeds = append(seeds, uint64(number(t, "TUTTI_SEED", 1)+i))
		}
	}
	servers := []chan *truthServer{make(chan *truthServer, 1), make(chan *truthServer, 1)} // by what a seed leaves when it is divided by two
	servers[0] <- newTruthServer(t, startPlain(t), strictness{}, nil)
	servers[1] <- newTruthServer(t, startPlain(t), lenient, nil)
	begin := time.Now()
	var worlds, compared, failed, reused, differ atomic.Int64
	t.Run("worlds", func(t *testing.T) {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
				t.Parallel()
				free := servers[seed%2]
				s := <-free
				defer func() { free <- s }()
				before := s.p.reuser.Stats().Reused
				s.enter(t, truth.New(seed))
				if !s.live(steps) {
					differ.Add(1)
				}
				compared.Add(int64(s.equal))
				failed.Add(int64(s.failed))
				reused.Add(int64(s.p.reuser.Stats().Reused - before))
				if n := worlds.Add(1); n%50 == 0 {
					fmt.Fprintf(os.Stderr, "%d worlds in %.0f s, %d differ\n", n, time.Since(begin).Seconds(), differ.Load())
				}
			})
		}
	})
	t.Logf("from seed %d on: %d worlds in %.0f s, %d catalogs or errors compared, %d of them errors, %d catalogs used again; %d worlds differ",
		seeds[0], worlds.Load(), time.Since(begin).Seconds(), compared.Load(), failed.Load(), reused.Load(), differ.Load())
	if len(seeds) > mistakenWorlds && (failed.Load() > compared.Load()/2 || reused.Load() < worlds.Load()/2) {
		t.Errorf("%d of %d gave no catalog, %d catalogs were used again: this test compared too little", failed.Load(), compared.Load(), reused.Load())
	}
}

// mistake is text of the compilers' code that a probe replaces.
type mistake struct{ file, plainly, mistaken string }

// probes put a mistake of the past back.
var probes = []struct {
	name      string
	mistakes  []mistake
	sorts     sorting // instead
	construct string  // that shows it
	first     uint64  // world, to begin with one that shows it soon
}{
	{"the main manifest is loaded without loaders", []mistake{
		{"compiler.rb", "{ current_environment: @environment, loaders: loaders }", "{ current_environment: @environment }"},
		{"loads.rb", "@known_resource_types = @loaders = @parsed_code = nil", ""},
	}, sorting{}, "site-function", 1},
	{"functions that Hiera asks are not noted", []mistake{
		{"lookups.rb", "Inputs.look(:function, @function_name) { super }", "super"},
	}, sorting{}, "hiera-lookup-key", 1},
	{"facts are sorted by name", nil, sorting{facts: true}, "iteration", 5},
	{"extensions of certificates are sorted by name", nil, sorting{extensions: true}, "iteration", 3},
}

// probeWorlds is in how many worlds of what a mistake needs it must be found.
const probeWorlds = 8

// The test above finds mistakes: each that is put back makes a difference in some world.
func TestTruthFindsMistakes(t *testing.T) {
	t.Parallel()
	plains := make(chan *truth.Plain, 2)
	for range cap(plains) {
		plains <- startPlain(t)
	}
	for _, probe := range probes {
		t.Run(probe.name, func(t *testing.T) {
			t.Parallel()
			plain := <-plains
			defer func() { plains <- plain }()
			s := newTruthServer(t, plain, strictness{}, func(s *truthServer) {
				s.sorts = probe.sorts
				for _, m := range probe.mistakes {
					putBack(t, filepath.Join(s.rubyCode(), m.file), m.plainly, m.mistaken)
				}
			})
			for seed := probe.first; seed < probe.first+probeWorlds; seed++ {
				s.enter(t, truth.New(seed, probe.construct))
				found := ""
				s.report = func(format string, args ...any) { found = fmt.Sprintf(format, args...) }
				if !s.live(4) {
					t.Logf("found in world %d of %s: %.600s", seed, probe.construct, found)
					return
				}
			}
			t.Errorf("not found in %d worlds of %s", probeWorlds, probe.construct)
		})
	}
}

// putBack replaces text in a file; it must be there.
func putBack(t *testing.T, path, old, fresh string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), old) {
		t.Fatalf("%s has no %q any more: change the probe", path, old)
	}
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(string(text), old, fresh)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// startPlain starts a process of plain Puppet.
func startPlain(t *testing.T) *truth.Plain {
	t.Helper()
	if _, err := exec.LookPath("puppet"); err != nil {
		t.Fatal("no puppet here: make test-deps")
	}
	plain, err := truth.StartPlain(t.TempDir(), "ruby")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plain.Stop(); err != nil {
			t.Error(err)
		}
	})
	return plain
}

// live compares at the start and after each step: one around the code, one of the code,
// in turns.
func (s *truthServer) live(steps int) bool {
	s.t.Helper()
	story := []string{"the start"}
	for step := 0; ; step++ {
		if difference := s.check(); difference != "" {
			s.report("seed %d, step %d, on a server that had served %v. Repeat it: make soak-truth SEED=%d COUNT=1 STEPS=%d\nmade of %s\nchanges:\n  %s\n%s",
				s.w.Seed, step, s.earlier, s.w.Seed, steps, strings.Join(s.w.Constructs, ", "), strings.Join(story, "\n  "), difference)
			return false
		}
		if step == steps {
			return true
		}
		if (uint64(step)+s.w.Seed)%2 == 0 {
			story = append(story, s.w.ChangeAround())
			s.around()
		} else {
			story = append(story, s.w.ChangeCode())
			s.deploy()
		}
	}
}
