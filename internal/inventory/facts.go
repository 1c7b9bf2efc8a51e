package inventory

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Bounds of a fact set. Puppet's agent warns from 2 048 facts and 16 MiB on.
const (
	MaxFactBytes  = 16 << 20
	MaxFactLeaves = 100_000
)

// ParseFacts reads the facts object that agents send, in JSON or PSON:
// {"name", "values", "timestamp", "expiration"}. Values and Digest come back in
// canonical form; Environment, ReceivedAt and Seq are left to the caller. It
// returns an Invalid fault that says what is wrong and where. Of a string,
// the name is a part.
func ParseFacts[T string | []byte](body T) (FactSet, error) {
	s, err := newScanner("facts", body, MaxFactBytes)
	if err != nil {
		return FactSet{}, err
	}
	var set FactSet
	var name, stamp string
	err = s.object(func(key string) (err error) {
		switch key {
		case "name":
			name, err = s.nullable("name")
		case "timestamp":
			stamp, err = s.nullable("timestamp")
		case "values":
			set.Values, set.Arrangement, err = s.factValues()
		default:
			err = s.skip()
		}
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return FactSet{}, err
	}
	return finishFacts(set, name, stamp)
}

func finishFacts(set FactSet, name, stamp string) (FactSet, error) {
	if set.Values == nil {
		return FactSet{}, fault.New(fault.Invalid, "the facts have no \"values\" object")
	}
	certname, err := fleet.ParseCertname(name)
	if err != nil {
		return FactSet{}, fault.Wrap(fault.Invalid, err, "the facts' \"name\": %s", fault.Detail(err))
	}
	if stamp != "" {
		if set.Timestamp, err = parseTime(stamp); err != nil {
			return FactSet{}, fault.New(fault.Invalid, "the facts' \"timestamp\" %.40q is not an ISO 8601 time", stamp)
		}
	}
	set.Certname, set.Digest = certname, fleet.DigestOf(set.Values)
	return set, nil
}

// CanonicalFacts brings a JSON object of facts into canonical form, and says how they were
// arranged (see Arranged).
func CanonicalFacts(values json.RawMessage) (canonical json.RawMessage, arrangement string, err error) {
	s, err := newScanner("facts", values, MaxFactBytes)
	if err != nil {
		return nil, "", err
	}
	canonical, arrangement, err = s.factValues()
	if err == nil {
		err = s.end()
	}
	return canonical, arrangement, err
}

// FactNames lists the names of canonical facts, sorted.
func FactNames(values json.RawMessage) (names []string, err error) {
	err = eachMember(string(values), func(name, _ string) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

func (s *scanner) factValues() (canonical json.RawMessage, arrangement string, err error) {
	if s.peek() != '{' {
		return nil, "", s.unexpected("an object of facts")
	}
	start, depth := s.pos, s.depth
	c := canonicalizer{scanner: s, out: make([]byte, 0, len(s.src)-s.pos), limit: MaxFactLeaves, order: &arranger{}}
	if err := c.value(); err != nil {
		return nil, "", err
	}
	if !hasTrusted(c.out) {
		return c.out, c.order.text(), nil
	}
	arrangement, err = arrangementWithoutTrusted(scanner{what: s.what, src: s.src[:s.pos], pos: start, depth: depth})
	return c.out, arrangement, err
}

// nullable reads a string, or null as the empty one.
func (s *scanner) nullable(field string) (string, error) {
	if s.isNull() {
		return "", nil
	}
	if s.peek() != '"' {
		return "", s.unexpected("a string for \"" + field + "\"")
	}
	return s.str()
}

// parseTime reads the forms of ISO 8601 that Ruby writes.
func parseTime(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err == nil {
		return at.UTC(), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05.999999999Z0700", "2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05 UTC"} {
		if at, other := time.Parse(layout, strings.TrimSpace(text)); other == nil {
			return at.UTC(), nil
		}
	}
	return time.Time{}, err
}
