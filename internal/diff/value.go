package diff

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// value is one decoded JSON value. Numbers keep their digits, objects the order of
// their keys; of equal keys the last one counts.
type value struct {
	kind  jsontext.Kind // 'n' 'f' 't' '"' '0' '{' '['
	text  string        // of a string or number
	keys  []string
	items []*value       // of an array, or under the keys of an object
	index map[string]int // of keys
}

// maxDepth is how deep values may be nested.
const maxDepth = 200

var errTooDeep = errors.New("values are nested too deep")

// newDecoder reads JSON as Ruby writes it, which looks neither at duplicate keys
// nor at the encoding of strings.
func newDecoder(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// decode reads one value; raw was cut by a decoder, so it is valid.
func decode(raw jsontext.Value) (*value, error) {
	return decodeNext(newDecoder(raw), 0)
}

func decodeNext(dec *jsontext.Decoder, depth int) (*value, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	token, err := dec.ReadToken()
	if err != nil {
		return nil, err
	}
	v := &value{kind: token.Kind()}
	switch v.kind {
	case '"', '0':
		v.text = token.String()
	case '[':
		return v, v.decodeItems(dec, depth)
	case '{':
		return v, v.decodeMembers(dec, depth)
	}
	return v, nil
}

func (v *value) decodeItems(dec *jsontext.Decoder, depth int) error {
	for dec.PeekKind() != ']' {
		item, err := decodeNext(dec, depth+1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
	}
	_, err := dec.ReadToken()
	return err
}

func (v *value) decodeMembers(dec *jsontext.Decoder, depth int) error {
	v.index = map[string]int{}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		item, err := decodeNext(dec, depth+1)
		if err != nil {
			return err
		}
		if i, twice := v.index[key]; twice {
			v.items[i] = item
			continue
		}
		v.index[key] = len(v.keys)
		v.keys, v.items = append(v.keys, key), append(v.items, item)
	}
	_, err := dec.ReadToken()
	return err
}

// member is what an object has under a key; nil for nothing.
func (v *value) member(key string) *value {
	if i, there := v.index[key]; there {
		return v.items[i]
	}
	return nil
}

// append writes v as JSON: with the keys of objects in their order, or sorted, in
// which case equal values are equal bytes.
func (v *value) append(out []byte, sorted bool) []byte {
	switch v.kind {
	case '"':
		out, _ = jsontext.AppendQuote(out, v.text) // an error only says that bytes were replaced by U+FFFD
		return out
	case '0':
		return append(out, v.text...)
	case '[':
		out = append(out, '[')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.append(out, sorted)
		}
		return append(out, ']')
	case '{':
		return v.appendMembers(out, sorted)
	case 't':
		return append(out, "true"...)
	case 'f':
		return append(out, "false"...)
	default:
		return append(out, "null"...)
	}
}

func (v *value) appendMembers(out []byte, sorted bool) []byte {
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if sorted {
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.keys[a], v.keys[b]) })
	}
	out = append(out, '{')
	for n, i := range order {
		if n > 0 {
			out = append(out, ',')
		}
		out, _ = jsontext.AppendQuote(out, v.keys[i]) // as above
		out = v.items[i].append(append(out, ':'), sorted)
	}
	return append(out, '}')
}

// canonical is v as JSON in which equal values are equal texts.
func (v *value) canonical() string { return string(v.append(nil, true)) }

// plain is v as JSON with keys in their order.
func (v *value) plain() string { return string(v.append(nil, false)) }

// strings calls f for every string in v, keys too, until it returns false.
func (v *value) strings(f func(string) bool) bool {
	if v.kind == '"' && !f(v.text) {
		return false
	}
	for _, key := range v.keys {
		if !f(key) {
			return false
		}
	}
	for _, item := range v.items {
		if !item.strings(f) {
			return false
		}
	}
	return true
}
