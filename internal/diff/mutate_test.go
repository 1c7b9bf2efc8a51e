package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// draft is a stored document that tests change.
type draft struct {
	*rapid.T
	doc     *value
	secrets []string // that must never be seen
}

func draftOf(t *rapid.T, doc []byte) *draft {
	v, err := decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &draft{T: t, doc: v}
}

func (d *draft) bytes() []byte { return []byte(d.doc.plain()) }

func (d *draft) catalog() *value { return d.doc.member("catalog") }

func (d *draft) number(name string, low, high int) int {
	return rapid.IntRange(low, high).Draw(d.T, name)
}

// pick is an index of a list; -1 if it is empty.
func (d *draft) pick(of *value, name string) int {
	if of == nil || len(of.items) == 0 {
		return -1
	}
	return d.number(name, 0, len(of.items)-1)
}

func text(s string) *value { return &value{kind: '"', text: s} }

func list(items ...*value) *value { return &value{kind: '[', items: items} }

func object(pairs ...any) *value {
	v := &value{kind: '{', index: map[string]int{}}
	for i := 0; i < len(pairs); i += 2 {
		v.put(pairs[i].(string), pairs[i+1].(*value))
	}
	return v
}

func (v *value) put(key string, item *value) {
	if i, there := v.index[key]; there {
		v.items[i] = item
		return
	}
	v.index[key] = len(v.keys)
	v.keys, v.items = append(v.keys, key), append(v.items, item)
}

func (v *value) drop(i int) {
	v.items = slices.Delete(v.items, i, i+1)
	if v.kind != '{' {
		return
	}
	v.keys = slices.Delete(v.keys, i, i+1)
	v.reindex()
}

func (v *value) reindex() {
	v.index = map[string]int{}
	for i, key := range v.keys {
		v.index[key] = i
	}
}

// scalar is a random value without parts.
func (d *draft) scalar() *value {
	switch d.number("kind of scalar", 0, 4) {
	case 0:
		return &value{kind: '0', text: fmt.Sprint(d.number("digits", -5, 1000))}
	case 1:
		return &value{kind: 't'}
	case 2:
		return &value{kind: 'n'}
	case 3:
		return text("first\nsecond " + fmt.Sprint(d.number("line", 0, 3)) + "\nthird\n")
	default:
		return text(rapid.SampledFrom([]string{"", "present", "a\tb \"q\" \\ <&>`|*", "snow ☃ 😀", "apache.example.org", "x"}).Draw(d.T, "word"))
	}
}

func (d *draft) tree(depth int) *value {
	switch shape := d.number("shape", 0, 3); {
	case shape == 0 && depth > 0:
		v := list()
		for range d.number("items", 0, 4) {
			v.items = append(v.items, d.tree(depth-1))
		}
		return v
	case shape == 1 && depth > 0:
		v := object()
		for range d.number("members", 0, 4) {
			v.put(rapid.SampledFrom([]string{"a", "b", "odd key", "c.d", "é"}).Draw(d.T, "key"), d.tree(depth-1))
		}
		return v
	default:
		return d.scalar()
	}
}

// mutate makes a few changes.
func (d *draft) mutate() {
	for range d.number("changes", 0, 8) {
		d.change()
	}
}

func (d *draft) change() {
	c := d.catalog()
	switch d.number("change", 0, 9) {
	case 0:
		d.changeEdges(c)
	case 1:
		d.changeWords(c, "classes")
	case 2:
		d.changeWords(c, "tags")
	case 3:
		c.put("environment", text(rapid.SampledFrom([]string{"production", "staging"}).Draw(d.T, "environment")))
	case 4:
		d.changeFiles(c)
	case 5:
		d.changeList(d.resources())
	default:
		d.changeResource()
	}
}

// resources are the catalog's, or those that it exports.
func (d *draft) resources() *value {
	if exported := d.doc.member("exported"); len(exported.items) > 0 && d.number("exported", 0, 4) == 0 {
		return exported
	}
	return d.catalog().member("resources")
}

func (d *draft) changeWords(of *value, key string) {
	words := of.member(key)
	if words == nil {
		words = list()
		of.put(key, words)
	}
	if i := d.pick(words, "word"); i >= 0 && d.number("drop word", 0, 1) == 0 {
		words.drop(i)
		return
	}
	words.items = append(words.items, text(rapid.SampledFrom([]string{"zeta", "alpha"}).Draw(d.T, "new word")))
}

func (d *draft) changeEdges(c *value) {
	edges := c.member("edges")
	if i := d.pick(edges, "edge"); i >= 0 && d.number("drop edge", 0, 1) == 0 {
		edges.drop(i)
		return
	}
	resources := c.member("resources")
	from, to := d.pick(resources, "from"), d.pick(resources, "to")
	if from >= 0 && to >= 0 {
		edges.items = append(edges.items, object("source", text(refOf(resources.items[from])), "target", text(refOf(resources.items[to]))))
	}
}

func refOf(r *value) string { return r.member("type").text + "[" + r.member("title").text + "]" }

// guarded says that a part makes something a secret, or is one: it is left alone, so
// that what was planted as a secret stays one.
func guarded(key string, v *value) bool {
	return key == "show_diff" || strings.Contains(v.plain(), "S3CR3T") || strings.HasPrefix(v.kindOf(), "Concat")
}

// kindOf is the type of a resource.
func (v *value) kindOf() string {
	if typ := v.member("type"); typ != nil {
		return typ.text
	}
	return ""
}

// changeList drops, moves, renames or doubles a resource.
func (d *draft) changeList(resources *value) {
	i := d.pick(resources, "resource")
	if i < 0 {
		return
	}
	r := resources.items[i]
	if guarded("", r) {
		return
	}
	switch d.number("what", 0, 3) {
	case 0:
		resources.drop(i)
	case 1:
		resources.drop(i)
		resources.items = slices.Insert(resources.items, d.number("place", 0, len(resources.items)), r)
	case 2:
		r.put("title", text(r.member("title").text+"-renamed"))
	case 3:
		again, _ := decode([]byte(r.plain()))
		again.put("title", text(r.member("title").text+"-again"))
		resources.items = append(resources.items, again)
	}
}

func (d *draft) changeResource() {
	resources := d.resources()
	i := d.pick(resources, "resource")
	if i < 0 {
		return
	}
	r := resources.items[i]
	if strings.HasPrefix(r.kindOf(), "Concat") {
		return
	}
	p := r.member("parameters")
	if p == nil {
		p = object()
		r.put("parameters", p)
	}
	switch d.number("part", 0, 9) {
	case 0:
		r.put("file", text("/elsewhere.pp"))
		r.put("line", &value{kind: '0', text: fmt.Sprint(d.number("line", 1, 99))})
	case 1:
		d.changeWords(r, "tags")
	case 2:
		p.put(rapid.SampledFrom(orderOnly).Draw(d.T, "order"), list(text("Class[Settings]"), text("Class[main]")))
	case 3:
		d.plant(r, p)
	case 4:
		if i := d.pick(p, "parameter"); i >= 0 && !guarded(p.keys[i], p.items[i]) {
			p.drop(i)
		}
	case 5:
		p.put(rapid.SampledFrom([]string{"content", "source", "ensure", "options"}).Draw(d.T, "name"), d.tree(3))
	default:
		if i := d.pick(p, "parameter"); i >= 0 && !guarded(p.keys[i], p.items[i]) {
			p.items[i] = d.disturb(p.items[i])
		}
	}
}

// disturb changes a value somewhere inside.
func (d *draft) disturb(v *value) *value {
	i := d.pick(v, "inside")
	if i < 0 || d.number("here", 0, 3) == 0 {
		if v.kind == '"' && strings.Contains(v.text, "\n") {
			return text(strings.Replace(v.text, "\n", "\nanother line\n", 1))
		}
		return d.tree(2)
	}
	switch d.number("how", 0, 3) {
	case 0:
		v.drop(i)
	case 1:
		j := d.pick(v, "other")
		v.items[i], v.items[j] = v.items[j], v.items[i]
		if v.kind == '{' {
			v.keys[i], v.keys[j] = v.keys[j], v.keys[i]
			v.reindex()
		}
	case 2:
		if v.kind == '[' {
			v.items = slices.Insert(v.items, i, d.tree(1))
		} else {
			v.put("added", d.tree(1))
		}
	default:
		v.items[i] = d.disturb(v.items[i])
	}
	return v
}

// changeFiles changes what a static catalog says of files.
func (d *draft) changeFiles(c *value) {
	sum := fmt.Sprintf("{sha256}%064x", d.number("sum", 0, 2))
	meta := func(path string) *value {
		return object("path", text("/somewhere"+path), "relative_path", text(path), "type", text("file"), "mode", &value{kind: '0', text: "420"},
			"owner", &value{kind: '0', text: "0"}, "checksum", object("type", text("sha256"), "value", text(sum)), "content_uri", text("puppet:///modules/x"+sum))
	}
	for _, r := range c.member("resources").items {
		if r.member("type").text != "File" || d.number("this file", 0, 3) > 0 {
			continue
		}
		key, other, value := "metadata", "recursive_metadata", meta("")
		if d.number("directory", 0, 2) == 0 {
			key, other, value = other, key, object("puppet:///modules/x", list(meta("."), meta("a"), meta("b/"+fmt.Sprint(d.number("below", 0, 2)))))
		}
		if c.member(key) == nil {
			c.put(key, object())
		}
		title := r.member("title").text
		if c.member(other) != nil && c.member(other).member(title) != nil {
			c.member(other).drop(c.member(other).index[title])
		}
		c.member(key).put(title, value)
		return
	}
}

// plant hides a secret in a resource, in one of the ways that there are.
func (d *draft) plant(r, p *value) {
	secret := fmt.Sprintf("S3CR3T%08d", d.number("secret", 0, 1<<20))
	d.secrets = append(d.secrets, secret)
	name := rapid.SampledFrom([]string{"password", "content", "options", "value", "require"}).Draw(d.T, "where")
	switch d.number("way", 0, 4) {
	case 0:
		marked := r.member("sensitive_parameters")
		if marked == nil {
			marked = list()
			r.put("sensitive_parameters", marked)
		}
		marked.items = append(marked.items, text(name))
		p.put(name, text(secret))
	case 1:
		p.put(name, object("__ptype", text("Sensitive"), "__pvalue", text(secret)))
	case 2:
		p.put(name, object("user", text("u"), "deep", list(object("__ptype", text("Sensitive"), "__pvalue", object("inner", text(secret))))))
	case 3:
		p.put("show_diff", &value{kind: 'f'})
		p.put("content", text("line\n"+secret+"\n"))
	case 4: // a fragment of a quiet file, and a copy in a parameter of another resource
		c := d.catalog().member("resources")
		c.items = append(c.items, object("type", text("Concat"), "title", text("/quiet"+secret[6:]), "parameters", object("show_diff", text("false"))),
			object("type", text("Concat_fragment"), "title", text("part"+secret[6:]), "parameters",
				object("target", text("/quiet"+secret[6:]), "content", text(secret+"\n"))))
		p.put("copy", text("before "+secret+" after"))
	}
}

// pairs calls f with pairs of catalogs that were made of real ones: at least 600 in all.
func pairs(t *testing.T, f func(t *rapid.T, old, fresh *draft)) {
	t.Helper()
	for _, node := range realNodes {
		doc := firstOf(t, realCatalog(t, node), 60)
		t.Run(node, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				old, fresh := draftOf(t, doc), draftOf(t, doc)
				old.mutate()
				if rapid.Bool().Draw(t, "on top") {
					fresh = draftOf(t, old.bytes())
					fresh.secrets = slices.Clone(old.secrets)
				}
				fresh.mutate()
				f(t, old, fresh)
			})
		})
	}
}

// firstOf is a catalog with its first resources and edges only: the largest one would take
// most of the time.
func firstOf(t *testing.T, doc []byte, n int) []byte {
	t.Helper()
	v, err := decode(doc)
	check(t, err)
	for _, key := range []string{"resources", "edges"} {
		list := v.member("catalog").member(key)
		list.items = list.items[:min(n, len(list.items))]
	}
	return []byte(v.plain())
}

func mustParse(t rapid.TB, doc []byte) *Catalog {
	c, err := Parse(doc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustCompare(t rapid.TB, old, fresh []byte) *Difference {
	d, err := Compare(mustParse(t, old), mustParse(t, fresh))
	if err != nil {
		t.Fatal(err)
	}
	return d
}
