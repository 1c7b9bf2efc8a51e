package scan

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Nullable reads a string, or null as the empty one.
func (s *Scanner) Nullable(field string) (string, error) {
	if s.IsNull() {
		return "", nil
	}
	if s.Peek() != '"' {
		return "", s.Unexpected("a string for \"" + field + "\"")
	}
	return s.String()
}

// ParseTime reads the forms of ISO 8601 that Ruby writes.
func ParseTime(text string) (time.Time, error) {
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

// List calls element for each element of an array; null is an empty one.
func (s *Scanner) List(field string, element func() error) error {
	if s.IsNull() {
		return nil
	}
	if s.Peek() != '[' {
		return s.Unexpected("a list for \"" + field + "\"")
	}
	return s.Array(element)
}

// Text reads a string; null leaves it empty.
func (s *Scanner) Text(to *string, field string) (err error) {
	*to, err = s.Nullable(field)
	return err
}

// Texts reads a list of strings.
func (s *Scanner) Texts(to *[]string, field string) error {
	return s.List(field, func() error {
		text, err := s.Nullable(field)
		*to = append(*to, text)
		return err
	})
}

// Boolean reads true or false; null leaves it as it is.
func (s *Scanner) Boolean(to *bool, field string) error {
	switch s.Peek() {
	case 't':
		*to = true
		_, err := s.literal("true")
		return err
	case 'f':
		*to = false
		_, err := s.literal("false")
		return err
	case 'n':
		_, err := s.literal("null")
		return err
	default:
		return s.Unexpected("true or false for \"" + field + "\"")
	}
}

// Float reads a number; null leaves it as it is.
func (s *Scanner) Float(to *float64, field string) error {
	if s.IsNull() {
		return nil
	}
	text, err := s.Scalar()
	if err != nil {
		return err
	}
	if *to, err = strconv.ParseFloat(text, 64); err != nil {
		return s.Fail("\"%s\" is %.40q, not a number", field, text)
	}
	return nil
}

// Integer reads a whole number, also a quoted one; null leaves it as it is.
func (s *Scanner) Integer(to *int, field string) error {
	if s.IsNull() {
		return nil
	}
	if s.Peek() == '"' { // old agents quote line numbers
		text, err := s.String()
		if err == nil {
			if *to, err = strconv.Atoi(text); err != nil {
				err = s.Fail("\"%s\" is %.40q, not a whole number", field, text)
			}
		}
		return err
	}
	text, err := s.Scalar()
	if err != nil {
		return err
	}
	if *to, err = strconv.Atoi(text); err != nil {
		return s.Fail("\"%s\" is %.40q, not a whole number", field, text)
	}
	return nil
}

// Time reads an ISO 8601 time; null leaves it as it is.
func (s *Scanner) Time(to *time.Time, field string) error {
	text, err := s.Nullable(field)
	if err != nil || text == "" {
		return err
	}
	if *to, err = ParseTime(text); err != nil {
		return s.Fail("\"%s\" is %.40q, not an ISO 8601 time", field, text)
	}
	return nil
}

// Integer64 reads a whole number.
func (s *Scanner) Integer64(to *int64, field string) error {
	c := s.Peek()
	if c != '-' && (c < '0' || c > '9') {
		return s.Unexpected("a whole number for \"" + field + "\"")
	}
	text, err := s.Scalar()
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), to); err != nil {
		return s.Fail("\"%s\" is no whole number below 2^63", field)
	}
	return nil
}

// Digest reads a digest; null leaves it as it is.
func (s *Scanner) Digest(to *fleet.Digest, field string) error {
	text, err := s.Nullable(field)
	if err != nil || text == "" {
		return err
	}
	if *to, err = fleet.ParseDigest(text); err != nil {
		return fault.Wrap(fault.Invalid, err, "%q: %s", field, fault.Detail(err))
	}
	return nil
}
