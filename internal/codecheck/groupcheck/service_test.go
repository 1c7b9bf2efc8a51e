package groupcheck_test

import (
	"bufio"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/cas/castest"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/codecheck/groupcheck"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// world has code, in which a line of a manifest is a class and its parameters, one node and one fact.
type world struct {
	t       *testing.T
	blobs   *castest.Store
	library *code.Library
	read    []string
	broken  error
	*groupcheck.Service
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, blobs: castest.New()}
	versions := codetest.New()
	w.library = code.NewLibrary(versions, w.blobs)
	w.Service = groupcheck.New(groupcheck.Parts{
		Code: w.library, Versions: versions, Reader: w, Facts: w, Nodes: w,
		Open: func(ctx context.Context, d fleet.Digest) ([]byte, error) { return cas.Bytes(ctx, w.blobs, d, 1<<20) },
	})
	return w
}

func (w *world) deploy(env fleet.Environment, files map[string]string) {
	w.t.Helper()
	m := code.Manifest{ModulePath: []string{"modules"}}
	for p, text := range files {
		d, _, err := w.blobs.Put(w.t.Context(), strings.NewReader(text))
		if err != nil {
			w.t.Fatal(err)
		}
		m.Files = append(m.Files, code.File{Path: p, Digest: d, Size: int64(len(text))})
	}
	slices.SortFunc(m.Files, func(a, b code.File) int { return strings.Compare(a.Path, b.Path) })
	if _, err := w.library.Deploy(w.t.Context(), code.Deployment{Environment: env, Manifest: m, At: time.Now()}); err != nil {
		w.t.Fatal(err)
	}
}

// Classes is groupcheck.Reader.
func (w *world) Classes(ctx context.Context, in groupcheck.Input) (map[string][]code.Class, error) {
	found := map[string][]code.Class{}
	for _, f := range in.Files {
		w.read = append(w.read, f.Path)
		text, err := in.Open(ctx, f)
		if err != nil {
			return nil, err
		}
		classes := []code.Class{}
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			words := strings.Fields(lines.Text())
			if words[0] == "unread" {
				classes = nil
				break
			}
			classes = append(classes, code.Class{Name: words[0], Parameters: words[1:]})
		}
		if classes != nil {
			found[f.Path] = classes
		}
	}
	return found, w.broken
}

// HavePaths is groupcheck.Facts.
func (w *world) HavePaths(_ context.Context, paths []string) (map[string]bool, error) {
	return map[string]bool{"role": slices.Contains(paths, "role")}, nil
}

// NodesNamed is groupcheck.Nodes.
func (w *world) NodesNamed(_ context.Context, names []fleet.Certname) (nodes []inventory.Node, err error) {
	if slices.Contains(names, "known") {
		nodes = append(nodes, inventory.Node{Certname: "known"})
	}
	return nodes, nil
}

func (w *world) want(what string, groups []classify.Group, read []string, want ...string) {
	w.t.Helper()
	w.read = nil
	doubts, err := w.Doubts(w.t.Context(), groups, groups)
	var got []string
	for _, g := range groups {
		for _, doubt := range doubts[g.ID] {
			got = append(got, g.Name+": "+doubt)
		}
	}
	slices.Sort(w.read)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		w.t.Errorf("%s: %v (-want +got):\n%s", what, err, diff)
	}
	if diff := cmp.Diff(read, w.read); diff != "" {
		w.t.Errorf("%s: read (-want +got):\n%s", what, diff)
	}
}

func group(name, env string, classes ...string) classify.Group {
	g := classify.Group{ID: classify.NewID(), Name: name, Parent: classify.RootID, Environment: env, Classes: classify.Classes{}}
	for _, class := range classes {
		name, parameter, given := strings.Cut(class, " ")
		if g.Classes[name] = (classify.Values{}); given {
			g.Classes[name][parameter] = []byte("1")
		}
	}
	return g
}

func TestGroupsAreComparedWithTheirEnvironment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.want("without code", []classify.Group{classify.NewRoot(), group("open", "", "a")}, nil)
	w.deploy("production", map[string]string{
		"manifests/site.pp": "base", "modules/role/manifests/init.pp": "role size\nrole::inner", "modules/role/manifests/web.pp": "role::web port",
		"modules/role/manifests/weg.pp": "", "modules/role/manifests/broken.pp": "unread", "modules/role/manifests/miscellaneous.pp": "role::miscellaneous",
		"modules/role/files/web.pp": "no manifest",
	})
	w.deploy("test", map[string]string{"manifests/site.pp": "base", "modules/role/manifests/subsequent.pp": "role::subsequent"})
	groups := []classify.Group{
		classify.NewRoot(), group("fine", "production", "base", "role::inner", "role::web port", "role::broken"),
		group("wrong", "production", "role::wbe", "role::web prot", "role::subsequent", "role::inner x"),
		group("open", "", "role::subsequent", "role::web", "role::unheard_of"), group("gone", "staging", "role"),
	}
	groups[3].Pinned = []fleet.Certname{"known", "nobody"}
	rule, err := classify.ParseRule(`facts.role = "x" and facts.rule = "y"`)
	if err != nil {
		t.Fatal(err)
	}
	groups[1].Rule = rule
	init, site := "modules/role/manifests/init.pp", "manifests/site.pp"
	said := []string{
		"fine: no node has a value at facts.rule, which the rule looks at",
		"wrong: class role::inner has no parameter x in the code of production: no node of the group gets a catalog",
		"wrong: there is no class role::subsequent in the code of production: no node of the group gets a catalog",
		"wrong: there is no class role::wbe in the code of production: no node of the group gets a catalog; did you mean role::web?",
		"wrong: class role::web has no parameter prot in the code of production: no node of the group gets a catalog; did you mean port?",
		"open: there is no class role::unheard_of in the code of any environment: no node of the group gets a catalog",
		"open: no node nobody is known, which is pinned",
		"gone: the environment staging, which its nodes get, has no code",
	}
	read := []string{
		site, "modules/role/manifests/broken.pp", init, "modules/role/manifests/subsequent.pp", "modules/role/manifests/web.pp", "modules/role/manifests/weg.pp",
	}
	w.want("with code", groups, read, said...)
	w.want("again", groups, nil, said...)
	w.broken = fault.New(fault.Unavailable, "no ruby")
	w.want("without a reader", []classify.Group{classify.NewRoot(), group("late", "production", "role::miscellaneous")},
		[]string{"modules/role/manifests/miscellaneous.pp"}, "late: whether its classes are in the code is not known: no ruby")
}

// Where the setting of the start manifest names variables, only the compiler knows which classes that defines.
func TestClassesOfAStartManifestThatIsNotKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deploy("production", map[string]string{
		"environment.conf": "manifest = manifests/$environment\n", "manifests/production/site.pp": "base", "modules/role/manifests/init.pp": "role size",
	})
	groups := []classify.Group{classify.NewRoot(), group("open", "", "base"), group("known", "production", "base", "role port")}
	w.want("a class that may be there", groups, []string{"modules/role/manifests/init.pp"},
		"known: class role has no parameter port in the code of production: no node of the group gets a catalog")
}
