package code_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

// moduleElsewhere is a module as distributions install it: a link by way of another link.
func moduleElsewhere(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeFiles(t, dir, map[string]string{
		"available/labs-lib/manifests/init.pp": "class lib {}", "available/labs-lib/lib/f.rb": "f", "available/labs-lib/own@": "lib/f.rb",
		"shared/note": "shared", "available/labs-lib/note@": "../../shared/note", "alternatives/lib@": "../available/labs-lib",
	})
	return dir
}

func TestLinksOutAreNamed(t *testing.T) {
	t.Parallel()
	elsewhere, dir := moduleElsewhere(t), t.TempDir()
	lib := filepath.Join(elsewhere, "alternatives/lib")
	writeFiles(t, dir, map[string]string{
		"modules/lib@": lib, "a@": filepath.Join(elsewhere, "shared/note"), "z@": "../nowhere/to/be/found", "zz@": "/nowhere", "inside@": "modules",
	})
	_, err := code.Build(t.Context(), dir, code.BuildOptions{})
	wantKind(t, err, fault.Invalid)
	out, ok := errors.AsType[*code.LinksOut](err)
	if !ok {
		t.Fatalf("%v is no LinksOut", err)
	}
	want := &code.LinksOut{Count: 4, Links: []code.LinkOut{
		{Path: "a", Target: filepath.Join(elsewhere, "shared/note"), Real: filepath.Join(elsewhere, "shared/note")},
		{Path: "modules/lib", Target: lib, Real: filepath.Join(elsewhere, "available/labs-lib")},
		{Path: "z", Target: "../nowhere/to/be/found"},
	}}
	if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	detail := "4 links lead out of the environment, and a version holds only what is in it: a leads to " + elsewhere + "/shared/note; modules/lib leads to " +
		lib + ", that is " + elsewhere + "/available/labs-lib; z leads to ../nowhere/to/be/found, where nothing is; and 1 more"
	if got := fault.Detail(err); got != detail {
		t.Errorf("got  %s\nwant %s", got, detail)
	}
}

func TestLinksOutAreFollowed(t *testing.T) {
	t.Parallel()
	elsewhere, dir := moduleElsewhere(t), t.TempDir()
	note := filepath.Join(elsewhere, "shared/note")
	writeFiles(t, dir, map[string]string{"modules/lib@": filepath.Join(elsewhere, "alternatives/lib"), "a@": note, "b": "b", "inside@": "b"})
	bundle := build(t, dir, code.BuildOptions{FollowLinks: true})
	got := map[string]string{}
	for _, f := range bundle.Manifest.Files {
		got[f.Path] = f.Target
		if f.Kind == code.Regular {
			r, err := bundle.Open(f.Digest)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Close()
			got[f.Path] = string(text)
		}
	}
	want := map[string]string{
		"a": "shared", "b": "b", "inside": "b", "modules/lib/manifests/init.pp": "class lib {}", "modules/lib/lib/f.rb": "f",
		"modules/lib/own": "lib/f.rb", "modules/lib/note": "shared",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	copied := []code.Copy{{Path: "a", From: note, Files: 1}, {Path: "modules/lib", From: filepath.Join(elsewhere, "available/labs-lib"), Files: 4}}
	if diff := cmp.Diff(copied, bundle.Copied); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A link that only goes a long way round stays a link, and one whose end is the environment's own file is no copy.
func TestLinksByADetour(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"a/b/c": "c", "a/crooked@": "b/../b/c", "around@": filepath.Join("..", filepath.Base(dir), "a/b")})
	for _, follow := range []bool{false, true} {
		bundle := build(t, dir, code.BuildOptions{FollowLinks: follow})
		got := map[string]string{}
		for _, f := range bundle.Manifest.Files {
			got[f.Path] = f.Target
		}
		if diff := cmp.Diff(map[string]string{"a/b/c": "", "a/crooked": "b/c", "around": "a/b"}, got); diff != "" || len(bundle.Copied) > 0 {
			t.Errorf("follow %v: %v (-want +got):\n%s", follow, bundle.Copied, diff)
		}
	}
}

func TestFollowingHasAnEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		files map[string]string // below one directory, of which env is the environment
		opt   code.BuildOptions
		names string
	}{
		"above itself":      {files: map[string]string{"env/modules/up@": "../.."}, names: "holds the link itself"},
		"the root":          {files: map[string]string{"env/root@": "/"}, names: "holds the link itself"},
		"there and back":    {files: map[string]string{"env/x@": "../one", "one/y@": "../two", "two/z@": "../one"}, names: "holds the link itself"},
		"back to the start": {files: map[string]string{"env/x@": "../one", "one/y@": "../env"}, names: "holds the link itself"},
		"to nothing":        {files: map[string]string{"env/x@": "../none"}, names: "leads to ../none, and that cannot be read"},
		"to itself":         {files: map[string]string{"env/x@": "../y", "y@": "env/x"}, names: "cannot be followed"},
		"no file":           {files: map[string]string{"env/x@": "/dev/null"}, names: "neither a file, a directory nor a link"},
		"more than is allowed": {
			files: map[string]string{"env/x@": "../one", "one/a": "", "one/b": "", "one/c": ""}, opt: code.BuildOptions{MaxFiles: 2}, names: "more than 2 files",
		},
		"larger than allowed": {files: map[string]string{"env/x@": "../big", "big": "12345"}, opt: code.BuildOptions{MaxFileBytes: 4}, names: "5 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			writeFiles(t, dir, tt.files)
			tt.opt.FollowLinks = true
			_, err := code.Build(t.Context(), filepath.Join(dir, "env"), tt.opt)
			wantKind(t, err, fault.Invalid)
			if !strings.Contains(fault.Detail(err), tt.names) {
				t.Errorf("%q does not say %q", fault.Detail(err), tt.names)
			}
		})
	}
}

// Debian's modules are links by way of /etc/alternatives: one that is linked to from a control repository is copied whole.
func TestDebiansModulesAreFollowed(t *testing.T) {
	t.Parallel()
	const stdlib = "/usr/share/puppet/modules/stdlib"
	where, err := filepath.EvalSymlinks(stdlib)
	if err != nil {
		t.Fatal(err)
	}
	if to, err := os.Readlink(stdlib); err != nil || !strings.HasPrefix(to, "/etc/alternatives/") {
		t.Fatalf("%s leads to %s, %v", stdlib, to, err)
	}
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"modules/stdlib@": stdlib})
	bundle := build(t, dir, code.BuildOptions{FollowLinks: true})
	alone := build(t, where, code.BuildOptions{})
	if len(bundle.Copied) != 1 || bundle.Copied[0].From != where || bundle.Copied[0].Files < 100 || len(bundle.Manifest.Files) != len(alone.Manifest.Files) {
		t.Errorf("%d files, of %d: %+v", len(bundle.Manifest.Files), len(alone.Manifest.Files), bundle.Copied)
	}
}
