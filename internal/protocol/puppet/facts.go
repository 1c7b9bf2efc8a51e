package puppet

import (
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/inventory"
)

// factsPut stores facts that come apart from a catalog request.
func (s *server) factsPut(c *call) error {
	body, err := s.readDocument(c, "the facts are", s.MaxFactsBytes)
	if err != nil {
		return err
	}
	trusted, err := s.Trust.Trusted(c.ctx(), c.node, c.ownCertificate())
	if err != nil {
		return err
	}
	if _, err := s.saveFacts(c, body, trusted); err != nil {
		return err
	}
	return c.document(formatJSON, []byte("null"))
}

// saveFacts stores facts of the node that they are said to be of, and trusted with
// them, if it is known, as Puppet Servers with PuppetDB do.
func (s *server) saveFacts(c *call, body string, trusted json.RawMessage) (inventory.FactSet, error) {
	told, err := facts.Parse(body)
	if err != nil {
		return inventory.FactSet{}, err
	}
	facts := inventory.FactsOf(told)
	if facts.Certname != c.node {
		return inventory.FactSet{}, badRequest("%s for %q was requested with fact definition for the wrong node (%q)",
			asked(c), string(c.node), string(facts.Certname))
	}
	if trusted != nil {
		if facts, err = facts.WithTrusted(trusted); err != nil {
			return inventory.FactSet{}, err
		}
	}
	facts.Environment = c.env
	facts.ReceivedAt, facts.Producer = s.Now(), s.CompilerName
	s.compareClocks(c, facts)
	stored, _, err := s.Facts.SaveFacts(c.ctx(), facts)
	return stored, err
}

// maxClockGap is how far a node's clock may be off before the log says so.
// Facts are a few minutes old at most when they arrive.
const maxClockGap = 10 * time.Minute

// compareClocks tells of a node whose clock is off. Nothing here depends on it,
// but its certificate, its reports and whoever reads them do.
func (s *server) compareClocks(c *call, facts inventory.FactSet) {
	if gap := facts.ReceivedAt.Sub(facts.Timestamp).Round(time.Second); !facts.Timestamp.IsZero() && gap.Abs() > maxClockGap {
		s.Log.WarnContext(c.ctx(), "the node's clock is off, or its facts are old", "node", c.node, "behind", gap)
	}
}

// asked names the route as Puppet does in its messages.
func asked(c *call) string {
	if c.route == "catalog" {
		return "Catalog"
	}
	return "Storage of facts"
}
