package pdbdiff_test

import (
	"fmt"
	"time"
)

// makeCatalog is a payload of replace_catalog.
func (n node) makeCatalog(at time.Time) object {
	var code, job any
	if n.index%2 == 0 {
		code = fmt.Sprintf("urn:code:%d", n.index%3)
	}
	if n.index%9 == 0 {
		job = fmt.Sprint(n.index)
	}
	return object{
		"certname": n.certname, "version": n.catalogVersion, "environment": n.environment, "transaction_uuid": n.uuid(2), "catalog_uuid": n.catalogUUID,
		"code_id": code, "job_id": job, "producer": n.producer, "producer_timestamp": stamp(at),
		"resources": n.resources(), "edges": n.edges(),
	}
}

// resource is one of a catalog; place is its line, 0 for none.
func resource(kind, title string, exported bool, place int, tags []any, parameters object) object {
	r := object{"type": kind, "title": title, "exported": exported, "tags": tags, "parameters": parameters}
	if place > 0 {
		r["file"], r["line"] = fmt.Sprintf("/etc/puppetlabs/code/modules/%d/manifests/init.pp", place%3), place
	}
	return r
}

func (n node) resources() []any {
	list := []any{
		resource("Stage", "main", false, 0, []any{"stage"}, object{}),
		resource("Class", "main", false, 0, []any{"class"}, object{}),
		resource("Class", "Role::"+title(n.role), false, 3, []any{"class", "role::" + n.role, "role", n.role}, object{"tier": n.index % 3, "debug": n.index%2 == 0}),
		resource("Class", "Ntp", false, 4, []any{"class", "ntp"}, object{
			"servers": []any{"a.example.org", "b.example.org"}, "drift": 0.5, "limits": object{"soft": 10, "hard.max": object{"x": n.index}},
		}),
		resource("Package", "openssl", false, 7, []any{"package", "openssl", "class", "ntp"}, object{"ensure": pick(n, "installed", "3.0.1", "latest")}),
		resource("File", "/etc/motd", false, 12, []any{"file", "class"}, object{
			"ensure": "file", "content": "Grüezi 🚀 from " + n.role + "\n", "mode": "0644", "owner": "root", "require": "Package[openssl]",
		}),
		resource("File", "/etc/ntp.conf", false, 14, []any{"file", "ntp"}, object{
			"ensure": "file", "source": "puppet:///modules/ntp/ntp.conf", "mode": "0600", "backup": false,
		}),
		resource("Service", "ntp", false, 20, []any{"service", "ntp"}, object{"ensure": pick(n, "running", "stopped"), "enable": n.index%2 == 0}),
		resource("User", "app", false, 31, []any{"user", "app"}, object{"ensure": "present", "uid": 1000 + n.index, "groups": []any{"wheel", n.role}}),
		resource("Notify", "it's \"quoted\" and [bracketed]", false, 0, []any{"notify"}, object{"message": "x", "withpath": false}),
		resource("Sshkey", n.certname, true, 40, []any{"sshkey", "ssh_keys", "class"}, object{
			"key": fmt.Sprintf("AAAAB3%04d", n.index), "type": "ed25519", "tag": []any{"ssh_keys"},
		}),
		resource("Cron", "clean", false, 50, []any{"cron"}, object{"command": "/bin/true", "minute": []any{0, 30}, "hour": n.index % 24}),
	}
	if n.role == "web" {
		list = append(list,
			resource("Apache::Vhost", "www", false, 60, []any{"apache::vhost", "apache", "vhost", "www"}, object{
				"port": 8000 + n.index%3, "ssl": n.index%8 == 0, "docroot": "/var/www",
			}),
			resource("Nagios_host", n.certname, true, 61, []any{"nagios_host", "monitoring"}, object{
				"address": fmt.Sprintf("10.0.0.%d", n.index%250), "use": "generic",
			}),
		)
	}
	return list
}

// edges holds every kind of relationship.
func (n node) edges() []any {
	edge := func(sourceType, source, relationship, targetType, target string) object {
		return object{
			"source": object{"type": sourceType, "title": source}, "target": object{"type": targetType, "title": target}, "relationship": relationship,
		}
	}
	role := "Role::" + title(n.role)
	list := []any{
		edge("Stage", "main", "contains", "Class", "main"),
		edge("Stage", "main", "contains", "Class", role),
		edge("Class", role, "contains", "Class", "Ntp"),
		edge("Class", "Ntp", "contains", "Package", "openssl"),
		edge("Class", "main", "contains", "File", "/etc/motd"),
		edge("Package", "openssl", "required-by", "File", "/etc/motd"),
		edge("Package", "openssl", "before", "File", "/etc/ntp.conf"),
		edge("File", "/etc/ntp.conf", "notifies", "Service", "ntp"),
		edge("Service", "ntp", "subscription-of", "Notify", "it's \"quoted\" and [bracketed]"),
	}
	if n.role == "web" {
		list = append(list, edge("Class", role, "contains", "Apache::Vhost", "www"))
	}
	return list
}

func title(role string) string { return string(role[0]-'a'+'A') + role[1:] }
