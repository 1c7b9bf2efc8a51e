package ruby

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compile/compiletest"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// mistake is a text of the zygote's Ruby that is replaced by another one.
type mistake struct{ file, was, wrong string }

// netCode shows each of the mistakes below.
var netCode = map[string]string{
	"environment.conf": "modulepath = modules\n",
	"manifests/site.pp": `function sitefn($x) { "fn ${x}" }
node 'empty.example.org' { notify { 'always': message => sitefn('a') } }
node 'facts.example.org' { $facts['deep'].each |$key, $value| { notify { $key: message => $value } } }
node 'erb.example.org' { $role = 'web' notify { 'erb': message => template('net/role.erb') } }
node 'stale.example.org' { notify { 'stale': message => $facts['deep']['a'] } }
`,
	"modules/net/templates/role.erb": "<%= @role.to_s + '!' %>\n",
}

// The second opinion is no mirror: it finds mistakes that workers made before, put back one by one into a copy of their Ruby.
func TestPlainPuppetFindsOldMistakes(t *testing.T) {
	t.Parallel()
	root := tree(t, netCode)
	facts := json.RawMessage(`{"zebra":"1","deep":{"b":"2","a":"1"}}`)
	for _, test := range []struct {
		name, node string
		mistake    []mistake
	}{
		{"TheMainManifestIsLoadedWithoutItsLoaders", "empty", []mistake{
			{"compiler.rb", "current_environment: @environment, loaders: loaders }", "current_environment: @environment }"},
			{"loads.rb", "Puppet::Node::Environment.prepend(Main)", "nil"},
		}},
		{"FactsAreSortedByKey", "facts", []mistake{
			{"compilation.rb", "Puppet::Node::Facts.new(name, object('facts'))", "Puppet::Node::Facts.new(name, Sorted.of(object('facts')))"},
			{"compilation.rb", "  # One order, compiled by Puppet's own compiler.\n", "  module Sorted\n    def self.of(value)\n" +
				"      value.is_a?(Hash) ? value.sort.to_h { |k, v| [k, of(v)] } : value\n    end\n  end\n\n"},
		}},
		{"AVariableOfATemplateIsMissed", "erb", []mistake{
			{
				"templates.rb", "        return {} if wanted.empty?\n",
				"        wanted = wanted.reject { |name, _| name == 'role' }\n        return {} if wanted.empty?\n",
			},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			o := order(t, "production", "net", test.node+".example.org")
			o.Facts = facts
			plain := NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("net"): root}, baseModulePath)
			agree(t, running(t, Config{Workers: 1}, directories{version("net"): root}), plain, o)
			wrong := running(t, Config{Workers: 1, Ruby: mistaken(t, test.mistake)}, directories{version("net"): root})
			if found := opinions(t, wrong, plain, o); len(found) == 0 {
				t.Error("the mistake is not found")
			} else {
				t.Logf("found: %v", found)
			}
		})
	}
}

// mistaken is an interpreter that runs the zygote with mistakes: a script that runs Ruby on a changed copy. A text that is not there
// any more fails the test.
func mistaken(t *testing.T, mistakes []mistake) string {
	t.Helper()
	dir := t.TempDir()
	err := fs.WalkDir(zygoteCode, "zygote", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := zygoteCode.ReadFile(path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, "zygote/"))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		path := filepath.Join(dir, m.file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(text), m.was) != 1 {
			t.Fatalf("%s holds %q %d times: find out how the mistake would be made now", m.file, m.was, strings.Count(string(text), m.was))
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), m.was, m.wrong, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ruby, err := exec.LookPath("ruby")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "ruby.sh")
	text := fmt.Sprintf("#!/bin/sh\nfor a; do\n"+
		"  case \"$a\" in */ruby/main.rb) a=%s/main.rb;; esac\n  set -- \"$@\" \"$a\"; shift\ndone\nexec %s \"$@\"\n", dir, ruby)
	return programtest.Write(t, script, text)
}

// A catalog that stands although a fact changed that was read: the worker did not note that it read it.
func TestPlainPuppetFindsAStaleCatalog(t *testing.T) {
	t.Parallel()
	root := tree(t, netCode)
	unnoted := []mistake{{"compiler.rb", "notes.merge(facts.to_h)", "notes.merge(facts.to_h).merge('values' => [], 'present' => [])"}}
	for outcome, mistakes := range map[compile.VerifyOutcome][]mistake{compile.NotComparable: nil, compile.Differs: unnoted} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			pool := running(t, Config{Workers: 1, Ruby: mistaken(t, mistakes)}, directories{version("net"): root})
			queue, docs := compiletest.NewQueue(), compiletest.NewDocuments()
			facts := &compiletest.Facts{Queue: queue}
			orders := compile.Orders{Inputs: facts}
			reuser := compile.NewReuser(compile.ReuserParts{Store: queue.Reusables, Queue: queue, Orders: orders, Documents: docs, Engine: pool.Engine})
			verifier := compile.NewVerifier(compile.VerifierParts{
				Plain: NewPlain(Config{Keeper: keeper(t), Dir: t.TempDir()}, directories{version("net"): root}, baseModulePath),
				Store: queue.Verifications, History: queue, Reuser: reuser,
				Share: func() float64 { return 0 }, AfterDeploy: func() int { return 0 },
			}, compile.DefaultVerifier())
			finished := make(chan compile.Compilation, 1)
			dispatcher, err := compile.NewDispatcher(compile.DispatcherParts{
				Queue: queue, Compiler: pool, Orders: orders, Documents: docs, Results: &compiletest.Results{Queue: queue}, Verifier: verifier,
				Finished: func(c compile.Compilation) { finished <- c },
			}, compile.DefaultDispatcher("here", 1))
			if err != nil {
				t.Fatal(err)
			}
			const node = "stale.example.org"
			seq := facts.Set(node, `{"deep":{"a":"1"}}`)
			want := compile.Want{Node: node, Environment: "production", Version: version("net"), FactsSeq: seq, At: time.Now()}
			if _, err := queue.Want(t.Context(), want); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ended := make(chan error, 1)
			go func() { ended <- dispatcher.Run(ctx) }()
			if c := <-finished; c.Err != nil {
				t.Fatal(c.Err)
			}
			facts.Set(node, `{"deep":{"a":"2"}}`)
			v, err := verifier.Verify(t.Context(), node, "production", version("net"))
			if err != nil || v.Outcome != outcome {
				t.Errorf("got %+v, %v, want %s", v, err, outcome)
			}
			stop()
			if err := <-ended; err != nil {
				t.Errorf("the dispatcher ended with %v", err)
			}
		})
	}
}
