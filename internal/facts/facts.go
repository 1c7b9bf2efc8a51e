package facts

import (
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Bounds of a fact set. Puppet's agent warns from 2 048 facts and 16 MiB on.
const (
	MaxBytes  = 16 << 20
	MaxLeaves = 100_000
)

// Told is what a node told of itself at one time.
type Told struct {
	Certname    fleet.Certname
	Values      json.RawMessage // one JSON object in canonical form: fact name to value
	Arrangement string          // how Values came; see Arranged
	Digest      fleet.Digest    // of Values
	Timestamp   time.Time       // by the node's clock
}

// Parse reads the facts object that agents send, in JSON or PSON:
// {"name", "values", "timestamp", "expiration"}. It returns an Invalid fault that
// says what is wrong and where. Of a string, the name is a part.
func Parse[T string | []byte](body T) (Told, error) {
	s, err := scan.New("facts", body, MaxBytes)
	if err != nil {
		return Told{}, err
	}
	var set Told
	var name, stamp string
	err = s.Object(func(key string) (err error) {
		switch key {
		case "name":
			name, err = s.Nullable("name")
		case "timestamp":
			stamp, err = s.Nullable("timestamp")
		case "values":
			set.Values, set.Arrangement, err = ParseValues(s)
		default:
			err = s.Skip()
		}
		return err
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return Told{}, err
	}
	return finishFacts(set, name, stamp)
}

func finishFacts(set Told, name, stamp string) (Told, error) {
	if set.Values == nil {
		return Told{}, fault.New(fault.Invalid, "the facts have no \"values\" object")
	}
	certname, err := fleet.ParseCertname(name)
	if err != nil {
		return Told{}, fault.Wrap(fault.Invalid, err, "the facts' \"name\": %s", fault.Detail(err))
	}
	if stamp != "" {
		if set.Timestamp, err = scan.ParseTime(stamp); err != nil {
			return Told{}, fault.New(fault.Invalid, "the facts' \"timestamp\" %.40q is not an ISO 8601 time", stamp)
		}
	}
	set.Certname, set.Digest = certname, fleet.DigestOf(set.Values)
	return set, nil
}

// Canonical brings a JSON object of facts into canonical form, and says how they were
// arranged (see Arranged).
func Canonical(values json.RawMessage) (canonical json.RawMessage, arrangement string, err error) {
	s, err := scan.New("facts", values, MaxBytes)
	if err != nil {
		return nil, "", err
	}
	canonical, arrangement, err = ParseValues(s)
	if err == nil {
		err = s.End()
	}
	return canonical, arrangement, err
}

// Names lists the names of canonical facts, sorted.
func Names(values json.RawMessage) (names []string, err error) {
	err = eachMember(string(values), func(name, _ string) bool {
		names = append(names, name)
		return true
	})
	return names, err
}

// ParseValues reads an object of facts, which is next in s, as Canonical does.
func ParseValues(s *scan.Scanner) (canonical json.RawMessage, arrangement string, err error) {
	if s.Peek() != '{' {
		return nil, "", s.Unexpected("an object of facts")
	}
	start, depth := s.Pos, s.Depth
	c := scan.Canonical{Scanner: s, Out: make([]byte, 0, len(s.Src)-s.Pos), Limit: MaxLeaves, Order: &scan.Arrangement{}}
	if err := c.Value(); err != nil {
		return nil, "", err
	}
	if !hasTrusted(c.Out) {
		return c.Out, c.Order.Text(), nil
	}
	arrangement, err = arrangementWithoutTrusted(scan.Scanner{What: s.What, Src: s.Src[:s.Pos], Pos: start, Depth: depth})
	return c.Out, arrangement, err
}
