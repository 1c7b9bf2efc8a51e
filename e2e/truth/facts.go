package truth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Member is one key of an Object and its value.
type Member struct {
	Key   string
	Value any
}

// Object is a JSON object whose keys keep their order.
type Object []Member

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	text.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		key, err := json.Marshal(m.Key)
		if err != nil {
			return nil, fmt.Errorf("encode the key %q: %w", m.Key, err)
		}
		value, err := json.Marshal(m.Value)
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", m.Key, err)
		}
		text.Write(key)
		text.WriteByte(':')
		text.Write(value)
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// With is the object with a value at a path; nil removes what is there.
func (o Object) With(value any, at ...string) Object {
	i := slices.IndexFunc(o, func(m Member) bool { return m.Key == at[0] })
	out := slices.Clone(o)
	if len(at) > 1 {
		inner, _ := o.get(at[0]).(Object)
		value = inner.With(value, at[1:]...)
	}
	switch {
	case i < 0 && value == nil:
		return out
	case i < 0:
		return append(out, Member{at[0], value})
	case value == nil:
		return slices.Delete(out, i, i+1)
	}
	out[i].Value = value
	return out
}

func (o Object) get(key string) any {
	for _, m := range o {
		if m.Key == key {
			return m.Value
		}
	}
	return nil
}

// shuffled is the object with its keys, or those of an object in it, in another order.
func (o Object) shuffled(r *rand.Rand) Object {
	out := slices.Clone(o)
	if r.IntN(2) == 0 {
		for _, i := range r.Perm(len(out)) {
			if inner, ok := out[i].Value.(Object); ok && len(inner) > 1 {
				out[i].Value = inner.shuffled(r)
				return out
			}
		}
	}
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// firstFacts are a node's, in no order that anybody would sort them in.
func firstFacts(name, role string, n int) Object {
	host, _, _ := strings.Cut(name, ".")
	return Object{
		{"role", role},
		{"networking", Object{{"mtu", 1500}, {"ip", fmt.Sprintf("192.0.2.%d", n)}, {"hostname", host}, {"fqdn", name}, {"domain", "example"}}},
		{"os", Object{{"name", "Debian"}, {"family", "Debian"}, {"release", Object{{"minor", "11"}, {"major", "12"}, {"full", "12.11"}}}}},
		{"deep", Object{
			{"z", Object{{"b", []any{1, 2}}, {"a", "deepest"}}},
			{"list", []any{3, "1", 2}},
			{"free", nil},
			{"a", 1.5},
			{"k-e y", true},
			{"inner", []any{Object{{"y", 1}, {"x", 2}}}},
		}},
		{"zones", []any{"b", "a", "c"}},
		{"memory", Object{{"used", 7}, {"free", 12345678901}, {"list", "l"}, {"buffers", 0}}},
		{"is_virtual", n%2 == 0},
		{"odd", Object{{"a.b", "dot"}, {"with/slash", "~"}, {"Größe", "é"}, {"", "empty"}, {"e", Object{}}, {"l", []any{}}}},
		{"kernel", "Linux"},
		{"osfamily", "Debian"},
		{"operatingsystem", "Debian"},
		{"hostname", host},
		{"fqdn", name},
		{"domain", "example"},
		{"ipaddress", fmt.Sprintf("192.0.2.%d", n)},
		{"clientversion", "7.23.0"},
		{"puppetversion", "7.23.0"},
		{"uptime", "1 day"},
	}
}
