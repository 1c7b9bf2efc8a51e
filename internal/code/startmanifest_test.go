package code_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/code"
)

func TestStartManifest(t *testing.T) {
	t.Parallel()
	for conf, want := range map[string]string{
		"":                                     "manifests",
		"modulepath = site:modules\n":          "manifests",
		"manifest =\n":                         "manifests",
		"manifest = site.pp":                   "site.pp",
		"[main]\n manifest = ./nodes/ \n":      "nodes",
		"manifest = a\nmanifest = b\n":         "b",
		"[agent]\nmanifest = a\n":              "manifests",
		"manifest = /srv/site.pp\n":            "/srv/site.pp",
		"manifest = $codedir/site.pp\n":        "", // only the compiler knows
		"x = " + strings.Repeat("x", 1<<20-10): "manifests",
	} {
		s, dir := newShelf(), t.TempDir()
		files := map[string]string{"manifests/site.pp": ""}
		if conf != "" {
			maps.Copy(files, map[string]string{"environment.conf": conf})
		}
		writeFiles(t, dir, files)
		_, tree := s.deploy(t, "production", dir, code.BuildOptions{})
		if got, err := s.StartManifest(t.Context(), tree); err != nil || got != want {
			t.Errorf("%.60q: %q, %v; want %q", conf, got, err, want)
		}
	}
}

func TestStartManifestOfLinkedSettings(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{"conf/real": "site.pp", "nowhere": "manifests", "conf": ""} {
		s, dir := newShelf(), t.TempDir()
		writeFiles(t, dir, map[string]string{"conf/real": "manifest = site.pp"})
		bundle := build(t, dir, code.BuildOptions{})
		bundle.Manifest.Files = append(bundle.Manifest.Files, code.File{Path: "environment.conf", Kind: code.Link, Target: target})
		slices.SortFunc(bundle.Manifest.Files, func(a, b code.File) int { return strings.Compare(a.Path, b.Path) })
		if _, err := bundle.Upload(t.Context(), s.blobs); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Deploy(t.Context(), code.Deployment{Environment: "production", Manifest: bundle.Manifest}); err != nil {
			t.Fatal(err)
		}
		tree, err := s.Current(t.Context(), "production")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.StartManifest(t.Context(), tree); err != nil || got != want {
			t.Errorf("a link to %s: %q, %v; want %q", target, got, err, want)
		}
	}
}
