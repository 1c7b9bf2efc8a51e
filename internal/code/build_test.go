package code_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

func build(t *testing.T, dir string, opt code.BuildOptions) *code.Bundle {
	t.Helper()
	bundle, err := code.Build(t.Context(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	return bundle
}

func paths(m code.Manifest) []string {
	var list []string
	for _, f := range m.Files {
		list = append(list, f.Path)
	}
	return list
}

func TestBuildListsWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"manifests/site.pp": "x", "run*": "#!", "empty/": "", "only_git/.git/config": "x", "link@": "manifests/site.pp",
		".git/config": "x", "modules/sub/.git": "gitdir: x", "modules/sub/a": "a", "abs@": filepath.Join(dir, "run"),
		"dir@": "./manifests/", ".hidden": "h",
	})
	bundle := build(t, dir, code.BuildOptions{})
	want := []string{
		".hidden", "abs", "dir", "empty", "link", "manifests/site.pp", "modules/sub/a", "only_git", "run",
	}
	if diff := cmp.Diff(want, paths(bundle.Manifest)); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
	for _, f := range bundle.Manifest.Files {
		switch f.Path {
		case "run":
			if !f.Executable || f.Size != 2 {
				t.Errorf("%+v", f)
			}
			r, err := bundle.Open(f.Digest)
			if err != nil {
				t.Fatal(err)
			}
			if content, err := io.ReadAll(r); err != nil || string(content) != "#!" {
				t.Errorf("%q, %v", content, err)
			}
			_ = r.Close()
		case "abs":
			if f.Target != "run" {
				t.Errorf("%+v", f)
			}
		case "dir":
			if f.Target != "manifests" {
				t.Errorf("%+v", f)
			}
		}
	}
	_, err := bundle.Open(someDigest)
	wantKind(t, err, fault.NotFound)
}

func TestIdenticalTreesAreOneVersion(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a/b": "1", "c*": "2", "d@": "c", "e/": ""}
	var ids []code.VersionID
	for range 2 {
		dir := t.TempDir()
		writeFiles(t, dir, files)
		id, err := code.VersionOf(build(t, dir, code.BuildOptions{}).Manifest)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	changed := t.TempDir()
	files["c"] = "2" // not executable any more
	delete(files, "c*")
	writeFiles(t, changed, files)
	other, _ := code.VersionOf(build(t, changed, code.BuildOptions{}).Manifest)
	if ids[0] != ids[1] || other == ids[0] {
		t.Errorf("versions %v and %v", ids, other)
	}
}

func TestModulePath(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	writeFiles(t, outside, map[string]string{
		"base/stdlib/lib/x.rb": "x", "base/README": "no module", "base/Not-A-Module/x": "x", "base/alias@": "../real/puppetlabs-alias",
		"real/puppetlabs-alias/files/f": "f", "real/puppetlabs-alias/files/l@": "f",
		"second/other/files/o": "o", "shared/files/s": "s",
	})
	base, second := filepath.Join(outside, "base"), filepath.Join(outside, "second")
	tests := map[string]struct {
		conf   string
		opt    code.BuildOptions
		want   []string
		inside []string // of .base_modules
	}{
		"default": {
			opt:  code.BuildOptions{BaseModulePath: []string{base, second, "/does/not/exist"}},
			want: []string{"modules", ".base_modules/0", ".base_modules/1"},
			inside: []string{
				".base_modules/0/alias/files/f", ".base_modules/0/alias/files/l",
				".base_modules/0/stdlib/lib/x.rb", ".base_modules/1/other/files/o",
			},
		},
		"no base modules": {want: []string{"modules"}},
		"absolute, relative and variables": {
			conf: "modulepath=site:" + second + ":${codedir}/base\n", opt: code.BuildOptions{Variables: map[string]string{"codedir": outside}},
			want:   []string{"site", ".base_modules/0", ".base_modules/1"},
			inside: []string{".base_modules/0/other/files/o"},
		},
		"pattern": {conf: "modulepath = si*\n", want: []string{"site", "site2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, map[string]string{"site/a/manifests/init.pp": "x", "site2/": ""})
			if tt.conf != "" {
				writeFiles(t, dir, map[string]string{"environment.conf": tt.conf})
			}
			m := build(t, dir, tt.opt).Manifest
			if diff := cmp.Diff(tt.want, m.ModulePath); diff != "" {
				t.Errorf("module path (-want +got):\n%s", diff)
			}
			for _, p := range tt.inside {
				if !slices.Contains(paths(m), p) {
					t.Errorf("%s is missing in %v", p, paths(m))
				}
			}
			if slices.ContainsFunc(paths(m), func(p string) bool { return strings.Contains(p, "README") || strings.Contains(p, "Not-A") }) {
				t.Errorf("more than modules: %v", paths(m))
			}
		})
	}
}

func TestEnvironmentConf(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"environment.conf": "# modulepath = wrong\n[main]\nmodulepath = site:./modules/:site\nmanifest = x\n[other]\nmodulepath = y\n",
	})
	if diff := cmp.Diff([]string{"site", "modules"}, build(t, dir, code.BuildOptions{}).Manifest.ModulePath); diff != "" {
		t.Errorf("module path (-want +got):\n%s", diff)
	}
	for name, conf := range map[string]string{"unknown variable": "modulepath = $confdir/x", "itself": "modulepath = ."} {
		writeFiles(t, dir, map[string]string{"environment.conf": conf})
		if _, err := code.Build(t.Context(), dir, code.BuildOptions{}); fault.Of(err) != fault.Invalid {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
}

func TestBuildRefusesByName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		files map[string]string
		opt   code.BuildOptions
		names string
	}{
		"a link out":             {files: map[string]string{"modules/bad@": "../../outside"}, names: "modules/bad"},
		"an absolute link out":   {files: map[string]string{"bad@": "/etc/passwd"}, names: "/etc/passwd"},
		"a crooked link":         {files: map[string]string{"bad@": "a/../../x"}, names: "bad"},
		"too many files":         {files: map[string]string{"a": "", "b": "", "c": ""}, opt: code.BuildOptions{MaxFiles: 2}, names: "more than 2 files"},
		"a file too large":       {files: map[string]string{"big": "12345"}, opt: code.BuildOptions{MaxFileBytes: 4}, names: "big"},
		"the reserved directory": {files: map[string]string{".base_modules/0/x/y": ""}, names: ".base_modules"},
		"a name not in UTF-8":    {files: map[string]string{"bad\xff": ""}, names: `bad\xff`},
		"a backslash":            {files: map[string]string{`bad\name`: ""}, names: "bad"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, tt.files)
			_, err := code.Build(t.Context(), dir, tt.opt)
			wantKind(t, err, fault.Invalid)
			if !strings.Contains(fault.Detail(err), tt.names) {
				t.Errorf("%q does not name %q", fault.Detail(err), tt.names)
			}
		})
	}
	t.Run("a pipe", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := code.Build(t.Context(), dir, code.BuildOptions{})
		wantKind(t, err, fault.Invalid)
		if !strings.Contains(fault.Detail(err), "pipe") {
			t.Errorf("%q", fault.Detail(err))
		}
	})
	t.Run("nothing there", func(t *testing.T) {
		t.Parallel()
		_, err := code.Build(t.Context(), filepath.Join(t.TempDir(), "none"), code.BuildOptions{})
		wantKind(t, err, fault.Invalid)
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := code.Build(ctx, t.TempDir(), code.BuildOptions{}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestUploadSendsOnlyWhatIsMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a": "1", "b": "2", "same": "1"})
	s := newShelf()
	for i, want := range []int{2, 0, 1} {
		if i == 2 {
			writeFiles(t, dir, map[string]string{"c": "3"})
		}
		if n, err := build(t, dir, code.BuildOptions{}).Upload(t.Context(), s.blobs); err != nil || n != want {
			t.Errorf("upload %d: %d, %v; want %d", i, n, err, want)
		}
	}
	bundle := build(t, dir, code.BuildOptions{})
	writeFiles(t, dir, map[string]string{"c": "changed since"})
	_, err := bundle.Upload(t.Context(), newShelf().blobs)
	wantKind(t, err, fault.Invalid)
	if err := os.Remove(filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	_, err = bundle.Upload(t.Context(), newShelf().blobs)
	wantKind(t, err, fault.Invalid)
}

func BenchmarkDeploy10000(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		name := filepath.Join(dir, fmt.Sprintf("modules/m%02d/files/%05d", i/200, i))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(name, fmt.Appendf(nil, "content %d %s", i, strings.Repeat("x", 1000)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		s := newDiskShelf(b)
		bundle, err := code.Build(b.Context(), dir, code.BuildOptions{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := bundle.Upload(b.Context(), s.blobs); err != nil {
			b.Fatal(err)
		}
		if _, err := s.Deploy(b.Context(), code.Deployment{Environment: "production", Manifest: bundle.Manifest}); err != nil {
			b.Fatal(err)
		}
	}
}
