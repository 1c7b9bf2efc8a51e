package inventory

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Bounds of a report. A first run of 50 resources with pluginsync sends 390 KB.
const (
	MaxReportBytes = 64 << 20
	maxReportRows  = 200_000 // resources, and log lines
)

// ParseReport reads the report that an agent sends after a run, in JSON or PSON,
// report_format 10 and later; keys it does not know are passed over. ReceivedAt
// is left to the caller. It returns an Invalid fault that says what is wrong and
// where; a report that was cut off is refused. Of a string, the report's texts are
// parts: nothing is copied.
func ParseReport[T string | []byte](body T) (Report, error) {
	s, err := scan.New("report", body, MaxReportBytes)
	if err != nil {
		return Report{}, err
	}
	p := reportParser{Scanner: s}
	if err := p.Object(p.field); err != nil {
		return Report{}, err
	}
	if err := p.End(); err != nil {
		return Report{}, err
	}
	return p.finish()
}

type reportParser struct {
	*scan.Scanner
	report Report
	host   string
	env    string
	slab   []string // lists of strings are cut from it
}

func (p *reportParser) field(key string) error {
	r := &p.report
	switch key {
	case "host":
		return p.Text(&p.host, key)
	case "environment":
		return p.Text(&p.env, key)
	case "time":
		return p.Time(&r.StartedAt, key)
	case "status":
		return p.Text(&r.Status, key)
	case "configuration_version":
		return p.word(&r.ConfigVersion)
	case "transaction_uuid":
		return p.Text(&r.TransactionUUID, key)
	case "catalog_uuid":
		return p.Text(&r.CatalogUUID, key)
	case "code_id":
		return p.Text(&r.CodeID, key)
	case "job_id":
		return p.word(&r.JobID)
	case "cached_catalog_status":
		return p.Text(&r.CachedCatalog, key)
	case "server_used", "master_used":
		return p.Text(&r.Server, key)
	case "puppet_version":
		return p.Text(&r.PuppetVersion, key)
	case "report_format":
		return p.Integer(&r.ReportFormat, key)
	case "noop":
		return p.Boolean(&r.Noop, key)
	case "noop_pending":
		return p.Boolean(&r.NoopPending, key)
	case "corrective_change":
		return p.Boolean(&r.CorrectiveChange, key)
	case "transaction_completed":
		return p.Boolean(&r.Completed, key)
	case "metrics":
		return p.metrics()
	case "logs":
		return p.List(key, p.log)
	case "resource_statuses":
		return p.statuses()
	default:
		return p.Skip()
	}
}

// statuses reads the resources: an object by reference, or a list of its values
// (as the PuppetDB terminus sends them).
func (p *reportParser) statuses() error {
	if p.IsNull() {
		return nil
	}
	likely := 16 + min(len(p.Src)/700, 4096) // Puppet 7 needs 700 bytes for one
	p.report.Resources = make([]ResourceStatus, 0, likely)
	p.slab = slices.Grow(p.slab, 4*likely)
	if p.Peek() == '[' {
		return p.Array(func() error { return p.resource("") })
	}
	return p.Object(p.resource)
}

func (p *reportParser) resource(ref string) error {
	if len(p.report.Resources) >= maxReportRows {
		return p.Fail("it holds more than %d resources", maxReportRows)
	}
	p.report.Resources = append(p.report.Resources, ResourceStatus{})
	r := &p.report.Resources[len(p.report.Resources)-1]
	if err := p.Object(func(key string) error { return p.resourceField(r, key) }); err != nil {
		return err
	}
	if r.Type == "" || r.Title == "" && ref == "" {
		r.Type, r.Title = splitRef(ref)
	}
	if r.Type == "" {
		return p.Fail("resource %.80q has no resource_type", ref)
	}
	p.count(r)
	return nil
}

func (p *reportParser) resourceField(r *ResourceStatus, key string) error {
	switch key {
	case "title":
		return p.Text(&r.Title, key)
	case "resource_type":
		return p.Text(&r.Type, key)
	case "file":
		return p.Text(&r.File, key)
	case "line":
		return p.Integer(&r.Line, key)
	case "containment_path":
		return p.texts(&r.ContainmentPath, key)
	case "evaluation_time":
		return p.Float(&r.EvaluationTime, key)
	case "time":
		return p.Time(&r.Time, key)
	case "skipped":
		return p.Boolean(&r.Skipped, key)
	case "failed":
		return p.Boolean(&r.Failed, key)
	case "failed_to_restart":
		return p.Boolean(&r.FailedToRestart, key)
	case "changed":
		return p.Boolean(&r.Changed, key)
	case "out_of_sync":
		return p.Boolean(&r.OutOfSync, key)
	case "corrective_change":
		return p.Boolean(&r.CorrectiveChange, key)
	case "events":
		return p.List(key, func() error { return p.event(r) })
	default:
		return p.Skip()
	}
}

func (p *reportParser) event(r *ResourceStatus) error {
	var e Event
	err := p.Object(func(key string) error {
		switch key {
		case "property":
			return p.Text(&e.Property, key)
		case "previous_value":
			return p.value(&e.Previous)
		case "desired_value":
			return p.value(&e.Desired)
		case "message":
			return p.word(&e.Message)
		case "name":
			return p.Text(&e.Name, key)
		case "status":
			return p.Text(&e.Status, key)
		case "time":
			return p.Time(&e.Time, key)
		case "corrective_change":
			return p.Boolean(&e.CorrectiveChange, key)
		case "redacted":
			return p.Boolean(&e.Redacted, key)
		default:
			return p.Skip()
		}
	})
	if err == nil {
		r.Events = append(r.Events, e)
	}
	return err
}

func (p *reportParser) log() error {
	if len(p.report.Logs) >= maxReportRows {
		return p.Fail("it holds more than %d log lines", maxReportRows)
	}
	var l RunLog
	err := p.Object(func(key string) error {
		switch key {
		case "level":
			return p.Text(&l.Level, key)
		case "message":
			return p.word(&l.Message)
		case "source":
			return p.Text(&l.Source, key)
		case "tags":
			return p.texts(&l.Tags, key)
		case "time":
			return p.Time(&l.Time, key)
		case "file":
			return p.Text(&l.File, key)
		case "line":
			return p.Integer(&l.Line, key)
		default:
			return p.Skip()
		}
	})
	if err == nil {
		p.report.Logs = append(p.report.Logs, l)
	}
	return err
}

func (p *reportParser) metrics() error {
	if p.IsNull() {
		return nil
	}
	c := scan.Canonical{Scanner: p.Scanner, Limit: maxReportRows}
	if p.Peek() != '{' && p.Peek() != '[' {
		return p.Unexpected("an object of metrics")
	}
	if err := c.Value(); err != nil {
		return err
	}
	p.report.Metrics = c.Out
	return nil
}

// value keeps a value of any type in canonical form.
func (p *reportParser) value(to *json.RawMessage) error {
	c := scan.Canonical{Scanner: p.Scanner, Limit: maxReportRows}
	err := c.Value()
	*to = c.Out
	return err
}

// count adds a resource to the report's sums. Each counts in every column that
// fits; unchanged is what fits no other.
func (p *reportParser) count(r *ResourceStatus) {
	c := &p.report.Counts
	c.Resources++
	noop := false
	for _, e := range r.Events {
		noop = noop || e.Status == "noop"
	}
	plain := true
	for _, each := range []struct {
		holds bool
		count *int
	}{
		{r.Changed && !noop, &c.Changed},
		{r.Failed || r.FailedToRestart, &c.Failed},
		{r.Skipped, &c.Skipped},
		{noop, &c.Noop},
	} {
		if each.holds {
			*each.count++
			plain = false
		}
	}
	if plain {
		c.Unchanged++
	}
	if r.CorrectiveChange {
		c.Corrective++
	}
}

func (p *reportParser) finish() (Report, error) {
	r := p.report
	var err error
	if r.Certname, err = fleet.ParseCertname(p.host); err != nil {
		return Report{}, fault.Wrap(fault.Invalid, err, "the report's \"host\": %s", fault.Detail(err))
	}
	if p.env != "" {
		if r.Environment, err = fleet.ParseEnvironment(p.env); err != nil {
			return Report{}, fault.Wrap(fault.Invalid, err, "the report's \"environment\": %s", fault.Detail(err))
		}
	}
	switch r.Status {
	case "failed", "changed", "unchanged":
	default:
		return Report{}, fault.New(fault.Invalid, "the report's \"status\" is %.40q, not failed, changed or unchanged", r.Status)
	}
	if r.StartedAt.IsZero() {
		return Report{}, fault.New(fault.Invalid, "the report has no \"time\"")
	}
	r.EndedAt = r.end()
	r.ID = r.digest()
	return r, nil
}

// end is the time of the last thing that a report mentions: reports do not say
// themselves when the run ended.
func (r *Report) end() time.Time {
	end := r.StartedAt
	for i := range r.Logs {
		if r.Logs[i].Time.After(end) {
			end = r.Logs[i].Time
		}
	}
	for i := range r.Resources {
		if r.Resources[i].Time.After(end) {
			end = r.Resources[i].Time
		}
	}
	return end
}

// word reads a scalar of any type as text: versions and messages may be numbers.
func (p *reportParser) word(to *string) (err error) {
	switch p.Peek() {
	case '"':
		*to, err = p.String()
	case '{', '[':
		*to, err = p.Raw()
	default:
		if !p.IsNull() {
			*to, err = p.Scalar()
		}
	}
	return err
}

// texts reads a list of strings into the slab: reports hold hundreds of short lists.
func (p *reportParser) texts(to *[]string, field string) error {
	start := len(p.slab)
	err := p.List(field, func() error {
		text, err := p.Nullable(field)
		p.slab = append(p.slab, text)
		return err
	})
	if end := len(p.slab); end > start {
		*to = p.slab[start:end:end]
	}
	return err
}

// splitRef takes "Type[title]" apart.
func splitRef(ref string) (kind, title string) {
	kind, title, ok := strings.Cut(ref, "[")
	if !ok || !strings.HasSuffix(title, "]") {
		return "", ""
	}
	return kind, title[:len(title)-1]
}
