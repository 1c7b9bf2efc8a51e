package wire

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
)

// The bounds of an envelope.
const (
	MaxTypeBytes = 256
	MaxIDBytes   = 64
	MaxTargets   = 1000 // of a PCP 1 message, which lists them; more than one is refused later
)

// Message is one PCP message.
type Message struct {
	ID        string         // a UUID, unique
	Type      string         // see the constants in control.go
	Sender    URI            // empty: who owns the connection; from a broker: the broker
	Target    URI            // empty: the broker
	InReplyTo string         // the ID of another message, or empty
	Data      jsontext.Value // nil: none, which is not the same as null

	// Others is the targets after the first one of a PCP 1 message. Brokers
	// refuse them; PCP 2 cannot say them.
	Others []URI
}

// Check returns an Invalid fault for the first field of the wrong shape. Data has been
// looked at by whoever made it.
func (m Message) Check() error {
	if !isUUID(m.ID) {
		return fault.New(fault.Invalid, "field id: %.80q is not a UUID", m.ID)
	}
	if m.Type == "" || len(m.Type) > MaxTypeBytes {
		return fault.New(fault.Invalid, "field message_type: it has %d bytes, 1 to %d are allowed", len(m.Type), MaxTypeBytes)
	}
	if m.InReplyTo != "" && !isUUID(m.InReplyTo) {
		return fault.New(fault.Invalid, "field in_reply_to: %.80q is not a UUID", m.InReplyTo)
	}
	if len(m.Others) >= MaxTargets {
		return fault.New(fault.Invalid, "field targets: it has %d elements, at most %d are allowed", len(m.Others)+1, MaxTargets)
	}
	for _, field := range []struct {
		name string
		uris []URI
	}{{"sender", []URI{m.Sender}}, {"target", []URI{m.Target}}, {"targets", m.Others}} {
		if err := checkURIs(field.name, field.uris); err != nil {
			return err
		}
	}
	return nil
}

// checkURIs lets empty ones pass: they have a meaning.
func checkURIs(field string, uris []URI) error {
	for _, uri := range uris {
		if uri == "" {
			continue
		}
		if _, err := ParseURI(string(uri)); err != nil {
			return fault.New(fault.Invalid, "field %s: %s", field, fault.Detail(err))
		}
	}
	return nil
}

// isUUID is as lenient as the original broker: five groups of hexadecimal digits.
func isUUID(s string) bool {
	groups, digits := 1, 0
	for i := range len(s) {
		c := s[i]
		switch {
		case c == '-' && digits > 0:
			groups, digits = groups+1, 0
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			digits++
		default:
			return false
		}
	}
	return groups == 5 && digits > 0 && len(s) <= MaxIDBytes
}

// IsPlain tells that s holds only what rules about types and targets can be
// written for: letters, digits, and _ - . : / *. A byte 0 has slipped past rules before.
func IsPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '_', c == '-', c == '.', c == ':', c == '/', c == '*':
		default:
			return false
		}
	}
	return true
}
