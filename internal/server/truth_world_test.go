package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tutti-project/tutti/e2e/truth"
	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// truthServer is a server without its doors that serves one world, and plain Puppet
// beside it.
type truthServer struct {
	t       *testing.T
	w       *truth.World
	p       *parts
	orders  compile.Orders
	plain   *truth.Plain
	strict  strictness
	env     string
	version fleet.Digest
	group   *classify.Group
	serial  int
	earlier []uint64 // seeds of worlds before this one

	sorts sorting // a mistake

	report func(format string, args ...any) // is told a difference

	exported map[string][]truth.Exported // of nodes, by plain Puppet
	done     map[string]plainDone        // by node
	code     int                         // how often the code changed
	failed   int                         // compilations that gave no catalog
	equal    int                         // comparisons
}

// strictness is what the server's settings say; empty: Puppet's defaults.
type strictness struct{ strict, variables string }

// lenient is what Puppet 7 does if nobody says anything.
var lenient = strictness{"warning", "false"}

// arguments are the same for plain Puppet.
func (s strictness) arguments() (args []string) {
	if s.strict != "" {
		args = append(args, "--strict", s.strict)
	}
	if s.variables != "" {
		args = append(args, map[string]string{"true": "--strict_variables", "false": "--no-strict_variables"}[s.variables])
	}
	return args
}

// sorting is whether what comes from a node loses its order.
type sorting struct{ facts, extensions bool }

// plainDone is what plain Puppet was asked last, and what it said.
type plainDone struct {
	request string
	result  truth.Result
	left    bool // it makes no static catalog, for a source that Tutti leaves to the agent: its catalog is one that is not static
}

// newTruthServer starts it, without a world. change may put a mistake into it first; nil: it stays as it is.
func newTruthServer(t *testing.T, plain *truth.Plain, strict strictness, change func(*truthServer)) *truthServer {
	t.Helper()
	c := settings.Default()
	c.PuppetStrict, c.PuppetStrictVariables = strict.strict, strict.variables
	c.Data, c.CompileWorkers, c.MaxLoad, c.IdleLoad, c.CompileJIT, c.ReuseCheck, c.VolatileTTL = filepath.Join(t.TempDir(), "data"), 1, 0, 0, false, 0, 0
	p, err := open(t.Context(), c, newLogger(c, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- p.ruby.Run(ctx) }()
	go func() { ended <- p.dispatch.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, <-ended, p.close()); err != nil {
			t.Error(err)
		}
	})
	s := &truthServer{t: t, p: p, plain: plain, strict: strict, env: filepath.Join(t.TempDir(), "env")}
	s.orders = compile.Orders{Inputs: asTold{p.store.Facts}, Classifier: checkin.Classes{Groups: p.groups}, ServerFacts: p.serverFacts()}
	if change != nil {
		change(s)
	}
	return s
}

// enter makes it serve a world, from here on as part of t. Nothing is left of the one before but what the
// server has learnt: its zygotes, versions, and catalogs that were used for the same code.
func (s *truthServer) enter(t *testing.T, w *truth.World) *truthServer {
	t.Helper()
	s.t, s.report = t, t.Errorf
	if s.w != nil {
		for _, node := range s.w.Nodes {
			s.must(s.p.store.Nodes.PurgeNode(t.Context(), fleet.Certname(node.Name)))
		}
		s.earlier = append(s.earlier, s.w.Seed)
	}
	s.w, s.exported, s.done = w, map[string][]truth.Exported{}, map[string]plainDone{}
	s.failed, s.equal = 0, 0
	s.around()
	s.deploy()
	return s
}

// rubyCode is where the compilers' code is, once all of it is there.
func (s *truthServer) rubyCode() string {
	s.t.Helper()
	dir := filepath.Join(s.p.data.Join("ruby"), s.p.ruby.Standings()[0].Name, "ruby")
	last, err := os.Stat("../compiler/ruby/zygote/zygote.rb") // the last to be written
	s.must(err)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(3 * time.Minute); ; {
		if info, err := os.Stat(filepath.Join(dir, "zygote.rb")); err == nil && info.Size() == last.Size() {
			return dir
		}
		if time.Now().After(end) {
			s.t.Fatalf("the compilers' code is not in %s", dir)
		}
		<-tick.C
	}
}

func (s *truthServer) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// deploy makes the world's files the environment's version.
func (s *truthServer) deploy() {
	s.t.Helper()
	s.must(os.RemoveAll(s.env))
	for path, text := range s.w.Files {
		path = filepath.Join(s.env, path)
		s.must(os.MkdirAll(filepath.Dir(path), 0o755))
		s.must(os.WriteFile(path, []byte(text), 0o644))
	}
	bundle, err := code.Build(s.t.Context(), s.env, code.BuildOptions{})
	s.must(err)
	_, err = bundle.Upload(s.t.Context(), s.p.blobs)
	s.must(err)
	v, err := s.p.library.Deploy(s.t.Context(), code.Deployment{
		Environment: "production", Manifest: bundle.Manifest, At: time.Now(), Actor: "test",
		Origin: "test",
	})
	s.must(err)
	s.version = v.ID
	s.code++
}

// around saves facts and the group.
func (s *truthServer) around() {
	s.t.Helper()
	for _, node := range s.w.Nodes {
		now := time.Now()
		values, arrangement, err := facts.Canonical(encoded(s.t, node.Facts))
		s.must(err)
		if s.sorts.facts {
			arrangement = ""
		}
		_, _, err = s.p.store.Facts.SaveFacts(s.t.Context(), inventory.FactSet{
			Certname: fleet.Certname(node.Name), Environment: "production", Values: values, Arrangement: arrangement, Digest: fleet.DigestOf(values),
			ReceivedAt: now, Timestamp: now, Origin: inventory.Origin{ProducedAt: now},
		})
		s.must(err)
	}
	g := classify.Group{ID: classify.NewID(), Name: "all", Parent: classify.RootID}
	if s.group != nil {
		g = *s.group
	}
	g.Pinned = nil
	for _, node := range s.w.Nodes {
		g.Pinned = append(g.Pinned, fleet.Certname(node.Name))
	}
	g.Classes, g.Data, g.Variables = classesOf(s.w.Group.Classes), classesOf(s.w.Group.Data), valuesOf(s.w.Group.Variables)
	saved, err := s.p.store.Groups.ChangeGroups(s.t.Context(), []classify.Change{groupChange(s.group, g)})
	s.must(err)
	s.group = &saved[0]
}

func classesOf(values map[string]map[string]string) classify.Classes {
	classes := classify.Classes{}
	for name, given := range values {
		classes[name] = valuesOf(given)
	}
	return classes
}

func valuesOf(given map[string]string) classify.Values {
	values := classify.Values{}
	for name, value := range given {
		values[name] = json.RawMessage(value)
	}
	return values
}

func encoded(t *testing.T, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// trusted is what a node's certificate says, as the server makes it.
func (s *truthServer) trusted(node *truth.Node) json.RawMessage {
	s.t.Helper()
	text := encoded(s.t, node.Trusted)
	if !s.sorts.extensions {
		return text
	}
	var values map[string]any
	s.must(json.Unmarshal(text, &values))
	return encoded(s.t, values)
}

// served is what each node is given. Nodes ask until nobody's catalog changes any more:
// some collect what others export.
func (s *truthServer) served() map[string]truth.Result {
	s.t.Helper()
	results, names := map[string]truth.Result{}, map[string]string{}
	for range 5 {
		before := maps.Clone(names)
		for _, node := range s.w.Nodes {
			s.serial++
			answer, err := s.p.catalogs.Catalog(s.t.Context(), compile.Ask{
				Node: fleet.Certname(node.Name), Environment: "production", Version: s.version, Trusted: s.trusted(node),
				Transaction: fmt.Sprintf("t-%d", s.serial), Patience: 10 * time.Minute, Static: true,
			})
			if failed, ok := errors.AsType[*compile.Error](err); ok {
				results[node.Name], names[node.Name] = truth.Result{Error: failed.Message}, failed.Message
				continue
			}
			s.must(err)
			results[node.Name], names[node.Name] = truth.Result{Catalog: answer.Catalog}, string(answer.Compilation.Catalog)
		}
		if maps.Equal(before, names) {
			break
		}
	}
	return results
}

// fresh is what plain Puppet gives each node, once all have what others export.
func (s *truthServer) fresh() map[string]truth.Result {
	s.t.Helper()
	results := map[string]truth.Result{}
	for range 5 {
		stands := true
		for _, node := range s.w.Nodes {
			order, _, err := s.orders.Build(s.t.Context(), compile.Compilation{
				Node: fleet.Certname(node.Name), Environment: "production",
				Version: s.version, Trusted: encoded(s.t, node.Trusted),
			})
			s.must(err)
			request := truth.Request{
				Root: s.env, Environment: "production", Static: true, Exported: []truth.Exported{},
				Arguments: s.strict.arguments(), Order: map[string]any{
					"node": node.Name, "facts": node.Facts, "trusted": node.Trusted, "server_facts": order.ServerFacts,
					"classes": order.Classes, "parameters": order.Parameters, "data": order.Data,
				},
			}
			for _, name := range slices.Sorted(maps.Keys(s.exported)) {
				if name != node.Name {
					request.Exported = append(request.Exported, s.exported[name]...)
				}
			}
			text := fmt.Sprint(s.code, string(encoded(s.t, request)))
			if s.done[node.Name].request != text {
				stands = false
				result, err := s.plain.Compile(request)
				s.must(err)
				left := truth.LeftToTheAgent(result.Error)
				if left {
					request.Static = false
					result, err = s.plain.Compile(request)
					s.must(err)
				}
				s.done[node.Name] = plainDone{text, result, left}
				if result.Error == "" {
					s.exported[node.Name] = result.Exported
				}
			}
			results[node.Name] = s.done[node.Name].result
		}
		if stands {
			break
		}
	}
	return results
}

// check compares what is served with what plain Puppet gives; empty: all is equal.
func (s *truthServer) check() string {
	s.t.Helper()
	want, got := s.fresh(), s.served()
	for _, node := range s.w.Nodes {
		plain, ours := want[node.Name], got[node.Name]
		s.equal++
		if plain.Error != "" {
			s.failed++
		}
		if plain.Error != "" || ours.Error != "" {
			if !truth.SameError(plain.Error, ours.Error) {
				return fmt.Sprintf("%s: other errors\n  plain %.1500s\n  ours  %.1500s", node.Name, shownError(plain), shownError(ours))
			}
			continue
		}
		var ignored []string
		if s.done[node.Name].left {
			ignored = truth.OfFiles
		}
		difference, err := truth.Difference(plain.Catalog, ours.Catalog, ignored...)
		s.must(err)
		if difference != "" {
			return node.Name + ": " + difference
		}
	}
	return ""
}

func shownError(r truth.Result) string {
	if r.Error == "" {
		return "a catalog"
	}
	return r.Error
}
