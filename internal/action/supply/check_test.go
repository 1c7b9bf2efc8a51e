package supply_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fleet"
)

// What no node could use is said of a version before it is deployed, with its file and in a node's words.
func TestCheck(t *testing.T) {
	t.Parallel()
	const good = `{"description": "Good", "actions": [{"name": "x", "input": {}, "results": {}}]}`
	blobs := castest.New()
	library := code.NewLibrary(codetest.New(), blobs)
	m := code.Manifest{ModulePath: []string{"site", "modules"}}
	files := map[string]string{
		"modules/a/tutti/good/metadata.json": good, "modules/a/tutti/good/run": "#!/bin/sh\n",
		"modules/a/tutti/windows/metadata.json": good, "modules/a/tutti/windows/run-windows.exe": "MZ",
		"modules/a/tutti/cut/metadata.json": `{"description": "Cut`, "modules/a/tutti/cut/run": "",
		"modules/a/tutti/empty/metadata.json": `{"description": "Empty", "actions": []}`, "modules/a/tutti/empty/run": "",
		"modules/a/tutti/large/metadata.json": strings.Repeat(" ", 4<<20), "modules/a/tutti/large/run": "",
		"modules/a/tutti/silent/run":         "",
		"modules/a/tutti/idle/metadata.json": good, "modules/a/tutti/idle/lib/run": "", "modules/a/tutti/idle/run.d/part": "",
		"modules/a/tutti/twice/metadata.json": good, "modules/b/tutti/twice/metadata.json": good,
		"site/hidden/tutti/bad/metadata.json": "{", "modules/hidden/tutti/worse/metadata.json": "{", // the second one is hidden
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		digest, size, err := blobs.Put(t.Context(), strings.NewReader(files[path]))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, code.File{Path: path, Kind: code.Regular, Digest: digest, Size: size})
	}
	v, err := library.Deploy(t.Context(), code.Deployment{Environment: "production", Manifest: m, Actor: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := library.Tree(t.Context(), "production", v.ID)
	if err != nil {
		t.Fatal(err)
	}
	problems, err := supply.Check(t.Context(), tree, func(ctx context.Context, d fleet.Digest) ([]byte, error) { return cas.Bytes(ctx, blobs, d, 8<<20) })
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, p := range problems {
		got[p.Path] = p.Reason
	}
	want := map[string]string{
		"site/hidden/tutti/bad/metadata.json": "its metadata is not JSON", "modules/a/tutti/cut/metadata.json": "its metadata is not JSON",
		"modules/a/tutti/empty/metadata.json": "its metadata has no actions", "modules/a/tutti/large/metadata.json": "it has more than ",
		"modules/a/tutti/silent": "its folder has no metadata.json", "modules/a/tutti/idle": "its folder has no program: run",
		"modules/a/tutti/twice": "two Puppet modules have",
	}
	for path, reason := range want {
		if strings.HasPrefix(got[path], reason) {
			want[path] = got[path]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
