package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tutti-project/tutti/api"
)

// Limits bound what is shown.
type Limits struct {
	Resources    int // of one difference
	Places       int // parameters, and places in them, of one resource
	Edges        int
	ValueBytes   int // of a value, as JSON; of a line of a diff
	TextBytes    int // of both sides of a text for which a diff is made
	DiffLines    int
	ContextLines int
}

// DefaultLimits suit people who read.
func DefaultLimits() Limits {
	return Limits{Resources: 5000, Places: 200, Edges: 1000, ValueBytes: 1000, TextBytes: 1 << 20, DiffLines: 200, ContextLines: 3}
}

// Shower makes of differences what may be seen. It may be used by many goroutines.
type Shower struct {
	blobs  Blobs
	limits Limits
}

// NewShower reads the content of files from blobs; nil: only digests are shown.
func NewShower(blobs Blobs, limits Limits) *Shower { return &Shower{blobs, limits} }

// Show is a whole difference. Only what both sides' names, environments are is filled
// in of them. What cannot be read is said to be so: there is no error.
func (s *Shower) Show(ctx context.Context, d *Difference) api.CatalogDifference {
	out := api.CatalogDifference{
		Old:  api.CatalogSide{Name: d.name[0], Environment: d.environment[0]},
		New:  api.CatalogSide{Name: d.name[1], Environment: d.environment[1]},
		Same: d.Empty(), NotCompared: d.uncompared,
		ClassesAdded: d.classes.added, ClassesRemoved: d.classes.removed,
		Resources: []api.ResourceDifference{},
		Order:     api.OrderDifference{Moved: d.moved, TagsAdded: d.tags.added, TagsRemoved: d.tags.removed},
	}
	for i := range d.resources {
		r := &d.resources[i]
		switch {
		case r.isOrder():
			out.Order.Resources++
		case r.kind == added:
			out.Added++
		case r.kind == removed:
			out.Removed++
		default:
			out.Changed++
		}
		if len(out.Resources) >= s.limits.Resources {
			out.NotListed++
			continue
		}
		out.Resources = append(out.Resources, s.resource(ctx, d, r))
	}
	for _, e := range d.edges {
		if !e.implied {
			out.Order.EdgeCount++
		}
		if len(out.Order.Edges) < s.limits.Edges {
			out.Order.Edges = append(out.Order.Edges, api.EdgeDifference{Change: string(e.kind), Source: e.source, Target: e.target, Implied: e.implied})
		}
	}
	return out
}

func (s *Shower) resource(ctx context.Context, d *Difference, r *resourceChange) api.ResourceDifference {
	line, _ := strconv.Atoi(r.line)
	out := api.ResourceDifference{
		Change: string(r.kind), Type: r.typ, Title: r.title, Exported: r.exported, OrderOnly: r.isOrder(),
		File: r.file, Line: line,
	}
	if r.kind == changed {
		out.TagsAdded, out.TagsRemoved = r.tags.added, r.tags.removed
	}
	for i := range r.parameters {
		if p := &r.parameters[i]; !r.asContent(p) {
			out.Parameters = append(out.Parameters, s.parameter(p, d.engines)...)
		}
	}
	files, unread := s.contents(ctx, d, r)
	out.Parameters, out.NotListed = append(out.Parameters, files...), unread
	slices.SortStableFunc(out.Parameters, func(a, b api.ParameterDifference) int { return strings.Compare(a.Name, b.Name) })
	if n := len(out.Parameters); n > s.limits.Places {
		out.Parameters, out.NotListed = out.Parameters[:s.limits.Places], unread+n-s.limits.Places
	}
	return out
}

// asContent says that a parameter is shown together with the file's metadata:
// where the content comes from has changed.
func (r *resourceChange) asContent(p *parameterChange) bool {
	return r.typ == "File" && p.name == "content" && !p.hidden && r.file0() != nil && p.kind != changed
}

// file0 is the change of the file itself, not of one below it.
func (r *resourceChange) file0() *fileChange {
	if len(r.files) > 0 && r.files[0].path == "" {
		return &r.files[0]
	}
	return nil
}

// parameter shows one parameter: of a list or hash, each place that differs.
func (s *Shower) parameter(p *parameterChange, engines bool) []api.ParameterDifference {
	head := api.ParameterDifference{Name: p.name, Change: string(p.kind), OrderOnly: isOrder(p.name)}
	if engines && !p.isOrder() {
		head.EngineNoise = forms(p.old, p.new)
	}
	if p.hidden {
		head.Hidden = true
		return []api.ParameterDifference{head}
	}
	if p.kind != changed {
		s.values(&head, p.old, p.new)
		return []api.ParameterDifference{head}
	}
	var all []api.ParameterDifference
	for _, step := range p.steps {
		one := head
		one.Path, one.Change = pathText(step.path), string(step.kind)
		one.OrderOnly = head.OrderOnly || step.kind == reordered
		if step.kind != reordered {
			s.values(&one, step.old, step.new)
		}
		all = append(all, one)
	}
	return all
}

// values shows two values; either may be nil.
func (s *Shower) values(p *api.ParameterDifference, old, fresh *value) {
	if isText(old) && isText(fresh) || isText(old) && fresh == nil || old == nil && isText(fresh) {
		p.Text, p.Note = unified(textOf(old), textOf(fresh), s.limits)
		return
	}
	p.Old, p.New = s.cut(old), s.cut(fresh)
}

// isText says whether a value is better compared line by line.
func isText(v *value) bool { return v != nil && v.kind == '"' && strings.Contains(v.text, "\n") }

func textOf(v *value) string {
	if v == nil {
		return ""
	}
	return v.text
}

// cut is a value as JSON, or the beginning of it as a string.
func (s *Shower) cut(v *value) json.RawMessage {
	if v == nil {
		return nil
	}
	text := v.plain()
	if len(text) <= s.limits.ValueBytes {
		return json.RawMessage(text)
	}
	if v.kind == '"' {
		text = v.text
	}
	short := value{kind: '"', text: cutText(text, s.limits.ValueBytes) + "… (" + strconv.Itoa(len(text)) + " bytes)"}
	return json.RawMessage(short.plain())
}

// contents shows what a File and the files below it hold. Of a large directory, the
// rest is counted and not read.
func (s *Shower) contents(ctx context.Context, d *Difference, r *resourceChange) (all []api.ParameterDifference, unread int) {
	var old, fresh *value
	for i := range r.parameters {
		if p := &r.parameters[i]; r.asContent(p) {
			old, fresh = p.old, p.new
		}
	}
	for i := range r.files {
		if len(all) >= s.limits.Places {
			return all, len(r.files) - i
		}
		f := &r.files[i]
		if f.path != "" {
			old, fresh = nil, nil
		}
		all = append(all, s.content(ctx, d, f, contentOf(old, f.old), contentOf(fresh, f.new))...)
		all = append(all, s.attributes(f)...)
	}
	return all, 0
}

// content shows what became of the content of one file.
func (s *Shower) content(ctx context.Context, d *Difference, f *fileChange, old, fresh content) []api.ParameterDifference {
	if old.sum == fresh.sum {
		return nil
	}
	p := api.ParameterDifference{Name: "content", Path: below(f.path), Change: string(changed)}
	switch {
	case !old.there:
		p.Change = string(added)
	case !fresh.there:
		p.Change = string(removed)
	}
	if p.Hidden = f.hidden || d.secrets[0].in(old.text) || d.secrets[1].in(fresh.text); !p.Hidden {
		p.OldDigest, p.NewDigest = old.sum, fresh.sum
		s.contentText(ctx, d, &p, old, fresh)
	}
	return []api.ParameterDifference{p}
}

// contentText reads both sides. Secrets may turn out to be in them.
func (s *Shower) contentText(ctx context.Context, d *Difference, p *api.ParameterDifference, old, fresh content) {
	a, note := s.read(ctx, old, false)
	if note == "" {
		var b string
		b, note = s.read(ctx, fresh, d.sent)
		switch {
		case note != "":
		case d.secrets[0].in(a) || d.secrets[1].in(b):
			*p = api.ParameterDifference{Name: p.Name, Path: p.Path, Change: p.Change, Hidden: true}
		case isBinary([]byte(a)) || isBinary([]byte(b)):
			p.Binary = true
		default:
			p.Text, note = unified(a, b, s.limits)
		}
	}
	p.Note = note
}

func below(path string) string {
	if path == "" {
		return ""
	}
	return "/" + path
}

// octal is a mode as people write it.
func octal(mode string) string {
	n, err := strconv.ParseUint(mode, 10, 16)
	if err != nil {
		return mode
	}
	return fmt.Sprintf("%04o", n)
}

// attributes shows what else the metadata say.
func (s *Shower) attributes(f *fileChange) []api.ParameterDifference {
	var all []api.ParameterDifference
	for _, a := range [][3]string{
		{"type", f.old.Type, f.new.Type},
		{"destination", f.old.Destination, f.new.Destination},
		{"owner", f.old.Owner, f.new.Owner},
		{"group", f.old.Group, f.new.Group},
		{"mode", octal(f.old.Mode), octal(f.new.Mode)},
	} {
		if a[1] == a[2] || f.kind != changed {
			continue
		}
		p := api.ParameterDifference{Name: "source", Path: below(f.path) + " " + a[0], Change: string(changed), Hidden: f.hidden && a[0] == "destination"}
		if !p.Hidden {
			p.Old, p.New = s.cut(&value{kind: '"', text: a[1]}), s.cut(&value{kind: '"', text: a[2]})
		}
		all = append(all, p)
	}
	return all
}
