package pql

import (
	"slices"
	"strings"
)

// Suggestion is what may stand at a place in a query.
type Suggestion struct {
	Text string
	Kind string // entity, field, function, operator, word
}

// Complete lists what may follow the text, which ends where the cursor is. What
// begins like the word that is being written comes alone; so `no` gives nodes.
func Complete(before string) []Suggestion {
	typed := Begun(before)
	start := len(before) - len(typed)
	entity, inBlock := around(before[:start])
	var all []Suggestion
	for _, word := range expectedAfter(before[:start]) {
		all = append(all, suggest(word, entity, inBlock)...)
	}
	var out []Suggestion
	for _, s := range all {
		if strings.HasPrefix(s.Text, typed) && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Begun is the word that is being written at the end of a text, as far as it goes.
func Begun(before string) string {
	start := len(before)
	for start > 0 && (isWord(before[start-1]) || before[start-1] == '?') {
		start--
	}
	return before[start:]
}

// expectedAfter asks the parser what it missed at the end of a text.
func expectedAfter(text string) []string {
	p, err := newParser(text)
	if err != nil {
		return nil
	}
	p.space()
	if _, err := p.query(); err == nil {
		return nil
	}
	if p.furthest < len(strings.TrimRight(text, " \t\r\n")) {
		return nil // a mistake before the cursor
	}
	return anyOf(p.missed)
}

// suggest turns what the parser expects into words to offer.
func suggest(expected string, entity *Entity, inBlock bool) []Suggestion {
	switch {
	case expected == "a field" && entity != nil:
		var out []Suggestion
		for _, f := range entity.Fields {
			if inBlock && (f.Test || f.Nested) || !inBlock && f.Answer {
				out = append(out, Suggestion{f.Name, "field"})
			}
		}
		if !inBlock {
			for _, f := range functions[:6] {
				out = append(out, Suggestion{f + "(", "function"})
			}
		}
		return out
	case LookUp(expected) != nil:
		return []Suggestion{{expected, "entity"}}
	case strings.HasPrefix(expected, "a ") || strings.HasPrefix(expected, "an ") || strings.HasPrefix(expected, "the "):
		return nil
	case isWord(expected[0]):
		return []Suggestion{{expected, "word"}}
	}
	return []Suggestion{{expected, "operator"}}
}

// around finds the entity whose brackets the end of a text is in, and whether
// they are those of a block rather than of a projection.
func around(text string) (entity *Entity, inBlock bool) {
	depth := 0
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case '}', ']':
			depth++
		case '{', '[':
			if depth > 0 {
				depth--
				continue
			}
			if e := entityBefore(text[:i]); e != nil {
				return e, text[i] == '{'
			}
		}
	}
	return nil, false
}

// entityBefore finds the entity that a bracket belongs to, over its projection.
func entityBefore(text string) *Entity {
	text = strings.TrimRight(text, " \t\r\n")
	if strings.HasSuffix(text, "]") {
		if open := strings.LastIndexByte(text, '['); open >= 0 {
			text = strings.TrimRight(text[:open], " \t\r\n")
		}
	}
	start := len(text)
	for start > 0 && isWord(text[start-1]) {
		start--
	}
	return LookUp(text[start:])
}
