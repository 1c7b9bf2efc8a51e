package code_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// TestSources has a file of each kind, and of each kind that only looks like one.
func TestSources(t *testing.T) {
	t.Parallel()
	hiera := `{"version": 5, "defaults": {"datadir": "hieradata", "data_hash": "yaml_data"}, "hierarchy": [
		{"name": "node", "path": "nodes/%{trusted.certname}.yaml"}, {"name": "all", "paths": ["common.yaml", "%{::os}/x.txt"]},
		{"name": "json", "data_hash": "json_data", "datadir": "j/%{environment}", "globs": ["*.json", "deep/**/*.js"]},
		{"name": "secret", "lookup_key": "eyaml_lookup_key", "path": "secret.eyaml"},
		{"name": "own", "lookup_key": "my::backend", "path": "own.yaml"},
		{"name": "mapped", "mapped_paths": ["roles", "r", "roles/%{r}.yaml"]},
		{"name": "away", "path": "../../etc/x.yaml"}, {"name": "outside", "datadir": "/etc", "path": "x.yaml"}]}`
	files := map[string]string{
		"environment.conf":               "manifest = start\nmodulepath = modules:site\n",
		"hiera.yaml":                     hiera,
		"start/a.pp":                     "manifest",
		"start/deep/b.pp":                "manifest",
		"start/readme.md":                "",
		"manifests/unused.pp":            "",
		"examples/x.pp":                  "",
		"spec/x.pp":                      "",
		"x.yaml":                         "",
		"functions/f.pp":                 "manifest",
		"types/t.pp":                     "manifest",
		"plans/p.pp":                     "loose plan",
		"hieradata/common.yaml":          "yaml",
		"hieradata/nodes/a.b.yaml":       "yaml",
		"hieradata/Debian/x.txt":         "yaml",
		"hieradata/readme.yaml":          "",
		"hieradata/own.yaml":             "",
		"hieradata/secret.eyaml":         "yaml",
		"hieradata/roles/web.yaml":       "yaml",
		"j/prod/a.json":                  "json",
		"j/prod/deep/b.js":               "json",
		"j/other.yaml":                   "",
		"data/forgotten.yaml":            "loose yaml",
		"data/x.json":                    "loose json",
		"data/x.txt":                     "",
		"modules/m/manifests/init.pp":    "manifest",
		"modules/m/manifests/a/b.pp":     "manifest",
		"modules/m/manifests/notes.txt":  "",
		"modules/m/functions/f.pp":       "manifest",
		"modules/m/types/t.pp":           "manifest",
		"modules/m/plans/init.pp":        "loose plan",
		"modules/m/templates/a.epp":      "epp",
		"modules/m/templates/b/c.erb":    "erb",
		"modules/m/templates/plain.conf": "",
		"modules/m/templates/x.yaml":     "",
		"modules/m/templates/x.json":     "",
		"modules/m/templates/x.pp":       "",
		"modules/m/files/x.yaml":         "",
		"modules/m/files/x.pp":           "",
		"modules/m/files/x.erb":          "",
		"modules/m/spec/x.pp":            "",
		"modules/m/spec/fixtures/modules/z/manifests/init.pp": "",
		"modules/m/examples/init.pp":                          "",
		"modules/m/.fixtures.yml":                             "",
		"modules/m/metadata.json":                             "json",
		"modules/m/data/common.yaml":                          "yaml",
		"modules/m/data/os.yaml":                              "loose yaml",
		"modules/m/tasks/init.json":                           "json",
		"modules/m/tasks/init.sh":                             "",
		"modules/m/tasks/lib/x.json":                          "",
		"modules/m/lib/puppet/x.pp":                           "",
		"site/m/manifests/hidden.pp":                          "",
		"site/n/hiera.yaml":                                   "yaml",
		"site/n/data/common.yaml":                             "loose yaml",
		"site/n/own/a.yaml":                                   "yaml",
		"site/Bad-name/manifests/init.pp":                     "",
		"Puppetfile":                                          "",
		".sync.yml":                                           "",
	}
	content := func(p string) string {
		switch p {
		case "environment.conf":
			return files[p]
		case "hiera.yaml":
			return hiera
		case "site/n/hiera.yaml":
			return "version: 5\nhierarchy:\n  - name: x\n    datadir: own\n    path: '%{os}.yaml'\n"
		}
		return "text of " + p
	}
	blobs := castest.New()
	m := code.Manifest{ModulePath: []string{"modules", "site"}}
	for p := range files {
		d, _, err := blobs.Put(t.Context(), strings.NewReader(content(p)))
		if err != nil {
			t.Fatal(err)
		}
		m.Files = append(m.Files, code.File{Path: p, Digest: d, Size: int64(len(content(p)))})
	}
	m.Files = append(m.Files, code.File{Path: "modules/m/manifests/link.pp", Kind: code.Link, Target: "init.pp"},
		code.File{Path: "modules/m/manifests/gone.pp", Kind: code.Link, Target: "nothing.pp"})
	tree := deployedTree(t, blobs, m)
	got := map[string]string{}
	list, err := code.NewLibrary(codetest.New(), blobs).Sources(t.Context(), tree, yamljson.ToJSON)
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for _, s := range list {
		if s.Path <= last {
			t.Errorf("%s comes after %s", s.Path, last)
		}
		last, got[s.Path] = s.Path, string(s.Kind)
		if s.Loose {
			got[s.Path] = "loose " + got[s.Path]
		}
	}
	want := map[string]string{"modules/m/manifests/link.pp": "manifest"}
	for p, kind := range files {
		if kind != "" {
			want[p] = kind
		}
	}
	want["environment.conf"], want["hiera.yaml"] = "conf", "yaml"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// deployedTree is a manifest as a tree.
func deployedTree(t *testing.T, blobs *castest.Store, m code.Manifest) *code.Tree {
	t.Helper()
	slices.SortFunc(m.Files, func(a, b code.File) int { return strings.Compare(a.Path, b.Path) })
	library := code.NewLibrary(codetest.New(), blobs)
	v, err := library.Deploy(t.Context(), code.Deployment{Environment: "production", Manifest: m})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := library.Tree(t.Context(), fleet.Environment("production"), v.ID)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
