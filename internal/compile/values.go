package compile

import (
	"encoding/json"
	"strings"

	"github.com/tutti-project/tutti/internal/catalog"
	"github.com/tutti-project/tutti/internal/fleet"
)

// values finds facts, trusted data and server facts of an order by JSON pointers.
type values struct {
	roots map[string]json.RawMessage
	known map[string]map[string][]byte // members of objects, by the pointer of each
}

func newValues(o Order) *values {
	v := &values{known: map[string]map[string][]byte{}, roots: map[string]json.RawMessage{
		"/facts": o.Facts, "/trusted": o.Trusted, "/server_facts": o.ServerFacts,
	}}
	return v
}

// value says what a pointer leads to.
func (v *values) value(pointer string, seen bool) Value {
	out := Value{Pointer: pointer, Seen: seen}
	if parent, ok := strings.CutSuffix(pointer, "/"); seen && ok { // which members there are
		out.Digest = string(fleet.DigestOf([]byte(strings.Join(v.names(parent), "\n"))))
		return out
	}
	found := v.find(pointer)
	switch {
	case found == nil:
	case seen:
		out.Digest = "present"
	default:
		out.Digest = string(fleet.DigestOf(found))
	}
	return out
}

// find is the JSON that a pointer leads to; nil when there is none.
func (v *values) find(pointer string) []byte {
	at := strings.LastIndexByte(pointer, '/')
	if at < 0 {
		return nil
	}
	if at == 0 {
		root, known := v.roots[pointer]
		if !known {
			return nil
		}
		compacted, err := catalog.Compact("value", root)
		if err != nil {
			return nil
		}
		return compacted
	}
	return v.members(pointer[:at])[unescape(pointer[at+1:])]
}

// members are those of the object that a pointer leads to; none of anything else.
func (v *values) members(pointer string) map[string][]byte {
	if known, ok := v.known[pointer]; ok {
		return known
	}
	object, found := v.find(pointer), map[string][]byte{}
	if len(object) > 0 && object[0] == '{' {
		for m := range catalog.Members(object) {
			found[catalog.Unquoted(m.Name)] = m.Value // of two with one name the last one counts, as for Ruby
		}
	}
	v.known[pointer] = found
	return found
}

// names are those of the members, in their order: code can see it.
func (v *values) names(pointer string) []string {
	object, names := v.find(pointer), []string(nil)
	if len(object) > 0 && object[0] == '{' {
		for m := range catalog.Members(object) {
			names = append(names, catalog.Unquoted(m.Name))
		}
	}
	return names
}

func unescape(part string) string {
	if !strings.Contains(part, "~") {
		return part
	}
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}
