package diff

import (
	"bytes"
	"maps"
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
func (d *Difference) hide(old, new *Catalog) error {
	if len(d.resources) == 0 && !new.sent {
		return nil
	}
	f, err := find(old)
	if err != nil {
		return err
	}
	g, err := find(new)
	if err != nil {
		return err
	}
	if new.sent {
		d.secrets, d.uncompared = [2]secrets{f.secrets, g.secrets}, f.hides()
		d.withhold(f)
		f = g
	} else {
		f.join(g)
		d.secrets = [2]secrets{f.secrets, f.secrets}
	}
	for i := range d.resources {
		f.mark(&d.resources[i])
	}
	return nil
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
	fragments []fragment            // may turn out to be of a quiet file
}

// fragment is a resource that is part of what another one writes.
type fragment struct {
	identity
	declared
	target string
}

var markers = [][]byte{[]byte(`sensitive_parameters`), []byte(ptype), []byte(`show_diff`), []byte(`"target"`), []byte(`\u`)}

// find looks through a catalog.
func find(c *Catalog) (*finder, error) {
	f := &finder{sensitive: map[identity][]string{}, quiet: map[identity]bool{}, targets: map[string]bool{}}
	for _, r := range c.resources {
		if err := f.look(r); err != nil {
			return nil, broken(r.identity, err)
		}
	}
	for _, part := range f.fragments {
		if f.targets[part.target] {
			f.hush(part.identity, part.declared)
		}
	}
	f.secrets = setOf(f.secrets)
	return f, nil
}

// join takes in what another catalog hides.
func (f *finder) join(g *finder) {
	for id, names := range g.sensitive {
		f.sensitive[id] = append(f.sensitive[id], names...)
	}
	maps.Copy(f.quiet, g.quiet)
	f.secrets = setOf(append(f.secrets, g.secrets...))
}

// hides says whether anything is hidden.
func (f *finder) hides() bool { return len(f.sensitive)+len(f.quiet) > 0 }

// look finds what a resource hides. Most have nothing of the kind in their text.
func (f *finder) look(r resource) error {
	if !slices.ContainsFunc(markers, func(m []byte) bool { return bytes.Contains(r.raw, m) }) {
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
	} else if target := d.text("target"); target != "" {
		f.fragments = append(f.fragments, fragment{r.identity, d, target})
	}
	return nil
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
