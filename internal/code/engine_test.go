package code_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
)

// An environment keeps its engine until a deploy names another one, and each engine makes another version of the same files.
func TestAnEnvironmentKeepsItsEngine(t *testing.T) {
	t.Parallel()
	here, _, rows := servers()
	digest, size, err := here.blobs.Put(t.Context(), strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	manifest := code.Manifest{ModulePath: []string{"modules"}, Files: []code.File{{Path: "manifests/site.pp", Digest: digest, Size: size}}}
	versions := map[string]code.VersionID{}
	for _, step := range []struct {
		environment, names, gets string
		stage                    bool
	}{
		{"production", "", "", false},
		{"production", "puppet8", "puppet8", true}, // a preview changes nothing
		{"production", "", "", false},
		{"production", "puppet8", "puppet8", false},
		{"production", "", "puppet8", false},
		{"production", "", "puppet8", true}, // code is previewed with what will compile it
		{"production", "default", "", true},
		{"production", "", "puppet8", false},
		{"other", "", "", false},
		{"production", "default", "", false},
		{"production", "", "", false},
	} {
		d := code.Deployment{Environment: "production", At: time.Now(), Manifest: manifest}
		if step.environment == "other" {
			d.Environment = "other"
		}
		d.Manifest.Engine = step.names
		do := here.Deploy
		if step.stage {
			do = here.Stage
		}
		v, err := do(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := here.Tree(t.Context(), d.Environment, v.ID)
		if err != nil {
			t.Fatal(err)
		}
		if v.Engine != step.gets || tree.Manifest().Engine != step.gets {
			t.Errorf("%+v: the version is for %q, its manifest for %q", step, v.Engine, tree.Manifest().Engine)
		}
		if before, known := versions[step.gets]; known && before != v.ID {
			t.Errorf("%+v: the same files for the same engine are versions %s and %s", step, before.Short(), v.ID.Short())
		}
		versions[step.gets] = v.ID
	}
	if versions[""] == versions["puppet8"] {
		t.Error("another engine is the same version")
	}
	if plain, err := code.VersionOf(manifest); err != nil || plain != versions[""] {
		t.Errorf("a version without an engine is called %s, not %s: %v", versions[""].Short(), plain.Short(), err)
	}
	if current, err := rows.CurrentVersion(t.Context(), "production"); err != nil || current.Engine != "" {
		t.Errorf("the row is %+v: %v", current, err)
	}
	one, err := here.Tree(t.Context(), "production", versions[""])
	if err != nil {
		t.Fatal(err)
	}
	other, err := here.Tree(t.Context(), "production", versions["puppet8"])
	if err != nil {
		t.Fatal(err)
	}
	if !code.Diff(one, other).All || code.Diff(one, one).All {
		t.Error("what another engine compiles is not all different")
	}
	for _, name := range []string{"Puppet8", "8", "a b", "ä", strings.Repeat("a", 64), "a/b"} {
		d := code.Deployment{Environment: "production", At: time.Now(), Manifest: manifest}
		d.Manifest.Engine = name
		if _, err := here.Deploy(t.Context(), d); fault.Of(err) != fault.Invalid || err == nil {
			t.Errorf("an engine called %q: %v, want Invalid", name, err)
		}
	}
}
