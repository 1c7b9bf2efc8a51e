package supply_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// places are nodes of environments, all of the version that the environment uses.
type places struct {
	of      map[fleet.Certname]fleet.Environment
	library *code.Library
}

func (p places) CodeOf(ctx context.Context, node fleet.Certname) (fleet.Environment, fleet.Digest, error) {
	env := p.of[node]
	if env == "broken" {
		return "", "", fault.New(fault.Unavailable, "no database")
	}
	v, err := p.library.Refresh(ctx, env)
	return env, v.ID, err
}

// A node has the modules of its own environment's code, and no file but theirs.
func TestSupply(t *testing.T) {
	t.Parallel()
	blobs := castest.New()
	library := code.NewLibrary(codetest.New(), blobs)
	deploy := func(env fleet.Environment, paths ...string) {
		t.Helper()
		m := code.Manifest{ModulePath: []string{"site", "modules"}}
		for _, path := range paths {
			digest, size, err := blobs.Put(t.Context(), strings.NewReader(path))
			if err != nil {
				t.Fatal(err)
			}
			m.Files = append(m.Files, code.File{Path: path, Kind: code.Regular, Digest: digest, Size: size})
		}
		if _, err := library.Deploy(t.Context(), code.Deployment{Environment: env, Manifest: m, Actor: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	deploy("production", "manifests/site.pp", "modules/hidden/tutti/shadow/metadata.json", "modules/web/files/secret", "modules/web/tutti/README",
		"modules/web/tutti/disk/lib/a", "modules/web/tutti/disk/metadata.json", "modules/web/tutti/disk/run", "site/hidden/manifests/init.pp")
	deploy("test", "modules/web/tutti/other/metadata.json")
	s := supply.Service{
		Places: places{map[fleet.Certname]fleet.Environment{"web-1": "production", "web-2": "test", "new-1": "none", "sad-1": "broken"}, library}, Trees: library,
	}
	told := func(node fleet.Certname) (lines []string) {
		t.Helper()
		all, err := s.Supply(t.Context(), node)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all.Modules {
			for _, f := range m.Files {
				lines = append(lines, m.Module+" "+m.Name+" "+f.Path)
				if may, err := s.MayHave(t.Context(), node, f.Digest); !may || err != nil {
					t.Errorf("%s: %v, %v", f.Path, may, err)
				}
			}
		}
		return lines
	}
	if diff := cmp.Diff([]string{"web disk lib/a", "web disk metadata.json", "web disk run"}, told("web-1")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"web other metadata.json"}, told("web-2")); diff != "" {
		t.Error(diff)
	}
	if lines := told("new-1"); lines != nil {
		t.Errorf("without code: %v", lines)
	}
	for _, path := range []string{
		"modules/web/files/secret", "modules/web/tutti/README", "modules/web/tutti/other/metadata.json",
		"modules/hidden/tutti/shadow/metadata.json", "manifests/site.pp",
	} {
		if may, err := s.MayHave(t.Context(), "web-1", fleet.DigestOf([]byte(path))); may || err != nil {
			t.Errorf("%s: %v, %v", path, may, err)
		}
	}
	if _, err := s.MayHave(t.Context(), "sad-1", ""); fault.Of(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
}
