package puppet

import (
	"time"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/facts"
)

// factsPut stores facts that come apart from a catalog request.
func (s *server) factsPut(c *call) error {
	body, err := c.readDocument("the facts are", s.MaxFactsBytes, s.BodyTimeout)
	if err != nil {
		return err
	}
	told, err := s.told(c, body)
	if err != nil {
		return err
	}
	if err := s.Checkin.SaveFacts(c.ctx(), checkin.Request{Node: c.node, Requested: c.env, Certificate: c.ownCertificate(), Facts: &told}); err != nil {
		return err
	}
	return c.document(formatJSON, []byte("null"))
}

// told reads facts of the node that they are said to be of.
func (s *server) told(c *call, body string) (facts.Told, error) {
	told, err := facts.Parse(body)
	if err != nil {
		return told, err
	}
	if told.Certname != c.node {
		return told, badRequest("%s for %q was requested with fact definition for the wrong node (%q)", asked(c), string(c.node), string(told.Certname))
	}
	s.compareClocks(c, told)
	return told, nil
}

// maxClockGap is how far a node's clock may be off before the log says so.
// Facts are a few minutes old at most when they arrive.
const maxClockGap = 10 * time.Minute

// compareClocks tells of a node whose clock is off. Nothing here depends on it,
// but its certificate, its reports and whoever reads them do.
func (s *server) compareClocks(c *call, told facts.Told) {
	if gap := s.Now().Sub(told.Timestamp).Round(time.Second); !told.Timestamp.IsZero() && gap.Abs() > maxClockGap {
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
