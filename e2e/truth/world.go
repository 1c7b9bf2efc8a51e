package truth

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// World is a control repository, its nodes, and what one group says of all of them.
type World struct {
	Seed       uint64
	Files      map[string]string // of the repository, path to text
	Nodes      []*Node
	Group      Group
	Constructs []string // what it is made of

	r     *rand.Rand
	edits []*edit
	comes map[string]string // files that come and go
	site  string            // the path of the site manifest that holds the nodes
	given []group           // what the group may say
	count int               // of changes
}

// Node is a machine.
type Node struct {
	Name    string
	Facts   Object
	Trusted Object
}

// Group is what a classification group says: JSON values.
type Group struct {
	Classes   map[string]map[string]string // name to parameters
	Variables map[string]string
	Data      map[string]map[string]string // class to parameters
}

// edit is a change of one file, back and forth.
type edit struct {
	path, old, fresh string
	done             bool
}

// group is one thing that the group may say.
type group struct{ kind, name, value string }

// New makes the world of a seed. The same seed gives the same world, and the same
// changes. With names of constructs it is made of these only.
func New(seed uint64, only ...string) *World {
	r := rand.New(rand.NewPCG(seed, 12)) //nolint:gosec // the same seed has to give the same world
	w := &World{Seed: seed, Files: map[string]string{}, comes: map[string]string{}, r: r}
	for i, name := range []string{"web1.example", "db1.example"} {
		role := strings.TrimRight(strings.TrimSuffix(name, ".example"), "0123456789")
		w.Nodes = append(w.Nodes, &Node{Name: name, Facts: firstFacts(name, role, i+1), Trusted: trusted(name, r)})
	}
	b := newBuilder(w)
	b.build(b.choose(only))
	b.finish()
	return w
}

// trusted is what a node's certificate says, whose extensions are in any order.
func trusted(name string, r *rand.Rand) Object {
	host, domain, _ := strings.Cut(name, ".")
	extensions := Object{{"pp_role", "x"}, {"1.3.6.1.4.1.34380.1.2.1", "y"}, {"pp_env", "z"}, {"pp_application", "a"}}
	return Object{
		{"authenticated", "remote"},
		{"certname", name},
		{"extensions", extensions.shuffled(r)},
		{"hostname", host},
		{"domain", domain},
		{"external", Object{}},
	}
}

// Uses tells whether the world has a construct.
func (w *World) Uses(construct string) bool { return slices.Contains(w.Constructs, construct) }

// ChangeCode makes one to three changes of files and says what it did.
func (w *World) ChangeCode() string {
	var did []string
	for range 1 + w.r.IntN(3) {
		did = append(did, w.changeFiles())
	}
	return strings.Join(did, "; ")
}

func (w *World) changeFiles() string {
	if len(w.comes) > 0 && w.r.IntN(3) == 0 {
		path := pick(w.r, slices.Sorted(maps.Keys(w.comes)))
		if _, there := w.Files[path]; there {
			delete(w.Files, path)
			return "removed " + path
		}
		w.Files[path] = w.comes[path]
		return "new file " + path
	}
	for range 10 {
		if len(w.edits) == 0 {
			break
		}
		e := pick(w.r, w.edits)
		if what := w.apply(e); what != "" {
			return what
		}
	}
	return w.editAnywhere()
}

func (w *World) apply(e *edit) string {
	path := e.path
	if path == "site" {
		path = w.site
	}
	old, fresh := e.old, e.fresh
	if e.done {
		old, fresh = fresh, old
	}
	text, there := w.Files[path]
	if !there || !strings.Contains(text, old) {
		return ""
	}
	w.Files[path], e.done = strings.Replace(text, old, fresh, 1), !e.done
	return fmt.Sprintf("%s: %q instead of %q", path, fresh, old)
}

// editAnywhere adds a comment, which moves lines, or a resource.
func (w *World) editAnywhere() string {
	w.count++
	if w.r.IntN(2) == 0 {
		path := pick(w.r, slices.DeleteFunc(slices.Sorted(maps.Keys(w.Files)), func(p string) bool { return !strings.HasSuffix(p, ".pp") }))
		w.Files[path] = fmt.Sprintf("# change %d\n", w.count) + w.Files[path]
		return "a comment in " + path
	}
	path := pick(w.r, []string{"README", "data/unused.yaml", "modules/unused/files/x"})
	w.Files[path] = fmt.Sprintf("---\nx: %d\n", w.count)
	return path
}

// ChangeAround changes facts, or what the group says, and says what it did.
func (w *World) ChangeAround() string {
	w.count++
	if len(w.given) > 0 && w.r.IntN(3) == 0 {
		return w.changeGroup()
	}
	node := pick(w.r, w.Nodes)
	path := pick(w.r, factPaths)
	switch w.r.IntN(7) {
	case 6:
		extensions, _ := node.Trusted.get("extensions").(Object)
		node.Trusted = node.Trusted.With(extensions.shuffled(w.r), "extensions")
		return "other order of the extensions of " + node.Name
	case 0, 1:
		node.Facts = node.Facts.shuffled(w.r)
		return "other order of the facts of " + node.Name
	case 2:
		node.Facts = node.Facts.With(nil, path...)
		return fmt.Sprintf("%s has no fact %s", node.Name, strings.Join(path, "."))
	case 3:
		node.Facts = node.Facts.With(w.count, "deep", fmt.Sprintf("new%d", w.count))
		return node.Name + ": one more in deep"
	}
	value := pick(w.r, []any{"web", "db", 9000, true, []any{"a"}, Object{{"z", 1}, {"b", "x"}}, fmt.Sprintf("v%d", w.count), "Debian"})
	node.Facts = node.Facts.With(value, path...)
	return fmt.Sprintf("%s: fact %s is %v", node.Name, strings.Join(path, "."), value)
}

var factPaths = [][]string{
	{"role"},
	{"role"},
	{"kernel"},
	{"networking", "mtu"},
	{"networking", "ip"},
	{"is_virtual"},
	{"zones"},
	{"zones"},
	{"memory", "free"},
	{"memory", "used"},
	{"deep", "z", "a"},
	{"deep", "list"},
	{"deep", "a"},
	{"os", "family"},
	{"os", "release", "full"},
	{"uptime"},
	{"osfamily"},
	{"odd", "a.b"},
	{"nothing"},
}

func (w *World) changeGroup() string {
	g := pick(w.r, w.given)
	out := w.r.IntN(2) == 0
	switch g.kind {
	case "variable":
		w.Group.Variables = toggled(w.Group.Variables, g.name, g.value, out)
	case "class":
		if out {
			delete(w.Group.Classes, g.name)
		} else {
			w.class(g.name)
		}
	case "params":
		parameter, value, _ := strings.Cut(g.value, ": ")
		w.class(g.name)
		w.Group.Classes[g.name] = toggled(w.Group.Classes[g.name], strings.Trim(parameter, `{"`), strings.TrimSuffix(value, "}"), out)
	case "data":
		at := strings.LastIndex(g.name, "::")
		if w.Group.Data == nil {
			w.Group.Data = map[string]map[string]string{}
		}
		w.Group.Data[g.name[:at]] = toggled(w.Group.Data[g.name[:at]], g.name[at+2:], g.value, out)
	}
	return fmt.Sprintf("the group says %+v", w.Group)
}

func (w *World) class(name string) {
	if w.Group.Classes == nil {
		w.Group.Classes = map[string]map[string]string{}
	}
	if w.Group.Classes[name] == nil {
		w.Group.Classes[name] = map[string]string{}
	}
}

func toggled(values map[string]string, name, value string, out bool) map[string]string {
	changed := maps.Clone(values)
	if changed == nil {
		changed = map[string]string{}
	}
	delete(changed, name)
	if !out {
		changed[name] = value
	}
	return changed
}

func pick[T any](r *rand.Rand, list []T) T { return list[r.IntN(len(list))] }
