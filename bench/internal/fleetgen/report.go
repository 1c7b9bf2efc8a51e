package fleetgen

import (
	"fmt"
	"time"
)

const (
	resourcesPerReport = 100
	codeVersion        = "1700000000"
)

// run is one application of a catalog, from which both forms of report are written.
type run struct {
	certname, transaction, catalog, status string
	start, end                             time.Time
	resources                              []resource
	changed                                int
}

type resource struct {
	kind, title, file string
	line              int
	path              []string
	at                time.Time
	seconds           float64
	events            []event
}

type event struct {
	property, old, new, message string
}

// TransactionUUID names a node's run of one generation in both forms of report.
func (f Fleet) TransactionUUID(node, generation int) string {
	return uuid(f.random(kindReport, node, generation))
}

// run makes up a run: a hundred resources, in three of four runs one to four
// of them changed.
func (f Fleet) run(node, generation int) run {
	r := f.random(kindReport, node, generation)
	out := run{certname: f.Certname(node), transaction: uuid(r), catalog: uuid(r), status: "unchanged", start: f.When(node, generation)}
	out.end = out.start.Add(12 * time.Second)
	changing := map[int]bool{}
	if r.IntN(4) > 0 {
		for range 1 + r.IntN(4) {
			changing[r.IntN(resourcesPerReport)] = true
		}
	}
	kinds := []string{"File", "Package", "Service", "Exec", "User", "Cron"}
	for i := range resourcesPerReport {
		kind := kinds[i%len(kinds)]
		res := resource{
			kind: kind, title: fmt.Sprintf("/etc/site/%s-%03d.conf", kind, i),
			file: fmt.Sprintf("/etc/puppetlabs/code/environments/production/modules/site/manifests/part%d.pp", i%10),
			line: 10 + i, at: out.start.Add(time.Duration(i) * 50 * time.Millisecond), seconds: float64(r.IntN(1000)) / 10000,
		}
		res.path = []string{"Stage[main]", fmt.Sprintf("Site::Part%d", i%10), res.ref()}
		if changing[i] {
			old, now := fmt.Sprintf("{sha256}%064x", r.Uint64()), fmt.Sprintf("{sha256}%064x", r.Uint64())
			res.events = []event{{"content", old, now, fmt.Sprintf("content changed '%s' to '%s'", old, now)}}
			out.changed++
			out.status = "changed"
		}
		out.resources = append(out.resources, res)
	}
	return out
}

func (r resource) ref() string { return r.kind + "[" + r.title + "]" }

// logs are the lines that a run prints, in the shape both forms share.
func (r run) logs() []object {
	line := func(level, source, message string, file any, number any) object {
		return object{
			"level": level, "source": source, "message": message, "time": stamp(r.end), "file": file, "line": number,
			"tags": []string{level, "site", "class"},
		}
	}
	logs := []object{line("info", "Puppet", "Applying configuration version '"+codeVersion+"'", nil, nil)}
	for _, res := range r.resources {
		for _, e := range res.events {
			logs = append(logs, line("notice", "/Stage[main]/"+res.ref()+"/"+e.property, e.message, res.file, res.line))
		}
	}
	return append(logs, line("notice", "Puppet", "Applied catalog in 12.00 seconds", nil, nil))
}

// metrics gives groups of names and values.
func (r run) metrics() map[string]map[string]float64 {
	zero := []string{"skipped", "failed", "failed_to_restart", "restarted", "scheduled", "corrective_change"}
	resources := map[string]float64{"total": resourcesPerReport, "changed": float64(r.changed), "out_of_sync": float64(r.changed)}
	for _, name := range zero {
		resources[name] = 0
	}
	seconds := map[string]float64{"total": 12}
	for i, name := range []string{
		"file", "package", "service", "exec", "user", "cron", "config_retrieval", "fact_generation", "plugin_sync", "node_retrieval",
		"convert_catalog", "catalog_application", "transaction_evaluation", "schedule", "filebucket",
	} {
		seconds[name] = float64(i) / 7
	}
	return map[string]map[string]float64{
		"resources": resources, "time": seconds, "changes": {"total": float64(r.changed)},
		"events": {"total": float64(r.changed), "success": float64(r.changed), "failure": 0},
	}
}

func stamp(t time.Time) string { return t.Format("2006-01-02T15:04:05.000000000-07:00") }

// PuppetReport is the body of PUT /puppet/v3/report/NAME as a 7.23 agent sends it.
func (f Fleet) PuppetReport(node, generation int) []byte {
	r := f.run(node, generation)
	statuses, metrics := object{}, object{}
	for _, res := range r.resources {
		statuses[res.ref()] = res.puppet()
	}
	for group, values := range r.metrics() {
		var rows []any
		for name, value := range values {
			rows = append(rows, []any{name, name, value})
		}
		sortRows(rows)
		metrics[group] = object{"name": group, "label": group, "values": rows}
	}
	return marshal(object{
		"host": r.certname, "time": stamp(r.start), "configuration_version": codeVersion, "transaction_uuid": r.transaction,
		"report_format": 12, "puppet_version": "7.23.0", "status": r.status, "transaction_completed": true, "noop": false, "noop_pending": false,
		"environment": "production", "logs": r.logs(), "metrics": metrics, "resource_statuses": statuses, "corrective_change": false,
		"server_used": "server.example.org:8140", "catalog_uuid": r.catalog, "cached_catalog_status": "not_used",
	})
}

func (r resource) puppet() object {
	events := []object{}
	for _, e := range r.events {
		events = append(events, object{
			"audited": false, "property": e.property, "previous_value": e.old, "desired_value": e.new, "historical_value": nil, "message": e.message,
			"name": e.property + "_changed", "status": "success", "time": stamp(r.at), "redacted": nil, "corrective_change": false,
		})
	}
	changed := len(r.events) > 0
	return object{
		"title": r.title, "file": r.file, "line": r.line, "resource": r.ref(), "resource_type": r.kind, "provider_used": "posix",
		"containment_path": r.path, "evaluation_time": r.seconds, "tags": []string{"class", "site", "node", "default"}, "time": stamp(r.at),
		"failed": false, "failed_to_restart": false, "changed": changed, "out_of_sync": changed, "skipped": false,
		"change_count": len(r.events), "out_of_sync_count": len(r.events), "events": events, "corrective_change": false,
	}
}

// PuppetDBReport is the payload of the command `store report` version 8.
func (f Fleet) PuppetDBReport(node, generation int) []byte {
	r := f.run(node, generation)
	resources, metrics := []object{}, []object{}
	for _, res := range r.resources {
		if len(res.events) > 0 {
			resources = append(resources, res.puppetDB())
		}
	}
	for group, values := range r.metrics() {
		for name, value := range values {
			metrics = append(metrics, object{"category": group, "name": name, "value": value})
		}
	}
	sortMetrics(metrics)
	return marshal(object{
		"certname": r.certname, "environment": "production", "puppet_version": "7.23.0", "report_format": 12, "configuration_version": codeVersion,
		"start_time": stamp(r.start), "end_time": stamp(r.end), "producer_timestamp": stamp(r.end), "producer": "server.example.org",
		"transaction_uuid": r.transaction, "catalog_uuid": r.catalog, "code_id": nil, "job_id": nil, "cached_catalog_status": "not_used",
		"status": r.status, "noop": false, "noop_pending": false, "corrective_change": false,
		"metrics": metrics, "logs": r.logs(), "resources": resources,
	})
}

func (r resource) puppetDB() object {
	events := []object{}
	for _, e := range r.events {
		events = append(events, object{
			"status": "success", "timestamp": stamp(r.at), "property": e.property, "name": e.property + "_changed",
			"new_value": e.new, "old_value": e.old, "message": e.message, "corrective_change": false,
		})
	}
	return object{
		"skipped": false, "timestamp": stamp(r.at), "resource_type": r.kind, "resource_title": r.title, "file": r.file, "line": r.line,
		"containment_path": r.path, "corrective_change": false, "events": events,
	}
}
