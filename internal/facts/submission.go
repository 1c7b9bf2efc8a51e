package facts

import (
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Submission is what a node's agent says of its facts apart from a run: all of them,
// or how they differ from what the server has.
type Submission struct {
	// Number grows from one submission of a node to the next, for ever: of two the one
	// with the higher number is the newer one, whichever arrives first.
	Number      int64             `json:"number"`
	Timestamp   time.Time         `json:"timestamp,omitzero"`    // when they were looked at, by the node's clock
	Environment fleet.Environment `json:"environment,omitempty"` // that the node asks for
	Watched     fleet.Digest      `json:"watched,omitempty"`     // of the list of watched paths that the agent has
	Values      json.RawMessage   `json:"values,omitempty"`      // all facts; nil in a difference
	Arrangement string            `json:"arrangement,omitempty"` // of all facts, also in a difference; see Arranged
	Base        fleet.Digest      `json:"base,omitempty"`        // of the values that a difference is against
	Patch
}

// State is what a node is told of its facts.
type State struct {
	Number        int64        `json:"number"` // of the newest submission that was accepted
	Digest        fleet.Digest `json:"digest"` // what a difference has to be against
	Queued        bool         `json:"queued,omitempty"`
	Seq           int64        `json:"seq,omitempty"`
	Changed       int          `json:"changed"` // paths whose values differ from before
	WatchedDigest fleet.Digest `json:"watched_digest"`
	Watched       []string     `json:"watched,omitempty"` // left out if the node has the list
}

// ParseSubmission reads a submission, a whole one or a difference. Values come back
// in canonical form, and without what a node may not say of itself. Invalid names the
// field and its shape.
func ParseSubmission[T string | []byte](body T, whole bool) (Submission, error) {
	s, err := scan.New("submission of facts", body, MaxBytes)
	if err != nil {
		return Submission{}, err
	}
	var sub Submission
	err = s.Object(func(key string) error { return submissionField(s, &sub, key) })
	if err == nil {
		err = s.End()
	}
	if err == nil {
		err = sub.check(whole)
	}
	if err == nil && whole {
		sub.Values, err = WithoutTrusted(sub.Values)
	}
	if err == nil && whole {
		_, err = Arranged(sub.Values, sub.Arrangement)
	}
	return sub, err
}

func submissionField(s *scan.Scanner, sub *Submission, key string) (err error) {
	switch key {
	case "number":
		return s.Integer64(&sub.Number, key)
	case "timestamp":
		var stamp string
		if stamp, err = s.Nullable(key); err != nil || stamp == "" {
			return err
		}
		if sub.Timestamp, err = scan.ParseTime(stamp); err != nil {
			return fault.New(fault.Invalid, "\"timestamp\" %.40q is not an ISO 8601 time", stamp)
		}
	case "environment":
		var name string
		if name, err = s.Nullable(key); err != nil || name == "" {
			return err
		}
		if sub.Environment, err = fleet.ParseEnvironment(name); err != nil {
			return fault.Wrap(fault.Invalid, err, "\"environment\": %s", fault.Detail(err))
		}
	case "watched":
		return s.Digest(&sub.Watched, key)
	case "base":
		return s.Digest(&sub.Base, key)
	case "values":
		var arrangement string
		if sub.Values, arrangement, err = ParseValues(s); sub.Arrangement == "" {
			sub.Arrangement = arrangement
		}
	case "arrangement":
		var arrangement string
		if arrangement, err = s.Nullable(key); arrangement != "" {
			sub.Arrangement = arrangement
		}
	case "changed":
		sub.Changed, err = changedValues(s)
	case "removed":
		err = s.Texts(&sub.Removed, key)
	default:
		err = s.Skip()
	}
	return err
}

func (sub *Submission) check(whole bool) error {
	switch {
	case sub.Number <= 0:
		return fault.New(fault.Invalid, "\"number\" is missing or not above 0: each submission of a node has a higher one than the one before")
	case whole && sub.Values == nil:
		return fault.New(fault.Invalid, "the submission has no \"values\" object with all facts; a difference is sent with PATCH")
	case whole && (sub.Base != "" || !sub.Empty()):
		return fault.New(fault.Invalid, "a whole submission has \"values\" only, not \"base\", \"changed\" or \"removed\"; a difference is sent with PATCH")
	case !whole && sub.Values != nil:
		return fault.New(fault.Invalid, "a difference has no \"values\"; all facts are sent with PUT")
	case !whole && sub.Base == "":
		return fault.New(fault.Invalid, "the difference has no \"base\": the digest that the server answered for the facts it is against")
	}
	return nil
}

// changedValues reads {"/path": value}; all values together are bounded as a set is.
func changedValues(s *scan.Scanner) (map[string]json.RawMessage, error) {
	if s.Peek() != '{' {
		return nil, s.Unexpected("an object from path to value for \"changed\"")
	}
	changed := map[string]json.RawMessage{}
	left := MaxLeaves
	err := s.Object(func(path string) error {
		c := scan.Canonical{Scanner: s, Limit: left}
		if err := c.Value(); err != nil {
			return err
		}
		left -= max(c.Leaves, 1)
		changed[path] = c.Out
		return nil
	})
	return changed, err
}
