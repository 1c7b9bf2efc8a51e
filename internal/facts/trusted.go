package facts

import (
	"bytes"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/facts/scan"
)

// Trusted is the name under which servers store, with a node's facts, what its
// certificate proves of it. Puppet Servers with PuppetDB do so, and queries read it
// as "trusted". It is no fact that a catalog may be compiled with: there $trusted is
// a word of its own.
const Trusted = "trusted"

// WithTrusted returns canonical facts with trusted, a JSON object, in place of what
// the node itself may have sent under that name.
func WithTrusted(values, trusted json.RawMessage) (json.RawMessage, error) {
	trusted, _, err := Canonical(trusted)
	if err != nil {
		return nil, err
	}
	return setFact(values, Trusted, trusted)
}

// WithoutTrusted returns canonical facts without what servers add.
func WithoutTrusted(values json.RawMessage) (json.RawMessage, error) {
	if !hasTrusted(values) {
		return values, nil
	}
	return setFact(values, Trusted, nil)
}

// hasTrusted is false only if there is no such fact: a name within others is no matter.
func hasTrusted(values json.RawMessage) bool {
	return bytes.Contains(values, []byte(`"`+Trusted+`":`))
}

// arrangementWithoutTrusted is the arrangement of the facts that s is at, without Trusted.
func arrangementWithoutTrusted(s scan.Scanner) (string, error) {
	out := []byte{'{'}
	err := s.Object(func(key string) error {
		raw, err := s.Raw()
		if key != Trusted {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(scan.AppendQuoted(out, key), ':'), raw...)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	c := scan.Canonical{Scanner: &scan.Scanner{What: s.What, Src: string(append(out, '}'))}, Limit: MaxLeaves, Order: &scan.Arrangement{}}
	err = c.Value()
	return c.Order.Text(), err
}

// setFact puts one fact into canonical values, or takes it out if value is nil.
func setFact(values json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	s, err := scan.New("facts", values, MaxBytes)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(values)+len(value)+len(name)+8), '{')
	put := func(key, raw string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(scan.AppendQuoted(out, key), ':'), raw...)
	}
	waits := value != nil
	err = s.Object(func(key string) error {
		raw, err := s.Raw()
		if waits && key >= name {
			put(name, string(value))
			waits = false
		}
		if key != name {
			put(key, raw)
		}
		return err
	})
	if err == nil {
		err = s.End()
	}
	if waits {
		put(name, string(value))
	}
	return append(out, '}'), err
}
