package main

import (
	"fmt"
	"maps"
	"net/url"

	"github.com/tutti-project/tutti/bench/internal/fleetgen"
)

// question is something that people ask.
type question struct {
	name string
	path string // below /pdb/query/v4
	pql  string
	more url.Values
	// loose answers have rows that may rightly differ, such as a page of
	// something without an order, or times at which a server received something.
	loose bool
}

func (q question) target() string {
	values := url.Values{}
	maps.Copy(values, q.more)
	if q.pql != "" {
		values.Set("query", q.pql)
	}
	return "/pdb/query/v4" + q.path + "?" + values.Encode()
}

// questions are asked of every server, in this order.
func (l *loaded) questions() []question {
	fleet := fleetgen.Fleet{Seed: l.Seed, Base: l.Base}
	some := fleet.Certname(l.Nodes / 3)
	middle := fleet.When(0, l.Reports/2).Format("2006-01-02T15:04:05Z")
	deep := 3 * l.Nodes / 4
	return []question{
		// Facts.
		{name: "one fact of one node", pql: fmt.Sprintf(`facts[name, value] { certname = "%s" and name = "kernel" }`, some)},
		{name: "all facts of one node", pql: fmt.Sprintf(`facts[name, value] { certname = "%s" }`, some)},
		{name: "one fact of every node", pql: `facts[certname, value] { name = "role" }`},
		{name: "structured fact of every node", pql: `facts[certname, value] { name = "os" }`},
		{name: "nodes with a fact", pql: `inventory[certname] { facts.os.family = "RedHat" }`},
		{name: "nodes with three facts", pql: `inventory[certname] { facts.os.name = "Debian" and facts.role = "db" and facts.datacenter = "dc3" }`},
		{name: "nodes with either of two facts", pql: `inventory[certname] { facts.role = "mail" or facts.site.tier = "gold" and !(facts.os.family = "RedHat") }`},
		{name: "nodes with an element of a list", pql: `inventory[certname] { facts.site.teams[0] = "team-07" }`},
		{name: "nodes with a fact like a pattern", pql: `inventory[certname] { facts.networking.ip ~ "^10\\.0\\.1[0-9]\\." }`},
		{name: "nodes with numbers in a range", pql: `inventory[certname] { facts.processorcount >= 32 and facts.memorysize_mb > 60000 }`},
		{name: "nodes by trusted data", pql: `inventory[certname] { trusted.extensions.pp_role = "mail" and trusted.extensions.pp_environment = "staging" }`},
		{name: "nodes by facts subqueries", pql: `nodes[certname] { facts { name = "role" and value = "web" } and facts { name = "datacenter" and value = "dc1" } }`},
		{name: "one node's inventory", pql: fmt.Sprintf(`inventory[certname, facts, trusted] { certname = "%s" }`, some)},
		{name: "inventory page with trusted", pql: `inventory[certname, facts, trusted] { facts.role = "ci" order by certname limit 50 }`},
		{name: "inventory columns of a role", pql: `inventory[certname, facts.os.name, facts.networking.ip, trusted.extensions.pp_role] { facts.role = "db" }`},
		{name: "count by operating system", pql: `inventory[facts.os.name, facts.os.release.major, count()] { group by facts.os.name, facts.os.release.major }`},
		{name: "count by value of a fact", pql: `facts[value, count()] { name = "datacenter" group by value }`},
		{name: "fact page deep in", pql: fmt.Sprintf(`facts[certname, name, value] { order by name, certname limit 50 offset %d }`, 5*l.Nodes)},
		{name: "any facts, 50 of them", pql: `facts { limit 50 }`, loose: true},
		{name: "leaves by path pattern and value", pql: `fact_contents[certname, path, value] { path ~> ["networking", "interfaces", ".*", "ip"] and value ~ "^192\\.168\\.1\\.7$" }`},
		{name: "leaves by value pattern", pql: `fact_contents[certname, path, value] { value ~ "^team-2[0-9]$" }`},
		{name: "leaves by path", pql: `fact_contents[certname, value] { path = ["site", "patch", "window"] }`},
		{name: "fact paths", pql: `fact_paths[path, type] { }`},
		{name: "fact names", path: "/fact-names"},
		// Resources.
		{name: "nodes with a class", pql: `nodes[certname] { resources { type = "Class" and title = "Role::Db" } }`},
		{name: "class and fact", pql: `nodes[certname] { resources { type = "Class" and title = "Profile::Os::RedHat" } and inventory { facts.site.tier = "gold" } }`},
		{name: "one resource over the fleet", pql: `resources[certname, title, parameters] { type = "File" and title = "/etc/site/web-19.conf" }`},
		{name: "resources by parameter", pql: `resources[certname, title] { type = "Package" and parameters.ensure = "latest" and title = "pkg-RedHat-17" }`},
		{name: "resources by title pattern", pql: `resources[certname, title] { type = "User" and title ~ "^user2[0-9]$" and certname ~ "^node-0001" }`},
		{name: "exported resources of a type", pql: `resources[certname, type, title, parameters] { type = "Nagios_host" and exported = true }`},
		{name: "exported for a collector", pql: fmt.Sprintf(`resources[certname, type, title, parameters] { type = "Sshkey" and exported = true and tag = "site" and parameters.type = "ssh-rsa" and !(certname = "%s") }`, some)},
		{name: "resources of one node", pql: fmt.Sprintf(`resources[type, title, exported, tags, file, line, parameters] { certname = "%s" }`, some)},
		{name: "resources of nodes with facts", pql: `resources[certname, title] { type = "Service" and title = "svc-18" and certname in inventory[certname] { facts.role = "db" and facts.os.name = "Ubuntu" } }`},
		{name: "count by resource type", pql: `resources[type, count()] { group by type }`},
		{name: "edges of one node", pql: fmt.Sprintf(`edges[source_type, source_title, target_type, target_title, relationship] { certname = "%s" }`, some)},
		// Nodes and reports.
		{name: "all nodes", pql: `nodes { }`, loose: true},
		{name: "nodes that failed", pql: `nodes[certname] { latest_report_status = "failed" }`},
		{name: "count by status", pql: `nodes[latest_report_status, count()] { group by latest_report_status }`},
		{name: "node page deep in", pql: fmt.Sprintf(`nodes[certname, latest_report_status] { order by certname limit 50 offset %d }`, deep)},
		{name: "latest failed reports", pql: `reports[certname, end_time, status] { latest_report? = true and status = "failed" }`},
		{name: "reports of one node", pql: fmt.Sprintf(`reports[end_time, status, noop] { certname = "%s" order by end_time desc limit 20 }`, some)},
		{name: "report page", pql: `reports[certname, status, end_time] { order by end_time desc, certname limit 50 }`},
		{name: "report page deep in", pql: fmt.Sprintf(`reports[certname, status, end_time] { order by end_time desc, certname limit 50 offset %d }`,
			deep*l.Reports)},
		{name: "count reports by status", pql: `reports[status, count()] { group by status }`},
		// Events.
		{name: "events of one resource", pql: `events[certname, status, timestamp] { resource_type = "Service" and resource_title = "/etc/site/Service-020.conf" }`},
		{name: "failures in latest reports", pql: `events[certname, resource_type, resource_title] { latest_report? = true and status = "failure" }`},
		{name: "failures since a time", pql: fmt.Sprintf(`events[certname, timestamp] { status = "failure" and timestamp > "%s" }`, middle)},
		{name: "event counts of latest runs", path: "/event-counts", pql: `["=", "latest_report?", true]`, more: url.Values{"summarize_by": {"certname"}}},
		{name: "event counts by resource", path: "/event-counts", pql: `["=", "latest_report?", true]`, more: url.Values{"summarize_by": {"resource"}}},
		{name: "event counts by class", path: "/event-counts", pql: `["=", "status", "failure"]`, more: url.Values{"summarize_by": {"containing_class"}}},
		{name: "aggregate event counts", path: "/aggregate-event-counts", pql: `["=", "latest_report?", true]`, more: url.Values{"summarize_by": {"certname"}}},
	}
}
