package inventory

import (
	"encoding/json"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
)

// FactsOf is what a node told, as it is stored.
func FactsOf(told facts.Told) FactSet {
	return FactSet{Certname: told.Certname, Values: told.Values, Arrangement: told.Arrangement, Digest: told.Digest, Timestamp: told.Timestamp}
}

// WithTrusted returns the facts with trusted, a JSON object, in place of what the
// node itself may have sent under that name.
func (f FactSet) WithTrusted(trusted json.RawMessage) (FactSet, error) {
	values, err := facts.WithTrusted(f.Values, trusted)
	if err != nil {
		return f, err
	}
	f.Values, f.Digest = values, fleet.DigestOf(values)
	return f, nil
}
