package truth

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Off names constructs that are not used, each with the reason: a fault that is known
// and not mended yet.
var Off = map[string]string{}

// words is the vocabulary.
var words = readVocabulary()

// Constructs is the names of all of them.
func Constructs() []string {
	var names []string
	for _, c := range slices.Concat(words.sound, words.mistakes) {
		names = append(names, c.name)
	}
	return names
}

// builder puts a world together.
type builder struct {
	w       *World
	r       *rand.Rand
	serial  int
	number  string // of the construct at hand
	sources []string
	top     []string
	body    []string
	options []string // lookup_options
	levels  []string // of the hierarchy
}

func newBuilder(w *World) *builder {
	b := &builder{w: w, r: w.r, sources: slices.Clone(words.sources)}
	w.Files["data/common.yaml"] = "---\nbase_key: \"base %{facts.role}\"\nbase_hash: { z: 1, list: [b, a], a: { c: ~ } }\n"
	for _, level := range []string{"nodes/web1.example", "role/web", "role/db", "kernel/Linux"} {
		w.Files["data/"+level+".yaml"] = "---\nlevel: " + level + "\n"
	}
	return b
}

// choose takes six to twelve constructs, and in one world of five a mistake; or those that
// are named.
func (b *builder) choose(only []string) []construct {
	var chosen []construct
	if len(only) > 0 {
		for _, c := range slices.Concat(words.sound, words.mistakes) {
			if slices.Contains(only, c.name) {
				chosen = append(chosen, c)
			}
		}
		return chosen
	}
	order := b.r.Perm(len(words.sound))
	for _, i := range order[:6+b.r.IntN(7)] {
		chosen = append(chosen, words.sound[i])
	}
	if b.r.IntN(5) == 0 {
		i := b.r.IntN(len(chosen))
		chosen = slices.Insert(chosen, i, pick(b.r, words.mistakes))
	}
	return slices.DeleteFunc(chosen, func(c construct) bool { return Off[c.name] != "" })
}

func (b *builder) build(chosen []construct) {
	for _, c := range chosen {
		b.w.Constructs = append(b.w.Constructs, c.name)
		b.serial++
		b.number = fmt.Sprint(b.serial)
		for _, s := range c.sections {
			b.take(b.fill(s.name), s.text)
		}
	}
}

// take adds one section.
func (b *builder) take(name, text string) {
	switch name {
	case "":
	case "body":
		b.body = append(b.body, b.fill(text))
	case "top":
		b.top = append(b.top, b.fill(text))
	case "values":
		b.values(text)
	case "edits":
		for _, line := range linesOf(b.fill(text)) {
			at := strings.SplitN(line, " ## ", 3)
			b.w.edits = append(b.w.edits, &edit{path: at[0], old: at[1], fresh: at[2]})
		}
	case "group":
		for _, line := range linesOf(b.fill(text)) {
			at := append(strings.SplitN(line, " ", 3), "")
			b.w.given = append(b.w.given, group{at[0], at[1], at[2]})
		}
	case "hierarchy":
		b.levels = append(b.levels, b.fill(text))
	case "+lookup_options":
		b.options = append(b.options, "  "+b.fill(text))
	default:
		b.file(name, b.fill(text)+"\n")
	}
}

func (b *builder) file(name, text string) {
	if path, ok := strings.CutPrefix(name, "?"); ok {
		b.w.comes[path] = text
		if strings.HasPrefix(path, "data/nodes/") || strings.HasPrefix(path, "data/role/") {
			b.w.comes[path] = b.w.Files[path] + text
		} else if b.r.IntN(2) == 0 {
			b.w.Files[path] = text
		}
		return
	}
	if path, ok := strings.CutPrefix(name, "+"); ok {
		b.w.Files[path] += text
		if _, too := b.w.comes[path]; too {
			b.w.comes[path] += text
		}
		return
	}
	b.w.Files[name] = text
}

// values takes new expressions, and says some of them at once.
func (b *builder) values(text string) {
	for i, line := range linesOf(text) {
		expression := b.fill(line)
		b.sources = append(b.sources, expression)
		if i == 0 || b.r.IntN(2) == 0 {
			b.say(i, expression)
		}
	}
}

// say puts an expression into the catalog.
func (b *builder) say(i int, expression string) {
	title := fmt.Sprintf("say%s-%d", b.number, i)
	forms := []string{
		"notify { 'T': message => E }",
		"notify { 'T': message => E }",
		"file { '/T': content => \"${E}\" }",
		"notify { 'T': * => { 'message' => E } }",
		"if true { notify { 'T': message => [E] } }",
		"['x'].each |$i| { notify { \"T ${i}\": message => E } }",
		"@notify { 'T': message => E } realize(Notify['T'])",
		"$v_T = E\nnotify { 'T': message => { 'v' => $v_T } }",
	}
	form := strings.ReplaceAll(pick(b.r, forms), "v_T", strings.ReplaceAll("v_"+title, "-", "_"))
	form = strings.ReplaceAll(form, "T", title)
	b.body = append(b.body, strings.Replace(form, "E", expression, 1))
}

// value is any expression.
func (b *builder) value(depth int) string {
	if depth == 0 || b.r.IntN(3) == 0 {
		return b.fillTo(pick(b.r, b.sources), 0)
	}
	return b.fillTo(pick(b.r, words.wrappers), depth-1)
}

func (b *builder) fill(text string) string { return b.fillTo(text, 2) }

// fillTo replaces what stands in ‹ and ›.
func (b *builder) fillTo(text string, depth int) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "‹")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inside, after := closing(rest)
		switch inside {
		case "N":
			out.WriteString(b.number)
		case "V":
			out.WriteString(b.value(depth))
		default:
			out.WriteString(b.fillTo(pick(b.r, alternatives(inside)), depth))
		}
		text = after
	}
}

// closing cuts text at the › that belongs to a ‹ before it.
func closing(text string) (inside, after string) {
	depth := 1
	for i, c := range text {
		switch c {
		case '‹':
			depth++
		case '›':
			if depth--; depth == 0 {
				return text[:i], text[i+len("›"):]
			}
		}
	}
	panic("a construct without ›: " + text)
}

// alternatives cuts text at each ¦ that is in no inner pair.
func alternatives(text string) []string {
	list, depth, begin := []string(nil), 0, 0
	for i, c := range text {
		switch c {
		case '‹':
			depth++
		case '›':
			depth--
		case '¦':
			if depth == 0 {
				list, begin = append(list, text[begin:i]), i+len("¦")
			}
		}
	}
	return append(list, text[begin:])
}
