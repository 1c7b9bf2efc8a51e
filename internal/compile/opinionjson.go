package compile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The comparison reads documents in its own way: it must not share the mistakes of Normalise and of what
// reads stored documents.

// jsonObject is an object whose keys are in the order in which they were written.
type jsonObject struct {
	keys   []string
	values map[string]any
}

// get is a member; nil if there is none.
func (o *jsonObject) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

func (o *jsonObject) text(key string) string {
	s, _ := o.get(key).(string)
	return s
}

func (o *jsonObject) object(key string) *jsonObject {
	found, _ := o.get(key).(*jsonObject)
	return found
}

func (o *jsonObject) list(key string) []any {
	found, _ := o.get(key).([]any)
	return found
}

// readJSON decodes a text whole.
func readJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	value, err := readValue(decoder)
	if err == nil && decoder.More() {
		err = fmt.Errorf("something follows the JSON value at byte %d", decoder.InputOffset())
	}
	return value, err
}

func readValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			item, err := readValue(decoder)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err = decoder.Token()
		return list, err
	case json.Delim('{'):
		return readObject(decoder)
	}
	return token, nil
}

func readObject(decoder *json.Decoder) (*jsonObject, error) {
	found := &jsonObject{values: map[string]any{}}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		name, _ := key.(string) // a decoder gives no other key
		if _, twice := found.values[name]; !twice {
			found.keys = append(found.keys, name)
		}
		found.values[name] = value
	}
	_, err := decoder.Token()
	return found, err
}

// sameValue compares with the order of lists and of keys.
func sameValue(a, b any) bool {
	switch a := a.(type) {
	case *jsonObject:
		b, ok := b.(*jsonObject)
		return ok && slices.Equal(a.keys, b.keys) && !slices.ContainsFunc(a.keys, func(key string) bool { return !sameValue(a.values[key], b.values[key]) })
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	}
	switch b.(type) {
	case *jsonObject, []any:
		return false
	}
	return a == b
}

// sameSet compares lists of texts without their order.
func sameSet(a, b any) bool {
	sorted := func(value any) ([]string, bool) {
		list, ok := value.([]any)
		texts := make([]string, len(list))
		for i, item := range list {
			texts[i] = fmt.Sprint(item)
		}
		slices.Sort(texts)
		return texts, ok || value == nil
	}
	x, xok := sorted(a)
	y, yok := sorted(b)
	return xok && yok && slices.Equal(x, y)
}

// shownValue is a value in one line.
func shownValue(value any) string {
	var out strings.Builder
	writeValue(&out, value)
	return cut(out.String())
}

// maxShownValue is how much of a value a difference shows, in bytes.
const maxShownValue = 300

func cut(text string) string {
	if len(text) > maxShownValue {
		return strings.ToValidUTF8(text[:maxShownValue], "") + "…"
	}
	return text
}

func writeValue(out *strings.Builder, value any) {
	if out.Len() > 4*maxShownValue {
		return // it is cut
	}
	switch v := value.(type) {
	case *jsonObject:
		out.WriteString("{")
		for i, key := range v.keys {
			if i > 0 {
				out.WriteString(", ")
			}
			fmt.Fprintf(out, "%q: ", key)
			writeValue(out, v.values[key])
		}
		out.WriteString("}")
	case []any:
		out.WriteString("[")
		for i, item := range v {
			if i > 0 {
				out.WriteString(", ")
			}
			writeValue(out, item)
		}
		out.WriteString("]")
	case string:
		fmt.Fprintf(out, "%q", v)
	case nil:
		out.WriteString("null")
	default:
		fmt.Fprint(out, v)
	}
}
