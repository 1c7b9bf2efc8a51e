package ruby

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck/groupcheck"
)

// Puppet's parser says which classes a manifest defines, with their parameters; of what cannot be parsed nothing is known.
func TestClassesOfManifests(t *testing.T) {
	t.Parallel()
	needPuppet(t)
	texts := map[string]string{
		"site.pp":  "node default { }\nclass base { }\n",
		"init.pp":  "class m(Integer $port = 1, Optional[String] $name_of = undef) {\n  class inner($x) { }\n}\ndefine m::type($y) { }\nfunction m::f() { 1 }\n",
		"wrong.pp": "class m::wrong {\n",
		"empty.pp": "",
	}
	in := groupcheck.Input{ModulePath: []string{"modules"}, Open: func(_ context.Context, f code.Source) ([]byte, error) { return []byte(texts[f.Path]), nil }}
	for _, path := range []string{"empty.pp", "init.pp", "site.pp", "wrong.pp"} {
		in.Files = append(in.Files, code.Source{Path: path, Kind: code.ClassesSource})
	}
	got, err := NewChecker(Config{Keeper: keeper(t), Dir: t.TempDir()}).Classes(t.Context(), in)
	want := map[string][]code.Class{
		"site.pp": {{Name: "base"}}, "init.pp": {{Name: "m::inner", Parameters: []string{"x"}}, {Name: "m", Parameters: []string{"port", "name_of"}}}, "empty.pp": {},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
