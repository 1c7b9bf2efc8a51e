package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/puppet"
	"github.com/tutti-project/tutti/internal/agent/builtin/resource"
	"github.com/tutti-project/tutti/internal/agent/builtin/self"
	"github.com/tutti-project/tutti/internal/agent/facter"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
)

// Descriptions are only decoded when an agent starts: here they are checked.
func TestBuiltInModulesAreWhatTheyDescribe(t *testing.T) {
	t.Parallel()
	all, _ := builtins(puppet.Config{Run: orders.PreparePuppet(orders.Node{})})
	for _, m := range append(all, self.Module(self.Config{}), resource.Module(resource.Config{}), resource.Puppetral(resource.Config{})) {
		described, err := action.Parse(m.Name, m.Metadata)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		var names []string
		for _, a := range described.Actions {
			names = append(names, a.Name)
			if a.Description == "" || a.Timeout == 0 || a.ReadOnly && a.Shown() != action.Always {
				t.Errorf("%s %s: description %q, timeout %v, display %s", m.Name, a.Name, a.Description, a.Timeout, a.Shown())
			}
			for _, text := range [][]byte{a.Input, a.Results} {
				schema, err := action.Compile(text)
				if err != nil {
					t.Fatal(err)
				}
				for _, field := range schema.Fields() {
					if field.Title == field.Name && len(field.Name) > 3 {
						t.Errorf("%s %s: %s has no title", m.Name, a.Name, field.Name)
					}
				}
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(functions(m))), names); diff != "" || described.Version == "" {
			t.Errorf("%s: its functions and its actions (-functions +actions):\n%s", m.Name, diff)
		}
		for _, off := range m.Off {
			if a, there := described.Find(off); !there || a.ReadOnly {
				t.Errorf("%s: %s is off", m.Name, off)
			}
		}
	}
}

// What reads may be asked of this machine.
func TestReadingActionsOnThisMachine(t *testing.T) {
	t.Parallel()
	d := testDaemon(t)
	all, data := builtins(puppet.Config{})
	modules := map[string]builtin.Module{}
	for _, m := range append(all, self.Module(self.Config{
		Version: "1", Started: time.Now(), Facts: d.facts.last, Classes: d.classes, Data: data,
		Counts: func() (self.Counts, error) { return self.Counts{}, nil }, Modules: func() []action.Module { return nil },
	})) {
		modules[m.Name] = m
	}
	for _, question := range []string{
		`filemgr status {"file":"/etc/hosts"}`, `filemgr list {"file":"/etc"}`, `filemgr read {"file":"/etc/hosts"}`, `filemgr checksum {"file":"/etc/hosts"}`,
		`process list {}`, `rpcutil ping {}`,
		`rpcutil inventory {}`, `rpcutil daemon_stats {}`, `rpcutil agent_inventory {}`, `rpcutil get_fact {"fact":"os.family"}`,
		`rpcutil get_facts {"facts":"kernel"}`,
		`rpcutil get_data {"source":"fstat","query":"/etc/hosts"}`, `rpcutil get_data {"source":"file","query":"/nothing"}`,
		`rpcutil get_data {"source":"process","query":"."}`,
		`rpcutil get_data {"source":"service","query":"nothing-of-that-name"}`, `rpcutil get_data {"source":"fact","query":"kernel"}`,
		`rpcutil get_data {"source":"agent","query":"x"}`,
	} {
		words := strings.SplitN(question, " ", 3)
		if results, why := builtintest.Ask(t, modules[words[0]], words[1], words[2]); why != "" || len(results) < 3 {
			t.Errorf("%s: %s, %s", question, results, why)
		}
	}
}

// fakeFacter counts how often it is asked.
type fakeFacter struct{ asked int }

func (f *fakeFacter) All(context.Context) (facter.Facts, error) {
	f.asked++
	return facter.Facts{Values: json.RawMessage(`{"os":{"family":"Debian"},"kernel":"Linux"}`)}, nil
}

func (f *fakeFacter) Some(context.Context, []string) (json.RawMessage, error) { return nil, nil }

func testDaemon(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{Config: Default().Filled(), log: slog.New(slog.DiscardHandler)}
	d.Data, d.Dir, d.Binary = t.TempDir(), t.TempDir(), "/bin/tutti"
	d.facts = &submitter{source: &fakeFacter{}, turn: make(chan struct{}, 1), log: d.log}
	return d
}

func TestFactsAreThoseThatWereResolvedLast(t *testing.T) {
	t.Parallel()
	source := &fakeFacter{}
	f := &submitter{source: source, turn: make(chan struct{}, 1)}
	for i, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, `{"os":{"family":"Debian"},"kernel":"Linux"}`},
		{func() { f.kept.Values = json.RawMessage(`{"kept":1}`) }, `{"kept":1}`},
		{func() { f.pending = &facter.Facts{Values: json.RawMessage(`{"pending":1}`)} }, `{"pending":1}`},
	} {
		step.change()
		if got, err := f.last(t.Context()); string(got) != step.want || err != nil || source.asked != 1 {
			t.Errorf("%d: %s, %v, Facter was asked %d times", i, got, err, source.asked)
		}
	}
}

// slowFacter finds facts when it is told to.
type slowFacter struct {
	fakeFacter
	begun, found chan struct{}
}

func (f *slowFacter) All(ctx context.Context) (facter.Facts, error) {
	f.begun <- struct{}{}
	<-f.found
	return f.fakeFacter.All(ctx)
}

func TestWhoeverAsksWhileFactsAreResolvedTakesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &slowFacter{begun: make(chan struct{}, 2), found: make(chan struct{})}
		f := &submitter{source: source, turn: make(chan struct{}, 1), interval: time.Hour}
		go f.resolve(t.Context(), &agenda{})
		<-source.begun
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if got, err := f.last(ctx); fault.Of(err) != fault.Unavailable {
			t.Errorf("nobody waits any more: %s, %v", got, err)
		}
		answer := make(chan string)
		go func() {
			got, err := f.last(t.Context())
			answer <- fmt.Sprint(string(got), err)
		}()
		synctest.Wait()
		close(source.found)
		if got, want := <-answer, `{"os":{"family":"Debian"},"kernel":"Linux"}<nil>`; got != want || source.asked != 1 {
			t.Errorf("%s, want %s; Facter was asked %d times", got, want, source.asked)
		}
	})
}

func TestBuiltInsOfAnAgent(t *testing.T) {
	t.Parallel()
	d := testDaemon(t)
	d.Puppet = "/opt/x/puppet"
	own, err := d.builtins(orders.Node{})
	if err != nil {
		t.Fatal(err)
	}
	var names, off []string
	for _, m := range own {
		names = append(names, m.Name)
		for name, a := range m.Actions {
			if a.Off {
				off = append(off, m.Name+" "+name)
			}
		}
	}
	slices.Sort(off)
	if !slices.Equal(names, []string{"service", "package", "process", "filemgr", "puppet", "resource", "puppetral", "rpcutil"}) ||
		!slices.Equal(off, []string{"filemgr remove", "filemgr touch"}) {
		t.Errorf("modules %q, off %q", names, off)
	}
	c, err := own[0].Actions["start"].Prepare(t.Context(), orders.Order{Params: []byte(`{"service":"x"}`)})
	if diff := cmp.Diff([]string{"errand", "action", "--settings", d.settingsFile(), "--puppet", "/opt/x/puppet", "service", "start"}, c.Args); diff != "" ||
		err != nil || c.Path != "/bin/tutti" {
		t.Errorf("%v %s", err, diff)
	}
	var errs strings.Builder
	if RunAction(t.Context(), "", "", "filemgr", "touch", strings.NewReader(`{"file":"x"}`), io.Discard, &errs) ||
		!strings.HasPrefix(errs.String(), "field file: ") {
		t.Errorf("%s", errs.String())
	}
}

// What the modules cost an agent that nobody asks anything.
func TestIdleModulesCostLittle(t *testing.T) {
	d := testDaemon(t)
	used := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := used()
	own, err := d.builtins(orders.Node{})
	cost := used() - before
	if err != nil || cost > 1<<20 {
		t.Errorf("%d bytes, %v", cost, err)
	}
	t.Logf("%d modules cost %d bytes", len(own), cost)
	runtime.KeepAlive(own)
}

// functions are all that a module does, by name.
func functions(m builtin.Module) map[string]bool {
	all := map[string]bool{}
	for name := range m.Calls {
		all[name] = true
	}
	for name := range m.Programs {
		all[name] = true
	}
	return all
}
