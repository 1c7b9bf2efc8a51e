package action

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Code is how a call ended on one node.
type Code uint8

// The codes. The first six are MCollective's, of nodes that answered.
const (
	Done          Code = iota // 0
	Aborted                   // 1: the action itself failed, or the node's owner does not allow it
	UnknownAction             // 2
	MissingData               // 3
	InvalidData               // 4
	Other                     // 5
	Offline                   // no agent of the node is connected: it was not asked
	Denied                    // who asks may not: it was not asked
	Silent                    // it was asked, and nothing came in time: what it did is not known
	Left                      // its connection ended before it answered: what it did is not known
	Unasked                   // the call ended before it was asked
)

var codeNames = []string{"ok", "aborted", "unknown action", "missing data", "invalid data", "error", "offline", "denied", "no answer", "left", "not asked"}

// String is the code's name for people and programs.
func (c Code) String() string { return codeNames[min(int(c), len(codeNames)-1)] }

// Answered says whether the node said so itself.
func (c Code) Answered() bool { return c <= Other }

// MarshalText implements encoding.TextMarshaler.
func (c Code) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Code) UnmarshalText(text []byte) error {
	i := slices.Index(codeNames, string(text))
	if i < 0 {
		return fault.New(fault.Invalid, "field state: %.40q is no state of an answer", text)
	}
	*c = Code(i) //nolint:gosec // there are not many names
	return nil
}

// Answer is what came of a call on one node.
type Answer struct {
	Node    fleet.Certname `json:"node"`
	Code    Code           `json:"state"`
	Message string         `json:"message,omitzero"` // why there are no results; empty when all went well
	Data    jsontext.Value `json:"data,omitzero"`    // results, with Done and perhaps with Aborted
	Millis  float64        `json:"milliseconds,omitzero"`
}

// Visible says whether people see the answer by a display rule.
func (a Answer) Visible(d Display) bool {
	return d == Always || (a.Code == Done) == (d == OK)
}

// Same is nodes that gave the same answer.
type Same struct {
	Code    Code
	Message string
	Data    jsontext.Value
	Nodes   []fleet.Certname // sorted
}

// Fold puts the same answers together: the largest group first, then by the first node. Two answers are the same if state, message and data are;
// the order of keys in data does not count.
func Fold(answers []Answer) []Same {
	type key struct {
		code    Code
		message string
		data    [sha256.Size]byte
	}
	groups := map[key]*Same{}
	for _, a := range answers {
		data := canonical(a.Data)
		k := key{a.Code, a.Message, sha256.Sum256(data)}
		if groups[k] == nil {
			groups[k] = &Same{Code: a.Code, Message: a.Message, Data: data}
		}
		groups[k].Nodes = append(groups[k].Nodes, a.Node)
	}
	var folded []Same
	for _, g := range groups {
		slices.Sort(g.Nodes)
		folded = append(folded, *g)
	}
	slices.SortFunc(folded, func(a, b Same) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Nodes[0], b.Nodes[0]))
	})
	return folded
}

// canonical is JSON in its one form; what is no JSON stays as it is.
func canonical(data jsontext.Value) jsontext.Value {
	value := jsontext.Value(bytes.Clone(data))
	if len(value) > 0 && value.Canonicalize() != nil {
		return data
	}
	return value
}
