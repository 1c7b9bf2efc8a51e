package inventory

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tutti-project/tutti/internal/facts/scan"
	"github.com/tutti-project/tutti/internal/fault"
)

// ParseWireReport reads the payload of store_report, versions 5 to 8. Version 5 has
// a flat list of events, "resource_events", where later ones have "resources". What an
// agent says of each resource and the wire format leaves out (changed, failed, out
// of sync) follows from the events. ReceivedAt is left to the caller. Of a string, the
// report's texts are parts.
func ParseWireReport[T string | []byte](body T) (Report, error) {
	s, err := scan.New("report", body, MaxReportBytes)
	if err != nil {
		return Report{}, err
	}
	p := wireReport{reportParser: reportParser{Scanner: s}}
	err = p.Object(p.field)
	if err == nil {
		err = p.End()
	}
	if err != nil {
		return Report{}, err
	}
	return p.finish()
}

type wireReport struct {
	reportParser
	envelope envelope
	groups   map[resourceKey]int // where the resource of a flat event is
	values   map[string][]byte   // of metrics, by category
	total    int                 // resources, as a metric counts them
}

type resourceKey struct{ kind, title string }

func (p *wireReport) field(key string) error {
	if known, err := p.envelope.field(p.Scanner, key); known {
		return err
	}
	r := &p.report
	switch key {
	case "start_time":
		return p.Time(&r.StartedAt, key)
	case "end_time":
		return p.Time(&r.EndedAt, key)
	case "type":
		return p.Text(&r.Type, key)
	case "metrics":
		return p.List(key, p.metric)
	case "resources":
		return p.List(key, p.resource)
	case "resource_events":
		return p.List(key, p.flatEvent)
	case "host", "time", "resource_statuses", "server_used", "master_used":
		return p.Skip() // words of the agent's own format
	default:
		return p.reportParser.field(key)
	}
}

// metric reads {"category", "name", "value"}.
func (p *wireReport) metric() error {
	var category, name, value string
	err := p.Object(func(key string) (err error) {
		switch key {
		case "category":
			return p.Text(&category, key)
		case "name":
			return p.Text(&name, key)
		case "value":
			value, err = p.Scalar()
			return err
		default:
			return p.Skip()
		}
	})
	if err != nil {
		return err
	}
	if value == "" || strings.Contains("tfn", value[:1]) {
		return p.Fail("the \"value\" of metric %.40q is missing, or no number", name)
	}
	if n, err := strconv.ParseUint(value, 10, 31); category == "resources" && name == "total" && err == nil {
		p.total = int(n)
	}
	if p.values == nil {
		p.values = map[string][]byte{}
	}
	out := p.values[category]
	if len(out) > 0 {
		out = append(out, ',')
	}
	out = scan.AppendQuoted(append(out, '['), name)
	out = scan.AppendQuoted(append(out, ','), label(name))
	p.values[category] = append(append(append(out, ','), value...), ']')
	return nil
}

// label is how Puppet words the name of a metric for people.
func label(name string) string {
	name = strings.ToLower(strings.ReplaceAll(name, "_", " "))
	first, size := utf8.DecodeRuneInString(name)
	return string(unicode.ToUpper(first)) + name[size:]
}

// metricGroups writes the metrics in the form that agents send.
func (p *wireReport) metricGroups() json.RawMessage {
	if len(p.values) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, category := range slices.Sorted(maps.Keys(p.values)) {
		out = scan.AppendQuoted(appendComma(out, i), category)
		out = scan.AppendQuoted(append(out, `:{"label":`...), label(category))
		out = scan.AppendQuoted(append(out, `,"name":`...), category)
		out = append(append(out, `,"values":[`...), p.values[category]...)
		out = append(out, "]}"...)
	}
	return append(out, '}')
}

func (p *wireReport) resource() error {
	if len(p.report.Resources) >= maxReportRows {
		return p.Fail("it holds more than %d resources", maxReportRows)
	}
	p.report.Resources = append(p.report.Resources, ResourceStatus{})
	r := &p.report.Resources[len(p.report.Resources)-1]
	err := p.Object(func(key string) error {
		if key == "events" {
			return p.List(key, func() error { return p.event(r) })
		}
		return p.resourceField(r, key)
	})
	if err == nil && r.Type == "" {
		err = p.Fail("a resource has no resource_type")
	}
	return err
}

func (p *wireReport) resourceField(r *ResourceStatus, key string) error {
	switch key {
	case "resource_title":
		return p.Text(&r.Title, key)
	case "timestamp":
		return p.Time(&r.Time, key)
	case "resource_type", "file", "line", "containment_path", "skipped", "corrective_change":
		return p.reportParser.resourceField(r, key)
	default:
		return p.Skip()
	}
}

func (p *wireReport) event(r *ResourceStatus) error {
	var e Event
	if err := p.Object(func(key string) error { return p.eventField(&e, key) }); err != nil {
		return err
	}
	r.Events = append(r.Events, e)
	return nil
}

func (p *wireReport) eventField(e *Event, key string) error {
	switch key {
	case "status":
		return p.Text(&e.Status, key)
	case "timestamp":
		return p.Time(&e.Time, key)
	case "property":
		return p.Text(&e.Property, key)
	case "name":
		return p.Text(&e.Name, key)
	case "new_value":
		return p.value(&e.Desired)
	case "old_value":
		return p.value(&e.Previous)
	case "message":
		return p.word(&e.Message)
	case "corrective_change":
		return p.Boolean(&e.CorrectiveChange, key)
	default:
		return p.Skip()
	}
}

// flatEvent reads an event that carries its resource, and puts it to the others of
// that resource.
func (p *wireReport) flatEvent() error {
	var r ResourceStatus
	var e Event
	err := p.Object(func(key string) error {
		switch key {
		case "resource_title", "resource_type", "file", "line", "containment_path":
			return p.resourceField(&r, key)
		default:
			return p.eventField(&e, key)
		}
	})
	if err != nil {
		return err
	}
	if r.Type == "" {
		return p.Fail("an event has no resource_type")
	}
	if len(p.report.Resources) >= maxReportRows {
		return p.Fail("it holds more than %d resources", maxReportRows)
	}
	key := resourceKey{r.Type, r.Title}
	i, known := p.groups[key]
	if !known {
		if p.groups == nil {
			p.groups = map[resourceKey]int{}
		}
		i = len(p.report.Resources)
		p.groups[key] = i
		r.Time = e.Time
		p.report.Resources = append(p.report.Resources, r)
	}
	at := &p.report.Resources[i]
	if e.Status == "skipped" {
		at.Skipped = true
		return nil
	}
	at.Events = append(at.Events, e)
	return nil
}

// conclude derives from the events what an agent would have said.
func conclude(r *ResourceStatus) {
	for i := range r.Events {
		switch r.Events[i].Status {
		case "success":
			r.Changed, r.OutOfSync = true, true
		case "failure":
			r.Failed, r.OutOfSync = true, true
		case "noop":
			r.OutOfSync = true
		}
	}
}

func (p *wireReport) finish() (Report, error) {
	r := &p.report
	var err error
	if r.Certname, r.Environment, err = p.envelope.check("report"); err != nil {
		return Report{}, err
	}
	switch r.Status {
	case "failed", "changed", "unchanged", "":
	default:
		return Report{}, fault.New(fault.Invalid, "the report's \"status\" is %.40q, not failed, changed, unchanged or null", r.Status)
	}
	switch r.Type {
	case "":
		r.Type = "agent"
	case "agent", "plan":
	default:
		return Report{}, fault.New(fault.Invalid, "the report's \"type\" is %.40q, not agent or plan", r.Type)
	}
	if r.StartedAt.IsZero() || r.EndedAt.IsZero() {
		return Report{}, fault.New(fault.Invalid, "the report lacks its \"start_time\" or \"end_time\"; they are ISO 8601 times")
	}
	for i := range r.Resources {
		conclude(&r.Resources[i])
		p.count(&r.Resources[i])
	}
	if silent := p.total - len(r.Resources); silent > 0 { // those that nothing happened to are not sent
		r.Counts.Resources += silent
		r.Counts.Unchanged += silent
	}
	if r.CatalogUUID == "" {
		r.CatalogUUID = r.TransactionUUID // formats before 7 know only this one
	}
	// The wire format does not tell a run that was broken off; one that failed before
	// it had anything to say is taken for one.
	r.Completed = r.Status != "failed" || len(r.Resources) > 0
	r.Metrics, r.Origin = p.metricGroups(), p.envelope.origin
	r.ID = r.digest()
	return *r, nil
}
