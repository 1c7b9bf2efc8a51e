package diff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// naive says what differs between two documents, with encoding/json and nothing of
// this package: one line for each parameter, set member, edge and file.
type naive struct {
	Exported []naiveResource
	Catalog  struct {
		Environment string
		Classes     []string
		Tags        []string
		Resources   []naiveResource
		Edges       []struct{ Source, Target string }
		Metadata    map[string]naiveFile
		Recursive   map[string]json.RawMessage `json:"recursive_metadata"`
	}
}

type naiveResource struct {
	Type, Title string
	Tags        []string
	Parameters  map[string]json.RawMessage
}

type naiveFile struct {
	Path     string `json:"relative_path"`
	Type     string
	Mode     json.Number
	Owner    json.Number
	Checksum struct{ Value string }
}

// lines writes a catalog as a set of facts, each with its value.
func (n naive) lines() map[string]string {
	all := map[string]string{"environment": n.Catalog.Environment}
	for _, c := range n.Catalog.Classes {
		all["class "+c] = "there"
	}
	for _, tag := range n.Catalog.Tags {
		all["tag "+tag] = "there"
	}
	for _, e := range n.Catalog.Edges {
		all["edge "+e.Source+" → "+e.Target] = "there"
	}
	for _, r := range n.Catalog.Resources {
		n.resource(all, r, false)
	}
	for _, r := range n.Exported {
		n.resource(all, r, true)
	}
	return all
}

func (n naive) resource(all map[string]string, r naiveResource, exported bool) {
	name := fmt.Sprintf("%s[%s]%v", r.Type, r.Title, exported)
	if all[name] != "" {
		return
	}
	all[name] = "there"
	for p, raw := range r.Parameters {
		all[name+" "+p] = string(raw)
	}
	for _, tag := range r.Tags {
		all[name+" #"+tag] = "there"
	}
	if r.Type != "File" || exported {
		return
	}
	if f, ok := n.Catalog.Metadata[r.Title]; ok {
		all[name+" file "] = fmt.Sprint(f.Type, f.Mode, f.Owner, f.Checksum.Value)
	}
	var below map[string][]naiveFile
	_ = json.Unmarshal(n.Catalog.Recursive[r.Title], &below)
	for _, files := range below {
		for _, f := range files {
			if f.Path == "." {
				f.Path = ""
			}
			if key := name + " file " + f.Path; all[key] == "" {
				all[key] = fmt.Sprint(f.Type, f.Mode, f.Owner, f.Checksum.Value)
			}
		}
	}
}

// naiveDifference is the sorted list of facts that differ.
func naiveDifference(t rapid.TB, old, fresh []byte) []string {
	var a, b naive
	for text, into := range map[*naive][]byte{&a: old, &b: fresh} {
		if err := json.Unmarshal(into, text); err != nil {
			t.Fatal(err)
		}
	}
	before, after := a.lines(), b.lines()
	var out []string
	for key, was := range before {
		is, there := after[key]
		switch {
		case !there:
			out = append(out, "- "+key)
		case was == is:
		case sameJSON(was, is):
			out = append(out, "= "+key) // another order of keys
		default:
			out = append(out, "~ "+key)
		}
	}
	for key := range after {
		if _, there := before[key]; !there {
			out = append(out, "+ "+key)
		}
	}
	slices.Sort(out)
	return out
}

func sameJSON(a, b string) bool {
	var v, w any
	for text, into := range map[*any]string{&v: a, &w: b} {
		decoder := json.NewDecoder(bytes.NewReader([]byte(into)))
		decoder.UseNumber()
		if decoder.Decode(text) != nil {
			return false
		}
	}
	return reflect.DeepEqual(v, w)
}

// listed is a Difference in the words of the naive one.
func listed(d *Difference) []string {
	var out []string
	set := func(prefix string, s setChange) {
		for _, item := range s.added {
			out = append(out, "+ "+prefix+item)
		}
		for _, item := range s.removed {
			out = append(out, "- "+prefix+item)
		}
	}
	sign := map[kind]string{added: "+ ", removed: "- ", changed: "~ "}
	if d.environment[0] != d.environment[1] {
		out = append(out, "~ environment")
	}
	set("class ", d.classes)
	set("tag ", d.tags)
	for _, e := range d.edges {
		out = append(out, sign[e.kind]+"edge "+e.source+" → "+e.target)
	}
	for _, r := range d.resources {
		name := fmt.Sprintf("%s[%s]%v", r.typ, r.title, r.exported)
		if r.kind != changed {
			out = append(out, sign[r.kind]+name)
		}
		set(name+" #", r.tags)
		for _, p := range r.parameters {
			if p.kind == changed && !slices.ContainsFunc(p.steps, func(s step) bool { return s.kind != reordered }) {
				out = append(out, "= "+name+" "+p.name)
				continue
			}
			out = append(out, sign[p.kind]+name+" "+p.name)
		}
		for _, f := range r.files {
			out = append(out, sign[f.kind]+name+" file "+f.path)
		}
	}
	slices.Sort(out)
	return out
}

// Every pair of catalogs is checked in all ways: making them takes the time.
func TestPairsOfRealCatalogs(t *testing.T) {
	t.Parallel()
	pairs(t, func(t *rapid.T, old, fresh *draft) {
		a, b := old.bytes(), fresh.bytes()
		d := mustCompare(t, a, b)
		if diff := cmp.Diff(naiveDifference(t, a, b), listed(d)); diff != "" {
			t.Fatalf("a naive comparison (-) and ours (+):\n%s", diff)
		}
		for _, doc := range [][]byte{a, b} {
			if d := mustCompare(t, doc, slices.Clone(doc)); !d.Empty() {
				t.Fatalf("a catalog differs from itself: %v", listed(d))
			}
		}
		checkApplied(t, mustParse(t, a), mustParse(t, b), d)
		checkSecrets(t, d, slices.Concat(old.secrets, fresh.secrets))
	})
}
