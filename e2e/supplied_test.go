package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// An environment's code supplies modules of actions to its nodes: they come with a deploy, are replaced by another one, and go with the next. A node
// runs exactly what was deployed, whatever somebody did to its files; what cannot be used is told with the reason; a node that wants none has none.
func TestModulesComeFromTheCode(t *testing.T) {
	begin(t, 20)
	s := startRaced(t)
	d, wary := joinNode(t, s, "web-1"), joinNode(t, s, "web-2", "--environment-modules=false")
	control := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(control, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		write(t, path, text)
	}
	notes := func(says string) {
		put("modules/diary/tutti/notes/metadata.json", `{"description": "Notes", "version": "`+says+`", "actions": [{"name": "read", "read_only": true,
			"input": {"type": "object", "additionalProperties": false}, "results": {"type": "object", "properties": {"says": {"type": "string"}}}},
			{"name": "wait", "input": {"type": "object", "properties": {"for": {"type": "string"}}}, "results": {"type": "object"}}]}`)
		put("modules/diary/tutti/notes/lib/says", says)
		put("modules/diary/tutti/notes/run", `#!/bin/sh
cd "$(dirname "$0")"
case $1 in
read) printf '{"says": "%s"}' "$(cat lib/says)" ;;
wait) path=$(sed 's/.*"for":"\([^"]*\)".*/\1/'); touch "$path.begun"; while [ ! -e "$path" ]; do sleep 0.1; done; printf '{"says": "%s"}' "$(cat lib/says)" ;;
esac
`)
	}
	deploy := func() { t.Helper(); s.tutti(t, "code", "deploy", "--no-check", "production", control) }
	put("manifests/site.pp", "")
	notes("one")
	put("modules/diary/tutti/lost/metadata.json", `{"description": "No program", "actions": [{"name": "x", "input": {}, "results": {}}]}`)
	put("modules/diary/tutti/bad/metadata.json", `{"description": "Bad", "actions": []}`)
	put("modules/diary/tutti/bad/run", "#!/bin/sh\n")
	put("modules/diary/tutti/service/metadata.json", `{"description": "Not mine", "actions": [{"name": "x", "input": {}, "results": {}}]}`)
	put("modules/diary/tutti/service/run", "#!/bin/sh\n")
	for _, one := range []*daemon{d, wary} {
		one.start(t)
		one.connectedTo(t, "localhost:"+s.port())
	}
	s.knowsModule(t, 2, "rpcutil", "get_data")
	if r := s.try(t, "code", "deploy", "production", control); r.code != 4 ||
		!strings.Contains(r.err, "modules/diary/tutti/bad/metadata.json: its metadata has no actions") ||
		!strings.Contains(r.err, "modules/diary/tutti/lost: its folder has no program") || !strings.Contains(r.err, "2 mistakes: nothing was deployed") {
		t.Errorf("a deploy of modules that no node can use: exit code %d\n%s", r.code, r.text())
	}
	deploy() // both are told, and one asks

	reads := func() string { return s.try(t, "action", "run", "notes", "read", "-n", "web-1", "-o", "json").out }
	until := func(what string, ok func() bool) { t.Helper(); eventually(t, time.Minute, what, ok) }
	until("the first version", func() bool { return strings.Contains(reads(), `"says": "one"`) })
	if r := s.try(t, "action", "run", "notes", "read", "-n", "web-2"); !strings.Contains(r.text(), "notes") || r.code == 0 {
		t.Errorf("a node that wants none: %s", r.text())
	}
	problems := s.tutti(t, "action", "list", "--problems", "-o", "json")
	for _, want := range []string{
		"from diary/tutti/lost: the folder has none of run-linux_", "from diary/tutti/bad: its metadata has no actions",
		"the node has a module of this name already (built-in)",
	} {
		if !strings.Contains(problems, want) {
			t.Errorf("no %q in %s", want, problems)
		}
	}
	if text := s.tutti(t, "node", "show", "web-1", "-o", "json"); !strings.Contains(text, `"code"`) {
		t.Errorf("the node does not say that it has modules of its code: %s", text)
	}

	// Somebody changes what the node runs. It runs what was deployed.
	kept, err := filepath.Glob(filepath.Join(d.dir, "data", "modules", "*", "notes"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	write(t, filepath.Join(kept[0], "lib", "says"), "two") // of the same size
	if got := reads(); !strings.Contains(got, `"says": "one"`) {
		t.Errorf("a changed file was used: %s", got)
	}

	// Another version takes the place of one that is running, which goes on with its own files.
	gate := filepath.Join(t.TempDir(), "gate")
	job := strings.TrimSpace(s.tutti(t, "action", "run", "notes", "wait", "for="+gate, "-n", "web-1", "--yes", "--no-wait", "-o", "name"))
	until("that it began", func() bool { _, err := os.Stat(gate + ".begun"); return err == nil })
	notes("three")
	for _, gone := range []string{"lost", "bad", "service"} {
		if err := os.RemoveAll(filepath.Join(control, "modules/diary/tutti", gone)); err != nil {
			t.Fatal(err)
		}
	}
	deploy()
	until("the next version", func() bool { return strings.Contains(reads(), `"says": "three"`) })
	until("no problems", func() bool {
		return !strings.Contains(s.tutti(t, "action", "list", "--problems", "-o", "json"), "diary")
	})
	write(t, gate, "")
	if text := s.tutti(t, "job", "watch", job, "-o", "json"); !strings.Contains(text, `{\"says\":\"one\"}`) {
		t.Errorf("what ran while its module was replaced: %s", text)
	}

	// It is there after a restart without a server's word, and goes with the next version of the code.
	d.kill()
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	life := func(n int, kinds string) string {
		return strings.Join(strings.Fields(s.tutti(t, "event", "list", "--node", "web-1", "--kind", kinds, "--limit", fmt.Sprint(n), "-o", "csv",
			"--columns", "status")), " ")
	}
	until("its life in the stream", func() bool { // in any order: the server that it left may notice later than the one that it came to
		kinds := strings.Fields(life(6, "startup,connect,shutdown,disconnect"))
		slices.Sort(kinds)
		return slices.Equal(kinds, strings.Fields("connect connect disconnect startup startup status"))
	})
	until("the same after a restart", func() bool { return strings.Contains(reads(), `"says": "three"`) })
	if err := os.RemoveAll(filepath.Join(control, "modules/diary/tutti")); err != nil {
		t.Fatal(err)
	}
	d.end(syscall.SIGTERM)
	until("its end in the stream", func() bool { return life(2, "startup,connect,shutdown,disconnect") == "status disconnect shutdown" })
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	deploy()
	until("that it is gone", func() bool {
		kept, err := filepath.Glob(filepath.Join(d.dir, "data", "modules", "*", "notes"))
		return err == nil && len(kept) == 0 && !strings.Contains(s.tutti(t, "action", "list", "-o", "json"), `"notes"`)
	})
}
