package inventory

import (
	"bytes"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fleet"
)

// TrustedFact is the name under which servers store, with a node's facts, what its
// certificate proves of it. Puppet Servers with PuppetDB do so, and queries read it
// as "trusted". It is no fact that a catalog may be compiled with: there $trusted is
// a word of its own.
const TrustedFact = "trusted"

// WithTrusted returns the facts with trusted, a JSON object, in place of what the
// node itself may have sent under that name.
func (f FactSet) WithTrusted(trusted json.RawMessage) (FactSet, error) {
	trusted, _, err := CanonicalFacts(trusted)
	if err != nil {
		return f, err
	}
	if f.Values, err = setFact(f.Values, TrustedFact, trusted); err != nil {
		return f, err
	}
	f.Digest = fleet.DigestOf(f.Values)
	return f, nil
}

// WithoutTrusted returns canonical facts without what servers add.
func WithoutTrusted(values json.RawMessage) (json.RawMessage, error) {
	if !hasTrusted(values) {
		return values, nil
	}
	return setFact(values, TrustedFact, nil)
}

// hasTrusted is false only if there is no such fact: a name within others is no matter.
func hasTrusted(values json.RawMessage) bool {
	return bytes.Contains(values, []byte(`"`+TrustedFact+`":`))
}

// arrangementWithoutTrusted is the arrangement of the facts that s is at, without TrustedFact.
func arrangementWithoutTrusted(s scanner) (string, error) {
	out := []byte{'{'}
	err := s.object(func(key string) error {
		raw, err := s.raw()
		if key != TrustedFact {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(appendQuoted(out, key), ':'), raw...)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	c := canonicalizer{scanner: &scanner{what: s.what, src: string(append(out, '}'))}, limit: MaxFactLeaves, order: &arranger{}}
	err = c.value()
	return c.order.text(), err
}

// setFact puts one fact into canonical values, or takes it out if value is nil.
func setFact(values json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	s, err := newScanner("facts", values, MaxFactBytes)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(values)+len(value)+len(name)+8), '{')
	put := func(key, raw string) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendQuoted(out, key), ':'), raw...)
	}
	waits := value != nil
	err = s.object(func(key string) error {
		raw, err := s.raw()
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
		err = s.end()
	}
	if waits {
		put(name, string(value))
	}
	return append(out, '}'), err
}
