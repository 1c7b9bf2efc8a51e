package pdbdiff_test

import (
	"fmt"
	"time"
)

// report is a payload of store_report: the k-th run of a node.
func (n node) report(k int, at time.Time) object {
	end := at.Add(time.Duration(20+n.index%30) * time.Second)
	status, resources := n.outcome(k, at)
	noop := n.index%11 == 0
	var job, code any
	if n.index%9 == 0 {
		job = fmt.Sprint(100*n.index + k)
	}
	if n.index%2 == 0 {
		code = fmt.Sprintf("urn:code:%d", n.index%3)
	}
	return object{
		"certname": n.certname, "puppet_version": pick(n, "7.23.0", "8.6.0", "8.10.0"), "report_format": 12 - n.index%2, "configuration_version": n.catalogVersion,
		"producer_timestamp": stamp(end), "start_time": stamp(at), "end_time": stamp(end), "environment": n.environment, "producer": n.producer,
		"transaction_uuid": n.uuid(10 + k), "catalog_uuid": n.catalogUUID, "code_id": code, "job_id": job, "status": status, "noop": noop,
		"noop_pending": noop && len(resources) > 0, "corrective_change": (n.index+k)%6 == 0 && status == "changed",
		"cached_catalog_status": [...]string{"not_used", "not_used", "explicitly_requested", "on_failure"}[(n.index+k)%4],
		"metrics":               n.metrics(resources), "logs": n.logs(status, at), "resources": resources,
	}
}

// outcome decides how a run ended and what it did.
func (n node) outcome(k int, at time.Time) (status string, resources []any) {
	switch {
	case n.index%11 == 0:
		return "unchanged", []any{
			n.touched("File", "/etc/motd", at, 1, []any{"Stage[main]", "Main", "File[/etc/motd]"},
				event("noop", "content", "{md5}a", "{md5}b", "current_value {md5}a, should be {md5}b (noop)")),
			n.touched("Service", "ntp", at, 2, []any{"Stage[main]", "Ntp", "Service[ntp]"},
				event("noop", "ensure", "stopped", "running", "current_value stopped, should be running (noop)")),
		}
	case (n.index+k)%7 == 0:
		skipped := n.touched("Service", "ntp", at, 4, []any{"Stage[main]", "Ntp", "Service[ntp]"})
		skipped["skipped"] = true
		return "failed", []any{
			n.touched("Package", "openssl", at, 3, []any{"Stage[main]", "Role::" + title(n.role), "Ntp", "Package[openssl]"},
				event("failure", "ensure", "absent", "installed", "change from absent to installed failed: Grüße 🚀")),
			skipped,
		}
	case (n.index+k)%5 == 0:
		return "changed", []any{
			n.touched("File", "/etc/motd", at, 1, []any{"Stage[main]", "Main", "File[/etc/motd]"},
				event("success", "content", "{md5}a", "{md5}c", "content changed"), event("success", "mode", "0600", "0644", "mode changed '0600' to '0644'")),
			n.touched("Exec", "refresh", at, 5, []any{"Stage[main]", "Role::" + title(n.role), "Exec[refresh]"},
				event("success", "returns", "notrun", "0", "executed successfully")),
			n.touched("Notify", "bare", at, 6, nil, event("success", "message", "absent", "bare", "defined 'message' as 'bare'")),
		}
	}
	return "unchanged", []any{}
}

// touched is a resource with what happened to it, second seconds into the run.
func (n node) touched(kind, name string, at time.Time, second int, path []any, events ...object) object {
	then := stamp(at.Add(time.Duration(second) * time.Second))
	list := []any{}
	for _, e := range events {
		e["timestamp"] = then
		list = append(list, e)
	}
	r := object{
		"skipped": false, "timestamp": then, "resource_type": kind, "resource_title": name, "file": "/etc/puppetlabs/code/site.pp", "line": 10 + second,
		"containment_path": path, "corrective_change": false, "events": list,
	}
	if path == nil {
		r["containment_path"], r["file"], r["line"] = nil, nil, nil
	}
	return r
}

func event(status, property, before, after, message string) object {
	return object{
		"status": status, "property": property, "name": property + "_changed", "old_value": before, "new_value": after, "message": message,
		"corrective_change": false,
	}
}

func (n node) metrics(resources []any) []any {
	return []any{
		object{"category": "resources", "name": "total", "value": 12 + len(resources)},
		object{"category": "resources", "name": "failed", "value": 0},
		object{"category": "time", "name": "total", "value": float64(n.index) / 16},
		object{"category": "changes", "name": "total", "value": len(resources)},
	}
}

func (n node) logs(status string, at time.Time) []any {
	list := []any{object{
		"file": nil, "line": nil, "level": "notice", "message": "Applied catalog in 0.5 seconds", "source": "Puppet", "tags": []any{"notice"},
		"time": stamp(at.Add(15 * time.Second)),
	}}
	if status == "failed" {
		list = append(list, object{
			"file": "/etc/puppetlabs/code/site.pp", "line": 13, "level": "err", "message": "change failed: Grüße 🚀",
			"source": "/Stage[main]/Ntp/Package[openssl]/ensure", "tags": []any{"err", "package", "ntp"}, "time": stamp(at.Add(14 * time.Second)),
		})
	}
	return list
}
