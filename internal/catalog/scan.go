package catalog

import (
	"bytes"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// These helpers walk JSON that is known to be valid and to hold no spaces: what
// compact gave. They cut, and never copy. On other bytes they end early but do
// not panic.

// Member is one name and value of an object; the name keeps its quotes.
type Member struct{ Name, Value []byte }

// Members walks an object.
func Members(object []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		for i := 1; i < len(object) && object[i] == '"'; i++ {
			n := i + end(object[i:])
			if n+1 >= len(object) {
				return
			}
			v := n + 1 + end(object[n+1:])
			if !yield(Member{object[i:n:n], object[n+1 : v : v]}) {
				return
			}
			i = v
		}
	}
}

// sorted is an object's members by name.
func sorted(object []byte) []Member {
	all := slices.Collect(Members(object))
	slices.SortFunc(all, func(a, b Member) int { return bytes.Compare(a.Name, b.Name) })
	return all
}

// Elements walks an array.
func Elements(array []byte) iter.Seq2[int, []byte] {
	return func(yield func(int, []byte) bool) {
		count := 0
		for i := 1; i < len(array)-1; i++ {
			n := i + end(array[i:])
			if !yield(count, array[i:n:n]) {
				return
			}
			count++
			i = n
		}
	}
}

// end is the length of the value that b begins with.
func end(b []byte) int {
	switch b[0] {
	case '"':
		return endString(b)
	case '{', '[':
		return endNested(b)
	}
	if n := bytes.IndexAny(b, ",]}:"); n > 0 {
		return n
	}
	return len(b)
}

func endString(b []byte) int {
	for i := 1; i < len(b); {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			break
		}
		i += n + 1
		if !escaped(b[:i-1]) {
			return i
		}
	}
	return len(b)
}

// escaped reports whether the byte after b is escaped: b ends in an odd number
// of backslashes.
func escaped(b []byte) bool {
	n := len(b)
	for n > 0 && b[n-1] == '\\' {
		n--
	}
	return (len(b)-n)%2 == 1
}

func endNested(b []byte) int {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			i += endString(b[i:]) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// Unquoted is a name or a text without quotes and escapes.
func Unquoted(quoted []byte) string {
	if name, err := jsontext.AppendUnquote(nil, quoted); err == nil {
		return string(name)
	}
	if name, err := strconv.Unquote(string(quoted)); err == nil {
		return name
	}
	return strings.Trim(string(quoted), `"`)
}
