package code_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

const someDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

func regular(path string) string {
	return fmt.Sprintf(`{"path":%q,"digest":%q}`, path, someDigest)
}

func TestParseManifestRefuses(t *testing.T) {
	t.Parallel()
	files := func(list ...string) string {
		return `{"module_path":["modules"],"files":[` + strings.Join(list, ",") + `]}`
	}
	link := func(path, target string) string {
		return fmt.Sprintf(`{"path":%q,"kind":"link","target":%q}`, path, target)
	}
	tests := map[string]string{
		"nothing":                    ``,
		"not JSON":                   `x`,
		"a list":                     `[]`,
		"something behind":           files() + "{}",
		"an unknown key":             `{"module_path":[],"files":[],"x":1}`,
		"not UTF-8":                  files("{\"path\":\"\xff\",\"digest\":\"" + someDigest + "\"}"),
		"no path":                    files(`{"digest":"` + someDigest + `"}`),
		"absolute":                   files(regular("/etc/passwd")),
		"dots":                       files(regular("../x")),
		"dots inside":                files(regular("a/../x")),
		"a dot":                      files(regular(".")),
		"double slash":               files(regular("a//b")),
		"slash at the end":           files(regular("a/")),
		"git":                        files(regular("modules/x/.git/config")),
		"zero byte":                  files(`{"path":"a\u0000b","digest":"` + someDigest + `"}`),
		"backslash":                  files(regular(`a\\b`)),
		"long name":                  files(regular(strings.Repeat("x", 256))),
		"long path":                  files(regular(strings.Repeat("x/", 2048) + "x")),
		"unsorted":                   files(regular("b"), regular("a")),
		"twice":                      files(regular("a"), regular("a")),
		"a file and a directory":     files(regular("a"), regular("a/b")),
		"same, with one between":     files(regular("a"), regular("a.b"), regular("a/b")),
		"a filled directory":         files(`{"path":"a","kind":"dir"}`, regular("a/b")),
		"a directory with a digest":  files(`{"path":"a","kind":"dir","digest":"` + someDigest + `"}`),
		"below a link":               files(link("a", "b"), regular("a/b")),
		"an unknown kind":            files(`{"path":"a","kind":"fifo"}`),
		"a short digest":             files(`{"path":"a","digest":"12"}`),
		"no digest":                  files(`{"path":"a"}`),
		"a negative size":            files(`{"path":"a","size":-1,"digest":"` + someDigest + `"}`),
		"a huge file":                files(`{"path":"a","size":99999999999,"digest":"` + someDigest + `"}`),
		"a file with a target":       files(`{"path":"a","target":"b","digest":"` + someDigest + `"}`),
		"a link without target":      files(`{"path":"a","kind":"link"}`),
		"a link out":                 files(link("a/b", "../../x")),
		"a link out, at the root":    files(link("a", "..")),
		"a link with a way back":     files(link("a", "b/../../..")),
		"a link to an absolute path": files(link("a", "/etc/passwd")),
		"a module path outside":      `{"module_path":["../x"],"files":[]}`,
		"a module path twice":        `{"module_path":["x","x"],"files":[]}`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := code.ParseManifest([]byte(text))
			wantKind(t, err, fault.Invalid)
			if fault.Detail(err) == "" || len(fault.Detail(err)) > 1000 {
				t.Errorf("detail: %q", fault.Detail(err))
			}
		})
	}
}

func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	m := code.Manifest{Files: make([]code.File, code.MaxFiles+1)}
	wantKind(t, m.Check(), fault.Invalid)
}

// manifests draws valid manifests.
func manifests(t *rapid.T) code.Manifest {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c.é]{1,3}(/[a-c-]{1,2}){0,3}`), 0, 12, rapid.ID).Draw(t, "paths")
	slices.Sort(names)
	m := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{}}
	for _, name := range names {
		f := code.File{Path: name}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			f.Kind = code.Dir
		case 1:
			f.Kind, f.Target = code.Link, rapid.StringMatching(`[a-z]{1,3}(/[a-z<&]{1,3})?`).Draw(t, "target")
		default:
			f.Digest = fleet.DigestOf([]byte(name))
			f.Size = rapid.Int64Range(0, code.MaxFileBytes).Draw(t, "size")
			f.Executable = rapid.Bool().Draw(t, "executable")
		}
		if m.Files = append(m.Files, f); m.Check() != nil {
			m.Files = m.Files[:len(m.Files)-1] // it does not fit the others
		}
	}
	return m
}

func TestManifestsComeBackTheSame(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := manifests(t)
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := code.ParseManifest(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		if id, err := code.VersionOf(got); err != nil || id != fleet.DigestOf(text) {
			t.Fatalf("version %s, %v", id, err)
		}
	})
}

func TestVersionNameIsStable(t *testing.T) {
	t.Parallel()
	m := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{
		{Path: "a<b>", Digest: someDigest, Size: 3, Executable: true},
		{Path: "d", Kind: code.Dir},
		{Path: "l", Kind: code.Link, Target: "d"},
	}}
	text, err := m.Encode()
	want := `{"module_path":["modules"],"files":[{"path":"a<b>","digest":"` + someDigest +
		`","size":3,"executable":true},{"path":"d","kind":"dir"},{"path":"l","kind":"link","target":"d"}]}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s, %v\nwant %s", text, err, want)
	}
	empty, _ := code.Manifest{}.Encode()
	if string(empty) != `{"module_path":[],"files":[]}` {
		t.Errorf("empty: %s", empty)
	}
}

func FuzzParseManifest(f *testing.F) {
	f.Add([]byte(`{"module_path":["modules"],"files":[` + regular("a") + `]}`))
	f.Add([]byte(`{"module_path":[".base_modules/0"],"files":[{"path":"a","kind":"dir"},{"path":"l","kind":"link","target":"../x"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := code.ParseManifest(text)
		if err != nil {
			return
		}
		canonical, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := code.ParseManifest(canonical)
		if err != nil {
			t.Fatalf("%v: %s", err, canonical)
		}
		if second, _ := again.Encode(); !bytes.Equal(canonical, second) {
			t.Errorf("%s\nbecame %s", canonical, second)
		}
	})
}

func FuzzFnmatch(f *testing.F) {
	f.Add("*.rb", "x.rb")
	f.Add("[a-", "a")
	f.Add(`\`, "")
	f.Fuzz(func(_ *testing.T, pattern, name string) { code.Fnmatch(pattern, name) })
}
