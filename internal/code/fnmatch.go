package code

import "unicode/utf8"

// fnmatch tells whether name (one path component) matches a pattern the way
// Ruby's File.fnmatch does without flags: * ? [set] and backslash, and a leading
// dot only by a dot. It never takes more than len(pattern)*len(name) steps.
func fnmatch(pattern, name string) bool {
	if len(name) > 0 && name[0] == '.' && !startsWithDot(pattern) {
		return false
	}
	var starPattern, starName int // where to go on after a * took one character more
	star := false
	p, n := 0, 0
	for n < len(name) {
		if p < len(pattern) && pattern[p] == '*' {
			star, starPattern, starName = true, p+1, n
			p++
			continue
		}
		if pn, nn, ok := matchOne(pattern, p, name, n); ok {
			p, n = pn, nn
			continue
		}
		if !star {
			return false
		}
		_, width := utf8.DecodeRuneInString(name[starName:])
		starName += width
		p, n = starPattern, starName
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return pattern[p:] == "" || pattern[p:] == `\`
}

func startsWithDot(pattern string) bool {
	return len(pattern) > 0 && pattern[0] == '.' || len(pattern) > 1 && pattern[0] == '\\' && pattern[1] == '.'
}

// matchOne matches one pattern element (not a star) with one character.
func matchOne(pattern string, p int, name string, n int) (nextP, nextN int, ok bool) {
	if p >= len(pattern) {
		return 0, 0, false
	}
	char, width := utf8.DecodeRuneInString(name[n:])
	switch pattern[p] {
	case '?':
		return p + 1, n + width, true
	case '[':
		end, in := matchSet(pattern, p+1, char)
		return end, n + width, in
	case '\\':
		if p++; p == len(pattern) { // nothing is escaped
			return 0, 0, false
		}
	}
	want, wantWidth := utf8.DecodeRuneInString(pattern[p:])
	return p + wantWidth, n + width, want == char
}

// matchSet matches a bracket expression that starts at p; an unclosed one
// matches nothing.
func matchSet(pattern string, p int, char rune) (end int, in bool) {
	negated := false
	if p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^') {
		negated = true
		p++
	}
	found := false
	for p < len(pattern) && pattern[p] != ']' {
		low, next, ok := setChar(pattern, p)
		if !ok {
			return 0, false
		}
		high := low
		if next+1 < len(pattern) && pattern[next] == '-' && pattern[next+1] != ']' {
			if high, next, ok = setChar(pattern, next+1); !ok {
				return 0, false
			}
		}
		p = next
		found = found || low <= char && char <= high
	}
	if p >= len(pattern) {
		return 0, false
	}
	return p + 1, found != negated
}

func setChar(pattern string, p int) (char rune, next int, ok bool) {
	if pattern[p] == '\\' {
		p++
	}
	if p >= len(pattern) {
		return 0, 0, false
	}
	char, width := utf8.DecodeRuneInString(pattern[p:])
	return char, p + width, true
}
