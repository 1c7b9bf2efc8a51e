package fleetgen

import "fmt"

// WidePuppetDBReport is the payload of `store report` version 8 of a run with a
// history: most runs change nothing or a little, some fail, some only look.
func (f Fleet) WidePuppetDBReport(node, generation int) []byte {
	run := f.run(node, generation)
	r := f.random(kindHistory, node, generation)
	noop, status := r.IntN(20) == 0, run.status
	resources, metrics := []object{}, []object{}
	fails := r.IntN(25) == 0
	for i, res := range run.resources {
		failed := fails && i == 17
		if failed {
			res.events = []event{{"ensure", `"stopped"`, `"running"`, "change from 'stopped' to 'running' failed: Systemd start failed"}}
			status = "failed"
		}
		if len(res.events) == 0 {
			continue
		}
		shown := res.puppetDB()
		shown["containment_path"] = []string{"Stage[main]", fmt.Sprintf("Profile::Part%d", i%10), res.ref()}
		for _, e := range shown["events"].([]object) {
			switch {
			case failed:
				e["status"] = "failure"
			case noop:
				e["status"] = "noop"
			}
		}
		resources = append(resources, shown)
	}
	if noop && status == "changed" {
		status = "unchanged"
	}
	for group, values := range run.metrics() {
		for name, value := range values {
			metrics = append(metrics, object{"category": group, "name": name, "value": value})
		}
	}
	sortMetrics(metrics)
	return marshal(object{
		"certname": run.certname, "environment": environment(node), "puppet_version": "7.23.0", "report_format": 12, "configuration_version": codeVersion,
		"start_time": stamp(run.start), "end_time": stamp(run.end), "producer_timestamp": stamp(run.end), "producer": producer,
		"transaction_uuid": run.transaction, "catalog_uuid": run.catalog, "code_id": nil, "job_id": nil, "cached_catalog_status": "not_used",
		"status": status, "noop": noop, "noop_pending": noop && len(resources) > 0, "corrective_change": false,
		"metrics": metrics, "logs": run.logs(), "resources": resources,
	})
}
