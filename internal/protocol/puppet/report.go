package puppet

import "github.com/tutti-project/tutti/internal/inventory"

// reportPut stores the report of a run. Agents ignore the answer's body; it
// names the report processors, as Puppet Server does.
func (s *server) reportPut(c *call) error {
	body, err := c.readDocument("the report is", s.MaxReportBytes, s.BodyTimeout)
	if err != nil {
		return err
	}
	report, err := inventory.ParseReport(body)
	if err != nil {
		return err
	}
	if report.Certname != c.node {
		return badRequest("the report of %q was sent as that of %q", string(report.Certname), string(c.node))
	}
	if report.Environment == "" {
		report.Environment = c.env
	}
	report.ReceivedAt, report.Producer = s.Now(), s.CompilerName
	if err := s.Reports.SaveReport(c.ctx(), report); err != nil {
		return err
	}
	return c.document(formatJSON, []byte(`["store"]`))
}
