package code_test

import (
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

func TestMetadataDocument(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	m, err := tree.Metadata(t.Context(), "modules", "web/motd", code.MetadataOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(m)
	want := `{"path":"/etc/puppetlabs/code/environments/production/modules/web/files/motd","relative_path":null,"links":"manage",` +
		`"owner":0,"group":0,"mode":420,"checksum":{"type":"sha256","value":"{sha256}` +
		string(fleet.DigestOf([]byte("hello\n"))) + `"},"type":"file","destination":null}`
	if err != nil || string(text) != want {
		t.Errorf("got  %s, %v\nwant %s", text, err, want)
	}
}

func TestChecksumTypes(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	big := []byte(strings.Repeat("0123456789abcdef", 200))
	sum := func(b []byte) string { return hex.EncodeToString(b) }
	m5, s1, lite, s5 := md5.Sum(big), sha1.Sum(big), md5.Sum(big[:512]), sha512.Sum384(big)
	for name, want := range map[string]string{
		"md5": sum(m5[:]), "sha1": sum(s1[:]), "md5lite": sum(lite[:]), "sha384": sum(s5[:]),
		"sha256lite": string(fleet.DigestOf(big[:512])), "none": "",
	} {
		for range 2 { // computed, then remembered
			m, err := tree.Metadata(t.Context(), "modules", "web/big", code.MetadataOptions{ChecksumType: name})
			if err != nil || m.Checksum.Type != name || *m.Checksum.Value != "{"+name+"}"+want {
				t.Errorf("%s: %+v, %v; want %s", name, m.Checksum, err, want)
			}
		}
	}
	m, err := tree.Metadata(t.Context(), "modules", "web/big", code.MetadataOptions{ChecksumType: "mtime"})
	if err != nil || !strings.HasPrefix(*m.Checksum.Value, "{mtime}20") || !strings.HasSuffix(*m.Checksum.Value, " +0000") {
		t.Errorf("%+v, %v", m.Checksum, err)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	for name, opt := range map[string]code.SearchOptions{
		"links":       {MetadataOptions: code.MetadataOptions{Links: "x"}},
		"checksum":    {MetadataOptions: code.MetadataOptions{ChecksumType: "crc"}},
		"permissions": {MetadataOptions: code.MetadataOptions{SourcePermissions: "x"}},
		"patterns":    {Ignore: make([]string, 101)},
		"pattern":     {Ignore: []string{strings.Repeat("*", 2000)}},
		"limit":       {RecurseLimit: -1},
	} {
		if _, err := tree.Metadatas(t.Context(), "modules", "web", opt); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
	for _, path := range []string{"web/../../x", "..", strings.Repeat("x", 5000)} {
		if _, err := tree.Content("modules", path); fault.Of(err) != fault.Invalid {
			t.Errorf("%.40s: got %v, want Invalid", path, err)
		}
	}
}

func TestContent(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	for path, want := range map[string]string{
		"modules/web/motd": "hello\n", "modules/web/to_motd": "hello\n", "modules/web/conf.d/up": "hello\n",
		"modules/web/to_conf/a.conf": "a", "plugins/puppet/both.rb": "# site", "plugins/facter/base.rb": "# base",
		"modules/base/base.txt": "base", "modules/shadowed/which": "site", "tasks/web/restart.json": "{}", "scripts/web/s.sh": "s",
		"modules/linked/in_linked": "l", "pluginfacts/fact.sh": "#!/bin/sh\necho a=b\n",
	} {
		mount, rest, _ := strings.Cut(path, "/")
		f, err := tree.Content(mount, rest)
		if err != nil || f.Digest != fleet.DigestOf([]byte(want)) || f.Size != int64(len(want)) {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
	for path, want := range map[string]fault.Kind{
		"modules/web/conf.d": fault.Invalid, "modules/web/dangling": fault.NotFound, "modules/shadowed/only_base": fault.NotFound,
		"modules/": fault.NotFound, "nomount/x": fault.NotFound, "plugins/none": fault.NotFound,
	} {
		mount, rest, _ := strings.Cut(path, "/")
		if _, err := tree.Content(mount, rest); fault.Of(err) != want {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

func TestStaticContent(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	for path, want := range map[string]string{
		"modules/web/files/motd": "hello\n", "site/shadowed/files/which": "site", "modules/shadowed/files/which": "modules",
		".base_modules/0/base/files/base.txt": "base", "modules/web/lib/README.md": "read", "modules/web/tasks/restart.json": "{}",
		"modules/web/scripts/s.sh": "s", "modules/web/files/to_motd": "hello\n",
	} {
		f, err := tree.StaticContent(path)
		if err != nil || f.Digest != fleet.DigestOf([]byte(want)) {
			t.Errorf("%s: %+v, %v", path, f, err)
		}
	}
	for path, want := range map[string]fault.Kind{
		"environment.conf": fault.Denied, "manifests/site.pp": fault.Denied, "modules/web/facts.d/fact.sh": fault.Denied,
		"modules/web/files": fault.Denied, "hidden_away/files/in_linked": fault.Denied, "modules/web/files/none": fault.NotFound,
		"modules/web/files/conf.d": fault.Invalid, "../production/modules/web/files/motd": fault.Invalid,
		"modules/web/files/../lib/README.md": fault.Invalid, "/etc/passwd": fault.Invalid, "": fault.Invalid,
	} {
		if _, err := tree.StaticContent(path); fault.Of(err) != want {
			t.Errorf("%s: got %v, want %v", path, err, want)
		}
	}
}

func TestModulesAndLookup(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	want := []code.Module{
		{"shadowed", "site/shadowed"}, {"linked", "modules/linked"}, {"web", "modules/web"}, {"base", ".base_modules/0/base"},
	}
	if diff := cmp.Diff(want, tree.Modules()); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	if f, ok := tree.Lookup("modules/web/files/to_motd"); !ok || f.Kind != code.Link {
		t.Errorf("%+v, %v", f, ok)
	}
	if f, ok := tree.Lookup("modules/web"); !ok || f.Kind != code.Dir {
		t.Errorf("%+v, %v", f, ok)
	}
	if _, ok := tree.Lookup("modules/none"); ok {
		t.Error("found what is not there")
	}
}

func TestLinksInACircle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"modules/a/files/d/up@": "../../files", "modules/a/files/d/up2@": "../../files", "modules/a/files/x@": "y", "modules/a/files/y@": "x",
	})
	_, tree := newShelf().deploy(t, "production", dir, code.BuildOptions{})
	follow := code.SearchOptions{MetadataOptions: code.MetadataOptions{Links: "follow"}, Recurse: true}
	_, err := tree.Metadatas(t.Context(), "modules", "a/d", follow)
	wantKind(t, err, fault.Invalid)
	_, err = tree.Content("modules", "a/x")
	wantKind(t, err, fault.NotFound)
}

func TestEmptyUnions(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"/etc/puppetlabs/code/environments/production/modules": {"modules/a/manifests/init.pp": "x"},
		"/etc/puppetlabs/code":                                 {"manifests/site.pp": "x"},
	} {
		dir := t.TempDir()
		writeFiles(t, dir, files)
		_, tree := newShelf().deploy(t, "production", dir, code.BuildOptions{})
		got, err := tree.Metadatas(t.Context(), "plugins", "", code.SearchOptions{Recurse: true})
		if err != nil || len(got) != 1 || *got[0].RelativePath != "." || got[0].Path != name || got[0].Type != "directory" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func inline(t *testing.T, tree *code.Tree, resources string) (string, error) {
	t.Helper()
	out, err := code.Inline(t.Context(), tree, []byte(`{"name":"n","resources":[`+resources+`]}`), []string{"sha256"})
	return string(out), err
}

func TestInlineKeepsTheRest(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	catalog := ` { "zeta" : 12345678901234567890.10, "a":{"b" :[1, 2 ]}, "metadata":{"old":1},
		"resources": [ {"type":"File","title":"/é<x>","parameters":{"source":"puppet:///modules/web/motd","x":1e400}} ], "last":"\u00e9" } `
	out, err := code.Inline(t.Context(), tree, []byte(catalog), []string{"sha256"})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"zeta":12345678901234567890.10,"a":{"b" :[1, 2 ]},` +
		`"resources":[ {"type":"File","title":"/é<x>","parameters":{"source":"puppet:///modules/web/motd","x":1e400}} ],"last":"\u00e9",` +
		`"metadata":{"/é<x>":{"path":`
	if !strings.HasPrefix(string(out), want) {
		t.Errorf("got  %s\nwant %s...", out, want)
	}
	again, err := code.Inline(t.Context(), tree, out, []string{"sha256"})
	if err != nil || string(again) != string(out) {
		t.Errorf("a second time: %s, %v", again, err)
	}
}

// What Puppet cannot inline, because base modules are no part of its version.
func TestInlineBaseModulesAndWholeDirectories(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	out, err := inline(t, tree, `{"type":"File","title":"/b","parameters":{"source":"puppet:///modules/base/base.txt"}},
		{"type":"File","title":"/w","parameters":{"source":"puppet:///modules/web","recurse":true}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"content_uri":"puppet:///.base_modules/0/base/files/base.txt","source":"puppet:///modules/base/base.txt"`,
		`"content_uri":"puppet:///modules/web/files"`, `"content_uri":"puppet:///modules/web/files/conf.d/a.conf"`,
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s is missing in %s", want, out)
		}
	}
}

func TestInlineLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	for name, resource := range map[string]string{
		"another server": `{"type":"File","title":"/x","parameters":{"source":"puppet://other/modules/web/motd"}}`,
		"custom mount":   `{"type":"File","title":"/x","parameters":{"source":"puppet:///data/motd"}}`,
		"deferred":       `{"type":"File","title":"/x","parameters":{"source":{"__ptype":"Deferred"}}}`,
		"no parameters":  `{"type":"File","title":"/x"}`,
		"nothing":        `{"type":"File","title":"/x","parameters":{"source":[]}}`,
	} {
		out, err := inline(t, tree, resource)
		if want := `{"name":"n","resources":[` + resource + `]}`; err != nil || out != want {
			t.Errorf("%s: %s, %v", name, out, err)
		}
	}
}

func TestInlineRefuses(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	for _, catalog := range []string{
		``, `[]`, `{"resources":1}`, `{"resources":[]} x`, `{`, `{"resources":[{"type":"File","title":"x","parameters":["puppet:"]}]}`,
	} {
		if _, err := code.Inline(t.Context(), tree, []byte(catalog), []string{"md5"}); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: got %v, want Invalid", catalog, err)
		}
	}
	if _, err := code.Inline(t.Context(), tree, []byte(`{}`), []string{"crc32"}); fault.Of(err) != fault.Invalid {
		t.Errorf("got %v, want Invalid", err)
	}
}

func TestInlineLeavesMissingSourcesToTheAgent(t *testing.T) {
	t.Parallel()
	_, tree := sampleEnvironment(t)
	noURL := `"puppet:///modules/web/[a].conf"` // for Ruby
	for _, sources := range []string{`["puppet:///modules/web/no","puppet:///modules/no/no"]`, noURL} {
		out, err := inline(t, tree, `{"type":"File","title":"/x","parameters":{"source":`+sources+`}}`)
		if err != nil || strings.Contains(out, `"content_uri"`) || !strings.Contains(out, sources) {
			t.Errorf("got %s, %v", out, err)
		}
	}
}

func FuzzInline(f *testing.F) {
	dir := f.TempDir()
	name := filepath.Join(dir, "modules/a/files/f")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("f"), 0o644); err != nil {
		f.Fatal(err)
	}
	s := newShelf()
	bundle, err := code.Build(context.Background(), dir, code.BuildOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := bundle.Upload(context.Background(), s.blobs); err != nil {
		f.Fatal(err)
	}
	if _, err := s.Deploy(context.Background(), code.Deployment{Environment: "e", Manifest: bundle.Manifest}); err != nil {
		f.Fatal(err)
	}
	tree, err := s.Current(context.Background(), "e")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"resources":[{"type":"File","title":"x","parameters":{"source":"puppet:///modules/a/f"}}]}`))
	f.Add([]byte(`{"resources":[{"type":"File","title":"x","parameters":{"source":["puppet:///modules/a"],"recurse":true,"ignore":"*"}}]}`))
	f.Fuzz(func(t *testing.T, catalog []byte) {
		out, err := code.Inline(t.Context(), tree, catalog, []string{"sha256"})
		if err == nil && !json.Valid(out) {
			t.Errorf("%q became %q", catalog, out)
		}
	})
}

func BenchmarkPlugins900(b *testing.B) {
	m := code.Manifest{ModulePath: []string{"modules"}}
	for i := range 900 {
		m.Files = append(m.Files, code.File{
			Path:   fmt.Sprintf("modules/m%02d/lib/puppet/functions/f%03d.rb", i/10, i),
			Digest: fleet.DigestOf(fmt.Append(nil, i)), Size: 1,
		})
	}
	tree := code.NewTestTree(m)
	opt := code.SearchOptions{Recurse: true, Ignore: []string{".svn", "CVS", ".git", ".hg"}}
	for b.Loop() {
		found, err := tree.Metadatas(b.Context(), "plugins", "", opt)
		if err != nil || len(found) != 903 {
			b.Fatalf("%d, %v", len(found), err)
		}
	}
}

func BenchmarkInline2000(b *testing.B) {
	m := code.Manifest{ModulePath: []string{"modules"}}
	for i := range 200 {
		m.Files = append(m.Files, code.File{Path: fmt.Sprintf("modules/a/files/f%03d", i), Digest: fleet.DigestOf(fmt.Append(nil, i)), Size: 1})
	}
	tree := code.NewTestTree(m)
	var resources []string
	for i := range 2000 {
		parameters := `"ensure":"present","content":"` + strings.Repeat("x", 300) + `"`
		if i%10 == 0 {
			parameters = fmt.Sprintf(`"ensure":"file","source":"puppet:///modules/a/f%03d"`, i/10)
		}
		resources = append(resources, fmt.Sprintf(
			`{"type":"File","title":"/etc/f%d","tags":["file","class","a"],"file":"x.pp","line":%d,"exported":false,"parameters":{%s}}`, i, i, parameters))
	}
	catalog := []byte(`{"name":"n","resources":[` + strings.Join(resources, ",") + `],"edges":[]}`)
	b.SetBytes(int64(len(catalog)))
	for b.Loop() {
		if _, err := code.Inline(b.Context(), tree, catalog, []string{"sha256"}); err != nil {
			b.Fatal(err)
		}
	}
}
