package e2e_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Recursion does what each setting asks for.
func TestRecursion(t *testing.T) {
	begin(t, 30)
	a := newAgent(t, theHouse(t), "recursion.test", "story=recursion")
	if err := os.MkdirAll(filepath.Join(a.scratch, "purged"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.scratch, "purged/stray.txt"), []byte("stray\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.run(t, 2)
	tree := map[string]string{"one.txt": "one\n", "sub/": "", "sub/two.txt": "two\n", "sub/two.bak": "old\n", "link.txt": "-> one.txt"}
	with := func(name, content string) map[string]string {
		changed := maps.Clone(tree)
		changed[name] = content
		return changed
	}
	without := func(names ...string) map[string]string {
		changed := maps.Clone(tree)
		maps.DeleteFunc(changed, func(name, _ string) bool {
			for _, n := range names {
				if strings.HasPrefix(name, n) {
					return true
				}
			}
			return false
		})
		return changed
	}
	for dir, want := range map[string]map[string]string{ // as Puppet Server
		"plain":    tree,
		"ignored":  without("sub/two.bak", "link.txt"),
		"links":    tree,
		"followed": with("link.txt", "one\n"),
		"md5":      tree,
		"mtime":    tree,
		"remote":   tree,
		"purged":   tree,
		"shallow":  {"one.txt": "one\n", "link.txt": "-> one.txt", "sub/": ""},
	} {
		same(t, dir, want, a.tree(t, dir))
	}
	a.run(t, 0)
}

// Of several sources the first that exists is taken; a tree can be made of all of them.
func TestSourceLists(t *testing.T) {
	begin(t, 30)
	a := newAgent(t, theHouse(t), "sources.test", "story=sources")
	a.run(t, 2)
	same(t, "first", "the source b\n", a.read(t, "first.txt"))
	same(t, "all", map[string]string{ // as Puppet Server
		"one.txt": "other one\n", "three.txt": "three\n", "sub/": "", "sub/two.txt": "two\n", "sub/two.bak": "old\n", "link.txt": "-> one.txt",
	}, a.tree(t, "all"))
	same(t, "one", map[string]string{"one.txt": "other one\n", "three.txt": "three\n"}, a.tree(t, "one"))
	a.run(t, 0)
}

// What a run overwrites goes to the server, and comes back from there; so does what is
// sent by hand.
func TestFilebucket(t *testing.T) {
	begin(t, 60)
	s := theHouse(t)
	a := newAgent(t, s, "bucket.test", "story=bucket", "bucket_server=localhost", "bucket_port="+s.port())
	precious := filepath.Join(a.scratch, "precious.txt")
	if err := os.WriteFile(precious, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := a.run(t, 2)
	same(t, "file", "new\n", a.read(t, "precious.txt"))
	old, hello := sha256Hex([]byte("old\n")), sha256Hex([]byte("hello\n"))
	contains(t, out, old)

	sent := filepath.Join(a.home, "hello.txt")
	if err := os.WriteFile(sent, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	restored := filepath.Join(a.home, "restored.txt")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{ // as Puppet Server
		{[]string{"backup", sent}, 0, sent + ": " + hello},
		{[]string{"backup", sent}, 0, sent + ": " + hello}, // it is there already
		{[]string{"get", hello}, 0, "hello\n"},
		{[]string{"get", old}, 0, "old\n"},
		{[]string{"get", strings.Repeat("0", 64)}, 1, "not found"},
		{[]string{"restore", restored, old}, 0, ""},
		{[]string{"diff", hello, old}, 0, "-hello"},
		{[]string{"diff", hello, restored}, 0, "+old"},
		{[]string{"list"}, 1, "Listing remote file buckets is not allowed"},
	} {
		r := a.puppet(t, append([]string{"filebucket"}, c.args...)...)
		if r.code != c.code || !strings.Contains(strings.ToLower(r.text()), strings.ToLower(c.says)) {
			t.Errorf("filebucket %s: exit code %d, want %d with %q\n%s", strings.Join(c.args, " "), r.code, c.code, c.says, r.text())
		}
	}
	content, err := os.ReadFile(restored)
	if err != nil || string(content) != "old\n" {
		t.Errorf("restored %q, %v", content, err)
	}
}
