package sql

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// sampleReport makes a parsed report of so many resources, of which one in twenty
// changed.
func sampleReport(node fleet.Certname, resources int, n int64) inventory.Report {
	r, err := inventory.ParseReport(sampleReportBody(node, resources, n))
	if err != nil {
		panic(err)
	}
	r.ReceivedAt = time.Now()
	return r
}

// sampleReportBody writes a report as Puppet 7 sends it.
func sampleReportBody(node fleet.Certname, resources int, n int64) []byte {
	at := time.Date(2026, 3, 1, 12, 0, 0, int(n%1e9), time.UTC)
	stamp := at.Format("2006-01-02T15:04:05.000000000-07:00")
	statuses := map[string]any{}
	for i := range resources {
		title := fmt.Sprintf("/etc/service-%03d/conf.d/%02d-settings.conf", i/7, i)
		changed := i%20 == 7
		events := []any{}
		if changed {
			events = append(events, map[string]any{
				"audited": false, "property": "content", "previous_value": "{sha256}1f2d3c" + title, "desired_value": "{sha256}9a8b7c" + title,
				"historical_value": nil, "message": "content changed '{sha256}1f2d3c' to '{sha256}9a8b7c'", "name": "content_changed",
				"status": "success", "time": stamp, "redacted": nil, "corrective_change": false,
			})
		}
		statuses["File["+title+"]"] = map[string]any{
			"title": title, "file": "/etc/puppetlabs/code/environments/production/modules/service/manifests/config.pp", "line": 40 + i%50,
			"resource": "File[" + title + "]", "resource_type": "File", "provider_used": "posix",
			"containment_path": []string{"Stage[main]", "Service::Config", "Service::Instance[" + fmt.Sprint(i/7) + "]", "File[" + title + "]"},
			"evaluation_time":  0.000512342 * float64(i+1), "tags": []string{
				"file", "service::config", "service", "config", "class", "service::instance", "instance", "node", "default",
			},
			"time": stamp, "failed": false, "failed_to_restart": false, "changed": changed, "out_of_sync": changed, "skipped": false,
			"change_count": len(events), "out_of_sync_count": len(events), "events": events, "corrective_change": false,
		}
	}
	values := [][]any{}
	for i := range 30 {
		values = append(values, []any{fmt.Sprintf("type_%d", i), fmt.Sprintf("Type %d", i), 0.0123 * float64(i)})
	}
	logs := []any{}
	for i := range resources/20 + 2 {
		logs = append(logs, map[string]any{
			"level": "notice", "message": fmt.Sprintf("content changed '{sha256}1f2d3c%d' to '{sha256}9a8b7c'", i),
			"source": fmt.Sprintf("/Stage[main]/Service::Config/File[/etc/%d]/content", i),
			"tags":   []string{"notice", "file", "service"}, "time": stamp, "file": "/etc/puppetlabs/code/config.pp", "line": 42,
		})
	}
	body, err := json.Marshal(map[string]any{
		"host": node, "time": stamp, "configuration_version": fleet.DigestOf([]byte("v")),
		"transaction_uuid": fmt.Sprintf("00000000-0000-4000-8000-%012x", n&0xffffffffffff),
		"report_format":    12, "puppet_version": "7.23.0", "status": "changed", "transaction_completed": true, "noop": false, "noop_pending": false,
		"environment": "production", "logs": logs, "metrics": map[string]any{
			"resources": map[string]any{"name": "resources", "label": "Resources", "values": values},
			"time":      map[string]any{"name": "time", "label": "Time", "values": values},
		}, "resource_statuses": statuses, "corrective_change": false, "catalog_uuid": "11111111-0000-4000-8000-000000000000", "cached_catalog_status": "not_used",
	})
	if err != nil {
		panic(err)
	}
	return body
}

// sampleFacts writes a facts object of about 250 leaves; the volatile ones depend
// on round.
func sampleFacts(node fleet.Certname, round int) []byte {
	values := map[string]any{
		"clientcert": node, "clientversion": "7.23.0", "clientnoop": false, "fqdn": node, "hostname": "web", "domain": "example.com",
		"uptime_seconds": 86400 + round*1800, "system_uptime": map[string]any{"seconds": 86400 + round*1800, "hours": 24 + round/2, "days": 1, "uptime": "1 day"},
		"load_averages": map[string]any{"1m": 0.12 + float64(round%10), "5m": 0.31 + float64(round%7), "15m": 0.25},
		"memory": map[string]any{"system": map[string]any{
			"total": "15.62 GiB", "total_bytes": 16771747840, "used_bytes": 4000000000 + round*4096, "available_bytes": 12771747840 - round*4096, "capacity": "23.85%",
		}},
		"os": map[string]any{
			"name": "Debian", "family": "Debian", "release": map[string]any{"full": "12.5", "major": "12", "minor": "5"}, "selinux": map[string]any{"enabled": false},
		},
	}
	for i := range 8 {
		values[fmt.Sprintf("ssh%d", i)] = map[string]any{
			"key": fmt.Sprintf("AAAAC3NzaC1lZDI1NTE5AAAAI%060d", i), "type": "ssh-ed25519", "fingerprints": map[string]any{
				"sha1": fmt.Sprintf("SSHFP 4 1 %040d", i), "sha256": fmt.Sprintf("SSHFP 4 2 %064d", i),
			},
		}
	}
	disks, partitions, interfaces := map[string]any{}, map[string]any{}, map[string]any{}
	for i := range 4 {
		disks[fmt.Sprintf("sd%c", 'a'+i)] = map[string]any{
			"model": "QEMU HARDDISK", "serial": fmt.Sprintf("drive-scsi%d", i), "size": "100.00 GiB", "size_bytes": 107374182400, "type": "ssd", "vendor": "QEMU",
		}
	}
	for i := range 10 {
		partitions[fmt.Sprintf("/dev/sda%d", i)] = map[string]any{
			"filesystem": "ext4", "mount": fmt.Sprintf("/srv/%d", i), "partuuid": fmt.Sprintf("%08d-01", i), "size": "10.00 GiB", "size_bytes": 10737418240,
			"uuid": fmt.Sprintf("uuid-%d", i),
		}
	}
	for i := range 6 {
		interfaces[fmt.Sprintf("eth%d", i)] = map[string]any{
			"ip": fmt.Sprintf("10.0.%d.7", i), "mac": fmt.Sprintf("52:54:00:00:00:%02d", i), "mtu": 1500, "netmask": "255.255.255.0",
			"network":  fmt.Sprintf("10.0.%d.0", i),
			"bindings": []any{map[string]any{"address": fmt.Sprintf("10.0.%d.7", i), "netmask": "255.255.255.0", "network": fmt.Sprintf("10.0.%d.0", i)}},
		}
	}
	values["disks"], values["partitions"], values["networking"] = disks, partitions, map[string]any{"interfaces": interfaces, "primary": "eth0", "ip": "10.0.0.7"}
	for i := range 20 {
		values[fmt.Sprintf("site_fact_%d", i)] = fmt.Sprintf("value of %s %d", node, i)
	}
	body, err := json.Marshal(map[string]any{
		"name": node, "values": values, "timestamp": "2026-03-01T12:00:00.123456789+00:00", "expiration": "2026-03-01T12:30:00.123456789+00:00",
	})
	if err != nil {
		panic(err)
	}
	return body
}
