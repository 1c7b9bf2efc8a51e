package diff

import (
	"maps"
	"slices"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// model is a catalog without what is no difference.
type model struct {
	Environment   string
	Classes, Tags map[string]bool
	Resources     map[string]modelResource
	Edges         map[string]bool
}

type modelResource struct {
	Tags       map[string]bool
	Parameters map[string]*value
	Files      map[string]file
}

func modelOf(t rapid.TB, c *Catalog) model {
	m := model{c.environment, words(c.classes), words(c.tags), map[string]modelResource{}, map[string]bool{}}
	for _, e := range c.edges {
		m.Edges[e.source+" "+e.target] = true
	}
	for _, r := range c.resources {
		d, err := declare(r.raw)
		if err != nil {
			t.Fatal(err)
		}
		one := modelResource{words(d.tags), map[string]*value{}, maps.Clone(filesOf(r.identity, c.files))}
		if one.Files == nil {
			one.Files = map[string]file{}
		}
		for name, raw := range d.parameters {
			if one.Parameters[name], err = decode(raw); err != nil {
				t.Fatal(err)
			}
		}
		m.Resources[nameOf(r.identity)] = one
	}
	return m
}

func nameOf(id identity) string { return nameText(id.typ, id.title, id.exported) }

func words(list []string) map[string]bool {
	set := map[string]bool{}
	for _, word := range list {
		set[word] = true
	}
	return set
}

// texts is the model with values as canonical JSON, so that it can be compared.
func (m model) texts() map[string]any {
	resources := map[string]any{}
	for name, r := range m.Resources {
		parameters := map[string]string{}
		for p, v := range r.Parameters {
			parameters[p] = v.canonical()
		}
		resources[name] = map[string]any{"tags": r.Tags, "parameters": parameters, "files": r.Files}
	}
	return map[string]any{"environment": m.Environment, "classes": m.Classes, "tags": m.Tags, "edges": m.Edges, "resources": resources}
}

func (m *model) apply(d *Difference) {
	m.Environment = d.environment[1]
	applySet(m.Classes, d.classes)
	applySet(m.Tags, d.tags)
	for _, e := range d.edges {
		applyKind(m.Edges, e.source+" "+e.target, e.kind, true)
	}
	for _, r := range d.resources {
		name := nameOf(r.identity)
		if r.kind == removed {
			delete(m.Resources, name)
			continue
		}
		one, there := m.Resources[name]
		if !there {
			one = modelResource{map[string]bool{}, map[string]*value{}, map[string]file{}}
		}
		applySet(one.Tags, r.tags)
		for _, f := range r.files {
			applyKind(one.Files, f.path, f.kind, f.new)
		}
		for _, p := range r.parameters {
			v := p.new
			if p.kind == changed {
				v = applySteps(one.Parameters[p.name], p.steps, 0)
			}
			applyKind(one.Parameters, p.name, p.kind, v)
		}
		m.Resources[name] = one
	}
}

func applyKind[V any](m map[string]V, key string, k kind, v V) {
	if k == removed {
		delete(m, key)
		return
	}
	m[key] = v
}

func applySet(set map[string]bool, s setChange) {
	for _, item := range s.removed {
		delete(set, item)
	}
	for _, item := range s.added {
		set[item] = true
	}
}

// applySteps does to a value what the steps say, of which the first depth places
// lead to it.
func applySteps(v *value, steps []step, depth int) *value {
	if len(steps) == 1 && len(steps[0].path) == depth {
		return steps[0].new
	}
	out := &value{kind: v.kind, keys: slices.Clone(v.keys), items: slices.Clone(v.items)}
	out.reindex()
	var gone, come []step
	inside := map[place][]step{}
	for _, s := range steps {
		switch {
		case len(s.path) == depth: // only the order of keys
		case len(s.path) == depth+1 && s.kind == removed:
			gone = append(gone, s)
		case len(s.path) == depth+1 && s.kind == added:
			come = append(come, s)
		default:
			inside[s.path[depth]] = append(inside[s.path[depth]], s)
		}
	}
	for at, steps := range inside {
		i := at.index
		if !at.inList {
			i = out.index[at.key]
		}
		out.items[i] = applySteps(out.items[i], steps, depth+1)
	}
	for _, s := range slices.Backward(gone) {
		i := s.path[depth].index
		if !s.path[depth].inList {
			i = out.index[s.path[depth].key]
		}
		out.drop(i)
	}
	for _, s := range come {
		if at := s.path[depth]; at.inList {
			out.items = slices.Insert(out.items, at.index, s.new)
		} else {
			out.put(at.key, s.new)
		}
	}
	return out
}

// checkApplied applies a difference to the old catalog: it gives the new one.
func checkApplied(t rapid.TB, before, after *Catalog, d *Difference) {
	got, want := modelOf(t, before), modelOf(t, after)
	got.apply(d)
	if diff := cmp.Diff(want.texts(), got.texts()); diff != "" {
		t.Fatalf("the new catalog (-) and what the difference gives (+):\n%s", diff)
	}
}
