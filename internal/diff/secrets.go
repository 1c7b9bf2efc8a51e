package diff

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Secrets of fewer bytes hide only the parameter that they stand in: they would be
// found in half of all other texts.
const minSecret = 8

// openNames are the parameters of a resource with show_diff => false that may be
// seen: none of them says what is in a file.
var openNames = append([]string{"ensure", "owner", "group", "mode", "show_diff", "noop"}, orderOnly...)

// secrets are the texts that are hidden somewhere in one of two catalogs.
type secrets []string

// in says whether a text holds a secret.
func (s secrets) in(text string) bool {
	return slices.ContainsFunc(s, func(secret string) bool { return strings.Contains(text, secret) })
}

// inValue says whether any string of a value holds a secret.
func (s secrets) inValue(v *value) bool {
	return v != nil && len(s) > 0 && !v.strings(func(text string) bool { return !s.in(text) })
}

// hide marks what may not be seen. Between stored catalogs, what one of them hides is
// hidden in both. A catalog that was sent must not be a way to guess: what the
// stored one hides is taken out of the difference, whether it differs or not.
func (d *Difference) hide(old, fresh *Catalog, before map[identity]*indexed) error {
	if len(d.resources) == 0 && !fresh.sent {
		return nil
	}
	if !fresh.sent { // what both have word for word hides the same
		f, err := find(old.resources, slices.DeleteFunc(slices.Clone(fresh.resources), func(r resource) bool {
			known := before[r.identity]
			return known != nil && bytes.Equal(known.raw, r.raw)
		}))
		if err != nil {
			return err
		}
		d.secrets = [2]secrets{f.secrets, f.secrets}
		d.mark(f)
		return nil
	}
	stored, err := find(old.resources)
	if err != nil {
		return err
	}
	sent, err := find(fresh.resources)
	if err != nil {
		return err
	}
	d.secrets, d.uncompared = [2]secrets{stored.secrets, sent.secrets}, stored.hides()
	d.withhold(stored)
	d.mark(sent)
	return nil
}

func (d *Difference) mark(f *finder) {
	for i := range d.resources {
		f.mark(&d.resources[i])
	}
}

// withhold takes out what f hides of the old side.
func (d *Difference) withhold(f *finder) {
	d.resources = slices.DeleteFunc(d.resources, func(r resourceChange) bool { return f.strip(&r) && r.kind == changed && r.tags.empty() })
	for i := range d.resources {
		f.strip(&d.resources[i])
	}
}

// strip takes what f hides out of one resource, and says whether nothing is left.
func (f *finder) strip(r *resourceChange) bool {
	r.parameters = slices.DeleteFunc(slices.Clone(r.parameters), func(p parameterChange) bool {
		return f.hidden(r.identity, p.name) || f.secrets.inValue(p.old)
	})
	if f.hidesFiles(r.identity) {
		r.files = nil
	}
	return len(r.parameters)+len(r.files) == 0
}

// finder looks for secrets.
type finder struct {
	secrets   secrets
	sensitive map[identity][]string // parameters that are marked, in either catalog
	quiet     map[identity]bool     // resources that do not show what changes in them
	targets   map[string]bool       // titles and paths of these
}

// Most resources have nothing of the kind in their text. A key may be spelt with
// escapes.
var (
	markers       = [][]byte{[]byte(`sensitive_parameters`), []byte(ptype), []byte(`\u`)}
	targetMarkers = [][]byte{[]byte(`"target"`), []byte(`\u`)}
	showDiff      = []byte(`show_diff`)
	showDiffTrue  = []byte(`show_diff":true`)
)

func has(text []byte, markers [][]byte) bool {
	return slices.ContainsFunc(markers, func(m []byte) bool { return bytes.Contains(text, m) })
}

// find looks through the resources of catalogs.
func find(lists ...[]resource) (*finder, error) {
	f := &finder{sensitive: map[identity][]string{}, quiet: map[identity]bool{}, targets: map[string]bool{}}
	for _, list := range lists {
		for _, r := range list {
			if err := f.look(r); err != nil {
				return nil, broken(r.identity, err)
			}
		}
	}
	if len(f.targets) > 0 {
		for _, list := range lists {
			for _, r := range list {
				if err := f.lookAtTarget(r); err != nil {
					return nil, broken(r.identity, err)
				}
			}
		}
	}
	f.secrets = setOf(f.secrets)
	return f, nil
}

// hides says whether anything is hidden.
func (f *finder) hides() bool { return len(f.sensitive)+len(f.quiet) > 0 }

// look finds what a resource hides.
func (f *finder) look(r resource) error {
	if !has(r.raw, markers) && bytes.Count(r.raw, showDiff) == bytes.Count(r.raw, showDiffTrue) {
		return nil
	}
	d, err := declare(r.raw)
	if err != nil {
		return err
	}
	for name, raw := range d.parameters {
		marked := slices.Contains(d.sensitive, name)
		if !marked && !bytes.Contains(raw, []byte(ptype)) && !bytes.Contains(raw, []byte(`\u`)) {
			continue
		}
		v, err := decode(raw)
		if err != nil {
			return err
		}
		if f.collect(v, marked) || marked {
			f.sensitive[r.identity] = append(f.sensitive[r.identity], name)
		}
	}
	if shown, said := d.parameters["show_diff"]; said && !isTrue(shown) {
		f.hush(r.identity, d)
	}
	return nil
}

// lookAtTarget finds a part of what a quiet resource writes.
func (f *finder) lookAtTarget(r resource) error {
	if !has(r.raw, targetMarkers) {
		return nil
	}
	d, err := declare(r.raw)
	if err == nil && f.targets[d.text("target")] {
		f.hush(r.identity, d)
	}
	return err
}

// hush makes a resource quiet.
func (f *finder) hush(id identity, d declared) {
	f.quiet[id] = true
	f.targets[id.title] = true
	if path := d.text("path"); path != "" {
		f.targets[path] = true
	}
	for _, name := range []string{"content", "value"} {
		if text := d.text(name); text != "" {
			f.remember(text)
		}
	}
}

// collect remembers what is secret in a value: all of it, or what Sensitive holds.
// It says whether there was a Sensitive.
func (f *finder) collect(v *value, all bool) bool {
	found := false
	if of := v.member(ptype); of != nil && of.text == "Sensitive" {
		found, all = true, true
	}
	if v.kind == '"' && all {
		f.remember(v.text)
	}
	for i, item := range v.items {
		if v.kind == '{' && v.keys[i] == ptype {
			continue
		}
		found = f.collect(item, all) || found
	}
	return found
}

// ptype is the key of Puppet's rich data that names a value's type.
const ptype = "__ptype"

func (f *finder) remember(text string) {
	if text = strings.TrimSpace(text); len(text) >= minSecret {
		f.secrets = append(f.secrets, text)
	}
}

// hidden says whether a parameter is hidden by its name.
func (f *finder) hidden(id identity, parameter string) bool {
	return slices.Contains(f.sensitive[id], parameter) || f.quiet[id] && !slices.Contains(openNames, parameter)
}

// hidesFiles says whether the content of a File is hidden.
func (f *finder) hidesFiles(id identity) bool {
	return f.quiet[id] || slices.Contains(f.sensitive[id], "content") || slices.Contains(f.sensitive[id], "source")
}

// mark marks what is hidden of a resource.
func (f *finder) mark(r *resourceChange) {
	for i := range r.parameters {
		p := &r.parameters[i]
		p.hidden = f.hidden(r.identity, p.name) || f.secrets.inValue(p.old) || f.secrets.inValue(p.new)
	}
	for i := range r.files {
		r.files[i].hidden = f.hidesFiles(r.identity)
	}
}

// isTrue tells the values that Puppet takes for true.
func isTrue(raw jsontext.Value) bool {
	switch string(raw) {
	case `true`, `"true"`, `"yes"`:
		return true
	}
	return false
}
