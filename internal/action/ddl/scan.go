package ddl

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// token is a word of Ruby as far as DDLs have it.
type token struct {
	line  int
	kind  tokenKind
	text  string  // of a name, a mark, digits, or a text without places
	parts []piece // of a text with places for variables; nil: it has none
	words []token // of %w[] and %i[]
}

// piece is a part of a text: as it is, or an expression between #{ and }.
type piece struct {
	text       string
	expression bool
}

type tokenKind uint8

const (
	tokenEnd     tokenKind = iota
	tokenNewline           // or a semicolon
	tokenName              // an identifier
	tokenLabel             // name: in a hash
	tokenSymbol
	tokenText
	tokenNumber
	tokenRegex
	tokenWords
	tokenMark // => , ( ) [ ] { } | + .
)

func (t token) is(mark string) bool    { return t.kind == tokenMark && t.text == mark }
func (t token) named(name string) bool { return t.kind == tokenName && t.text == name }

// String is a token in an error.
func (t token) String() string {
	switch t.kind {
	case tokenEnd:
		return "the end of the file"
	case tokenNewline:
		return "the end of the line"
	case tokenName, tokenLabel, tokenMark, tokenNumber, tokenSymbol:
		return "`" + t.text + "`"
	case tokenText, tokenRegex, tokenWords:
	}
	return "a literal"
}

// scanner cuts a Ruby text into tokens.
type scanner struct {
	text    string
	at      int
	line    int
	tokens  []token
	pending []heredoc // whose lines begin behind the next newline
}

// heredoc is a text in the lines behind the one that names it.
type heredoc struct {
	token            int
	end              string
	indented, squish bool
	raw              bool // without places and escapes
}

func scan(text string) ([]token, error) {
	s := scanner{text: text, line: 1}
	if i := invalid(text); i >= 0 {
		return nil, at(1+strings.Count(text[:i], "\n"), "the text is not UTF-8")
	}
	for s.at < len(s.text) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	if len(s.pending) > 0 {
		return nil, at(s.line, "the text that ends with a line %s does not end", s.pending[0].end)
	}
	s.add(token{kind: tokenEnd})
	return s.tokens, nil
}

// invalid is where a text is not UTF-8; -1: it is.
func invalid(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return i
		}
	}
	return -1
}

func (s *scanner) add(t token) {
	if t.line == 0 {
		t.line = s.line
	}
	s.tokens = append(s.tokens, t)
}

func (s *scanner) rest() string { return s.text[s.at:] }

// next reads one token, or what lies between them.
func (s *scanner) next() error {
	rest := s.rest()
	c := rest[0]
	switch {
	case c == '\n':
		return s.newline()
	case strings.HasPrefix(rest, "\\\n"):
		s.at, s.line = s.at+2, s.line+1
	case strings.HasPrefix(rest, "\\\r\n"):
		s.at, s.line = s.at+3, s.line+1
	case c == ' ' || c == '\t' || c == '\r':
		s.at++
	case c == ';':
		s.at++
		s.add(token{kind: tokenNewline})
	case c == '#':
		s.at += lineEnd(rest)
	case c == '"' || c == '\'':
		s.at++
		return s.quoted(c, c, c == '"')
	case c == '/':
		s.at++
		return s.regex('/', '/')
	case c == '%':
		return s.percent()
	case strings.HasPrefix(rest, "<<"):
		return s.heredoc()
	case c == ':':
		return s.symbol()
	case c >= '0' && c <= '9' || c == '-' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return s.number()
	case c == '_' || c >= utf8.RuneSelf || unicode.IsLetter(rune(c)):
		s.name()
	case strings.HasPrefix(rest, "=>"):
		s.at += 2
		s.add(token{kind: tokenMark, text: "=>"})
	case strings.IndexByte(",()[]{}|+.", c) >= 0:
		s.at++
		s.add(token{kind: tokenMark, text: string(c)})
	default:
		return at(s.line, "%q is Ruby that is not executed here: only literal values are known", c)
	}
	return nil
}

func lineEnd(text string) int {
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// newline ends a line; the texts that it announced come next, and so may a comment of several lines.
func (s *scanner) newline() error {
	s.add(token{kind: tokenNewline})
	s.at, s.line = s.at+1, s.line+1
	pending := s.pending
	s.pending = nil
	for _, h := range pending {
		if err := s.lines(h); err != nil {
			return err
		}
	}
	if strings.HasPrefix(s.rest(), "=begin") {
		i := strings.Index(s.rest(), "\n=end")
		if i < 0 {
			return at(s.line, "the comment that begins here does not end")
		}
		s.line += 1 + strings.Count(s.rest()[:i], "\n")
		s.at += i + 1
		s.at += lineEnd(s.rest())
	}
	if strings.HasPrefix(s.rest(), "__END__") {
		s.at = len(s.text)
	}
	return nil
}

func (s *scanner) name() {
	end := 0
	for end < len(s.rest()) {
		r, size := utf8.DecodeRuneInString(s.rest()[end:])
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		end += size
	}
	if end == 0 { // a character that begins no name
		_, end = utf8.DecodeRuneInString(s.rest())
	}
	t := token{kind: tokenName, text: s.rest()[:end]}
	s.at += end
	if strings.HasPrefix(s.rest(), ":") && !strings.HasPrefix(s.rest(), "::") {
		s.at++
		t.kind = tokenLabel
	}
	s.add(t)
}

func (s *scanner) number() error {
	end := 1
	for end < len(s.rest()) && strings.IndexByte("0123456789_.eE", s.rest()[end]) >= 0 {
		end++
	}
	digits := strings.ReplaceAll(s.rest()[:end], "_", "")
	t := value{kind: number, text: digits}
	if !t.json().IsValid() {
		return at(s.line, "%.40q is no number that is known here", digits)
	}
	s.at += end
	s.add(token{kind: tokenNumber, text: digits})
	return nil
}

func (s *scanner) symbol() error {
	s.at++
	switch rest := s.rest(); {
	case strings.HasPrefix(rest, `"`), strings.HasPrefix(rest, "'"):
		s.at++
		if err := s.quoted(rest[0], rest[0], rest[0] == '"'); err != nil {
			return err
		}
	case rest != "" && (rest[0] == '_' || unicode.IsLetter(rune(rest[0]))):
		end := 1
		for end < len(rest) && (rest[end] == '_' || rest[end] < utf8.RuneSelf && (unicode.IsLetter(rune(rest[end])) || unicode.IsDigit(rune(rest[end])))) {
			end++
		}
		if strings.HasPrefix(rest[end:], "?") || strings.HasPrefix(rest[end:], "!") {
			end++
		}
		s.at += end
		s.add(token{text: rest[:end]})
	default:
		return at(s.line, "a colon without a name: only symbols such as :name are known")
	}
	s.tokens[len(s.tokens)-1].kind = tokenSymbol
	return nil
}

// closers are the brackets that end what others begin.
var closers = map[byte]byte{'(': ')', '[': ']', '{': '}', '<': '>'}

// percent reads %w[], %i[], %q(), %Q() and %r{}.
func (s *scanner) percent() error {
	rest := s.rest()
	if len(rest) < 3 || strings.IndexByte("wiqQr", rest[1]) < 0 || strings.IndexByte("([{<|!/", rest[2]) < 0 {
		return at(s.line, "%% is Ruby that is not executed here: only literal values are known")
	}
	open, end := rest[2], rest[2]
	if other, bracket := closers[open]; bracket {
		end = other
	}
	s.at += 3
	switch rest[1] {
	case 'r':
		return s.regex(open, end)
	case 'q', 'Q':
		return s.quoted(open, end, rest[1] == 'Q')
	}
	line := s.line
	if err := s.quoted(open, end, false); err != nil {
		return err
	}
	last := &s.tokens[len(s.tokens)-1]
	kind := tokenText
	if rest[1] == 'i' {
		kind = tokenSymbol
	}
	words := token{line: line, kind: tokenWords}
	for w := range strings.FieldsSeq(last.text) {
		words.words = append(words.words, token{line: line, kind: kind, text: w})
	}
	*last = words
	return nil
}

// body is what stands up to an end that is not escaped; brackets within are counted.
func (s *scanner) body(open, end byte) (string, error) {
	depth, line := 0, s.line
	for i := s.at; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\':
			if i+1 < len(s.text) && s.text[i+1] == '\n' {
				s.line++
			}
			i++
		case c == '\n':
			s.line++
		case c == end && depth == 0:
			body := s.text[s.at:i]
			s.at = i + 1
			return body, nil
		case c == end:
			depth--
		case c == open:
			depth++
		}
	}
	return "", at(line, "the text that begins here does not end")
}

// quoted reads a text whose opening mark is read.
func (s *scanner) quoted(open, end byte, rich bool) error {
	line := s.line
	body, err := s.body(open, end)
	if err != nil {
		return err
	}
	t := token{line: line, kind: tokenText}
	if !rich {
		t.text = plain(body, open, end)
	} else if t.text, t.parts, err = escaped(body, line); err != nil {
		return err
	}
	s.add(t)
	return nil
}

// plain is a text in which only its own marks, and the backslash, are escaped.
func plain(body string, marks ...byte) string {
	var b strings.Builder
	for i := 0; i < len(body); i++ {
		if body[i] == '\\' && i+1 < len(body) && (body[i+1] == '\\' || strings.IndexByte(string(marks), body[i+1]) >= 0) {
			i++
		}
		b.WriteByte(body[i])
	}
	return b.String()
}

// regex reads a regular expression whose opening mark is read; its flags become Go's.
func (s *scanner) regex(open, end byte) error {
	line := s.line
	body, err := s.body(open, end)
	if err != nil {
		return err
	}
	if strings.Contains(body, "#{") {
		return at(line, "a regular expression with #{} is not known here")
	}
	flags := map[byte]string{}
	for s.at < len(s.text) && strings.IndexByte("imxounse", s.text[s.at]) >= 0 {
		switch s.text[s.at] {
		case 'i':
			flags['i'] = "i"
		case 'm':
			flags['m'] = "s"
		case 'x':
			return at(line, "a regular expression with the flag x is not known here")
		}
		s.at++
	}
	if len(flags) > 0 {
		body = "(?" + flags['i'] + flags['m'] + ")" + body
	}
	s.add(token{line: line, kind: tokenRegex, text: body})
	return nil
}

// heredoc reads the name of a text that follows in the next lines.
func (s *scanner) heredoc() error {
	h := heredoc{token: len(s.tokens)}
	s.at += 2
	if rest := s.rest(); strings.HasPrefix(rest, "-") || strings.HasPrefix(rest, "~") {
		h.indented, h.squish = true, rest[0] == '~'
		s.at++
	}
	mark := ""
	if rest := s.rest(); strings.HasPrefix(rest, "'") || strings.HasPrefix(rest, `"`) {
		mark = rest[:1]
		h.raw = mark == "'"
		s.at++
	}
	rest, end := s.rest(), 0
	for end < len(rest) &&
		(rest[end] == '_' || rest[end] >= 'A' && rest[end] <= 'Z' || rest[end] >= 'a' && rest[end] <= 'z' || end > 0 && rest[end] >= '0' && rest[end] <= '9') {
		end++
	}
	if end == 0 || !strings.HasPrefix(rest[end:], mark) {
		return at(s.line, "<< is Ruby that is not executed here: only texts such as <<END are known")
	}
	h.end = rest[:end]
	s.at += end + len(mark)
	s.add(token{kind: tokenText})
	s.pending = append(s.pending, h)
	return nil
}

// lines reads the lines of a heredoc.
func (s *scanner) lines(h heredoc) error {
	line := s.line
	var all []string
	for s.at < len(s.text) {
		end := lineEnd(s.rest())
		one := strings.TrimSuffix(s.rest()[:end], "\r")
		s.at = min(s.at+end+1, len(s.text))
		s.line++
		if one == h.end || h.indented && strings.TrimLeft(one, " \t") == h.end {
			body := strings.Join(append(all, ""), "\n")
			if h.squish {
				body = dedent(all)
			}
			t, err := &s.tokens[h.token], error(nil)
			if t.text = body; !h.raw {
				t.text, t.parts, err = escaped(body, line)
			}
			return err
		}
		all = append(all, one)
	}
	return at(line-1, "the text that ends with a line %s does not end", h.end)
}

// dedent takes from all lines the space that they have in common.
func dedent(lines []string) string {
	least := -1
	for _, l := range lines {
		if rest := strings.TrimLeft(l, " \t"); rest != "" && (least < 0 || len(l)-len(rest) < least) {
			least = len(l) - len(rest)
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(l[min(max(least, 0), len(l)):] + "\n")
	}
	return b.String()
}
