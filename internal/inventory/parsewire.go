package inventory

import (
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// PuppetDB calls the content of its commands wire formats: facts, catalogs and
// reports as a Puppet Server sends them on. They say who sends them and when.

// envelope is what every payload has.
type envelope struct {
	certname    string
	environment string
	origin      Origin
	stamped     bool // it says when it was produced
}

// field reads a key of the envelope; false for another key.
func (e *envelope) field(s *scan.Scanner, key string) (bool, error) {
	switch key {
	case "certname":
		return true, s.Text(&e.certname, key)
	case "environment":
		return true, s.Text(&e.environment, key)
	case "producer":
		return true, s.Text(&e.origin.Producer, key)
	case "producer_timestamp":
		err := s.Time(&e.origin.ProducedAt, key)
		e.stamped = !e.origin.ProducedAt.IsZero()
		return true, err
	default:
		return false, nil
	}
}

// check refuses an envelope that lacks something. what is facts, catalog, report.
func (e *envelope) check(what string) (fleet.Certname, fleet.Environment, error) {
	name, err := fleet.ParseCertname(e.certname)
	if err != nil {
		return "", "", fault.Wrap(fault.Invalid, err, "the %s's \"certname\": %s", what, fault.Detail(err))
	}
	if !e.stamped {
		return "", "", fault.New(fault.Invalid, "the %s's \"producer_timestamp\" is missing; it is an ISO 8601 time", what)
	}
	if e.environment == "" {
		return name, "", nil
	}
	env, err := fleet.ParseEnvironment(e.environment)
	if err != nil {
		err = fault.Wrap(fault.Invalid, err, "the %s's \"environment\": %s", what, fault.Detail(err))
	}
	return name, env, err
}

// Bounds of a list of packages.
const (
	maxPackages    = 50_000
	maxPackageText = 600 // of each of its three texts; databases index them together
)

// ParseWireFacts reads the payload of replace_facts, versions 4 and 5: {"certname",
// "environment", "producer_timestamp", "producer", "values", "package_inventory"}.
// ReceivedAt and Seq are left to the caller.
func ParseWireFacts[T string | []byte](body T) (FactSet, error) {
	s, err := scan.New("facts", body, facts.MaxBytes)
	if err != nil {
		return FactSet{}, err
	}
	var set FactSet
	var e envelope
	err = s.Object(func(key string) (err error) {
		if known, err := e.field(s, key); known {
			return err
		}
		switch key {
		case "values":
			set.Values, set.Arrangement, err = facts.ParseValues(s)
		case "package_inventory":
			err = s.List(key, func() error { return packageRow(s, &set.Packages) })
		default:
			err = s.Skip()
		}
		return err
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return FactSet{}, err
	}
	if set.Values == nil {
		return FactSet{}, fault.New(fault.Invalid, "the facts have no \"values\" object")
	}
	if set.Certname, set.Environment, err = e.check("facts"); err != nil {
		return FactSet{}, err
	}
	set.Origin, set.Timestamp, set.Digest = e.origin, e.origin.ProducedAt, fleet.DigestOf(set.Values)
	return set, nil
}

// packageRow reads [name, version, provider].
func packageRow(s *scan.Scanner, to *[]Package) error {
	if len(*to) >= maxPackages {
		return s.Fail("it lists more than %d packages", maxPackages)
	}
	var texts []string
	if s.Peek() != '[' {
		return s.Unexpected("a package like [\"name\", \"version\", \"provider\"]")
	}
	if err := s.Texts(&texts, "package_inventory"); err != nil {
		return err
	}
	if len(texts) != 3 {
		return s.Fail("a package has %d texts, not a name, a version and a provider", len(texts))
	}
	for _, text := range texts {
		if len(text) > maxPackageText {
			return s.Fail("a package's text has more than %d bytes: %.40q", maxPackageText, text)
		}
	}
	*to = append(*to, Package{texts[0], texts[1], texts[2]})
	return nil
}

// NodeWord is what a command says of a node itself.
type NodeWord struct {
	Certname fleet.Certname
	At       time.Time // zero: not told
	Expire   bool      // of configure_expiration: whether its facts may expire
}

// ParseWireDeactivate reads the payload of deactivate_node: {"certname",
// "producer_timestamp"}; in version 2 the name alone, and in version 1 the name as
// JSON inside a string.
func ParseWireDeactivate[T string | []byte](body T, version int) (NodeWord, error) {
	s, err := scan.New("command", body, maxNodeWord)
	if err != nil {
		return NodeWord{}, err
	}
	var e envelope
	if version >= 3 {
		err = s.Object(func(key string) error {
			if known, err := e.field(s, key); known {
				return err
			}
			return s.Skip()
		})
	} else {
		err = s.Text(&e.certname, "payload")
	}
	if err == nil {
		err = s.End()
	}
	if err == nil && version == 1 {
		inner := &scan.Scanner{What: "command", Src: e.certname}
		if err = inner.Text(&e.certname, "payload"); err == nil {
			err = inner.End()
		}
	}
	if err != nil {
		return NodeWord{}, err
	}
	return e.word()
}

const maxNodeWord = 64 << 10

// word is the envelope of a command that need not say when it was given.
func (e *envelope) word() (NodeWord, error) {
	e.stamped = true
	name, _, err := e.check("command")
	return NodeWord{Certname: name, At: e.origin.ProducedAt}, err
}

// ParseWireExpiration reads the payload of configure_expiration: {"certname",
// "producer_timestamp", "expire": {"facts": true or false}}.
func ParseWireExpiration[T string | []byte](body T) (NodeWord, error) {
	s, err := scan.New("command", body, maxNodeWord)
	if err != nil {
		return NodeWord{}, err
	}
	var e envelope
	told, expire := false, false
	err = s.Object(func(key string) error {
		if known, err := e.field(s, key); known {
			return err
		}
		if key != "expire" {
			return s.Skip()
		}
		return s.Object(func(key string) error {
			if key != "facts" {
				return s.Fail("\"expire\" holds %.40q; it is like {\"facts\": false}", key)
			}
			told = !s.IsNull()
			if !told {
				return nil
			}
			return s.Boolean(&expire, "facts")
		})
	})
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return NodeWord{}, err
	}
	if !told {
		return NodeWord{}, fault.New(fault.Invalid, "the command has no \"expire\" like {\"facts\": false}")
	}
	word, err := e.word()
	word.Expire = expire
	return word, err
}
