package code

import (
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// maxPuppetfileBytes bounds what of a Puppetfile is read.
const maxPuppetfileBytes = 1 << 20

// MissingModules names the modules of the version's Puppetfile, as it writes them, that are neither where the Puppetfile puts
// them nor on the module path: nobody resolved it. A Puppetfile is a Ruby program, and it is read here, not run: what depends on
// a condition or is put together is left alone. None if there is no Puppetfile.
func (b *Bundle) MissingModules() ([]string, error) {
	tree := newTree("", fleet.Environment(""), time.Time{}, b.Manifest, nil)
	n := tree.resolve(tree.root, "Puppetfile")
	if n == nil || n.file.Kind != Regular {
		return nil, nil
	}
	file, err := b.Open(n.file.Digest)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxPuppetfileBytes))
	if err != nil {
		return nil, fmt.Errorf("read the Puppetfile: %w", err)
	}
	var missing []string
	for _, m := range readPuppetfile(string(text)) {
		if !tree.hasModule(m) && !slices.Contains(missing, m.title) {
			missing = append(missing, m.title)
		}
	}
	return missing, nil
}

// hasModule says whether there is anything where the module is looked for.
func (t *Tree) hasModule(m puppetfileModule) bool {
	if n := t.byName[m.name]; n != nil && len(n.children) > 0 {
		return true
	}
	n := t.resolve(t.root, path.Join(m.dir, m.name))
	return n != nil && n.isDir() && len(n.children) > 0
}

// puppetfileModule is what a Puppetfile says of a module.
type puppetfileModule struct {
	title string // as it is written: puppetlabs/stdlib
	name  string // of its directory: stdlib
	dir   string // that the directory lies in, below the environment's root
}

// moduleTitle is r10k's: an owner, and the module's name.
var moduleTitle = regexp.MustCompile(`^(?:\w+[-/])?(\w+)$`)

// readPuppetfile lists the modules that a Puppetfile names whatever happens.
func readPuppetfile(text string) (modules []puppetfileModule) {
	dir, nested := "modules", 0
	for _, s := range rubyStatements(text) {
		word := ""
		if s[0].kind == rubyWord {
			word = s[0].text
		}
		switch {
		case word == "end":
			nested = max(nested-1, 0)
		case rubyOpens[word] || s[1:].has("do"):
			nested++
		case nested > 0 || s[1:].has("if") || s[1:].has("unless"): // perhaps
		case word == "moduledir":
			dir = s.argument()
		case word == "mod":
			m := puppetfileModule{title: s.argument(), dir: dir}
			if at := slices.IndexFunc(s, func(t rubyToken) bool { return t.kind == rubyWord && t.text == "install_path" }); at > 0 {
				m.dir = s[at:].argument()
			}
			if found := moduleTitle.FindStringSubmatch(m.title); found != nil && m.dir != "" && !path.IsAbs(m.dir) && isModuleName(found[1]) {
				m.name = found[1]
				modules = append(modules, m)
			}
		}
	}
	return modules
}

var rubyOpens = map[string]bool{
	"if": true, "unless": true, "case": true, "while": true, "until": true, "for": true, "begin": true, "def": true, "class": true, "module": true,
}

// rubyStatement is never empty.
type rubyStatement []rubyToken

type rubyToken struct {
	kind byte
	text string // of a string: its content; empty if it is put together
}

const (
	rubyWord   = 'w'
	rubyString = 's'
	rubyMark   = 'm'
	rubyLine   = 'n'
)

func (s rubyStatement) has(word string) bool {
	return slices.Contains(s, rubyToken{rubyWord, word})
}

// argument is the string behind the first word; empty if something else is there.
func (s rubyStatement) argument() string {
	for _, t := range s[1:] {
		switch {
		case t.kind == rubyString:
			return t.text
		case t.kind != rubyMark || !strings.Contains("(:=>", t.text):
			return ""
		}
	}
	return ""
}

// rubyStatements splits a text as Ruby does: a statement ends with its line, but not within brackets and not behind what
// demands more.
func rubyStatements(text string) (statements []rubyStatement) {
	var s rubyStatement
	depth := 0
	end := func() {
		if len(s) > 0 {
			statements = append(statements, s)
		}
		s, depth = nil, 0
	}
	for _, t := range rubyTokens(text) {
		switch {
		case t.kind == rubyLine && (depth > 0 || len(s) > 0 && s[len(s)-1].kind == rubyMark && strings.Contains(",\\.>=", s[len(s)-1].text)):
			if s[len(s)-1].text == `\` {
				s = s[:len(s)-1]
			}
		case t.kind == rubyLine || t.kind == rubyMark && t.text == ";" && depth == 0:
			end()
		default:
			s = append(s, t)
			if t.kind == rubyMark && strings.Contains("([{", t.text) {
				depth++
			}
			if t.kind == rubyMark && strings.Contains(")]}", t.text) {
				depth = max(depth-1, 0)
			}
		}
	}
	end()
	return statements
}

var (
	rubyComment  = regexp.MustCompile(`(?ms)^=begin\b.*?^=end\b.*?$`)
	rubyTheEnd   = regexp.MustCompile(`(?m)^__END__$`)
	rubyOneToken = regexp.MustCompile(`^(?:([A-Za-z_]\w*)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|(#[^\n]*|[ \t\r]+)|(\n)|([^\s]))`)
	rubyHeredoc  = regexp.MustCompile(`^<<[~-]?['"]?([A-Za-z_]\w*)['"]?`)
)

func rubyTokens(text string) (tokens []rubyToken) {
	text = rubyComment.ReplaceAllString(text, "")
	if end := rubyTheEnd.FindStringIndex(text); end != nil {
		text = text[:end[0]]
	}
	for text != "" {
		if h := rubyHeredoc.FindStringSubmatch(text); h != nil {
			_, rest, _ := strings.Cut(text, "\n")
			line := regexp.MustCompile(`(?m)^\s*` + h[1] + `$`).FindStringIndex(rest)
			if line == nil {
				return tokens
			}
			tokens, text = append(tokens, rubyToken{rubyString, ""}), rest[line[1]:]
			continue
		}
		m := rubyOneToken.FindStringSubmatch(text)
		if m == nil {
			return tokens // no Ruby that is known here
		}
		text = text[len(m[0]):]
		switch {
		case m[1] != "":
			tokens = append(tokens, rubyToken{rubyWord, m[1]})
		case m[4] != "":
		case m[5] != "":
			tokens = append(tokens, rubyToken{kind: rubyLine})
		case m[6] == "'" || m[6] == `"`:
			return tokens // the quotation has no end
		case m[6] != "":
			tokens = append(tokens, rubyToken{rubyMark, m[6]})
		case strings.Contains(m[3], "#{"):
			tokens = append(tokens, rubyToken{rubyString, ""})
		default:
			tokens = append(tokens, rubyToken{rubyString, m[2] + m[3]})
		}
	}
	return tokens
}
