package sql

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/catalogue"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
	"github.com/tutti-project/tutti/internal/store/sql/query"
)

// queryFleet stores a made-up fleet and tells the oracle of it.
func queryFleet(tb testing.TB, s *Store) oracle {
	tb.Helper()
	o := oracle{rows: map[string][]oracleRow{}}
	for i := range 14 {
		o.addNode(tb, s, i)
	}
	o.addNames()
	return o
}

var fleetStart = time.Date(2026, 3, 1, 10, 0, 0, 123456000, time.UTC)

func (o *oracle) add(entity, node string, fields map[string]any) {
	if node != "" {
		fields["certname"] = node
	}
	o.rows[entity] = append(o.rows[entity], oracleRow{node, fields})
}

func (o *oracle) addNode(tb testing.TB, s *Store, i int) {
	tb.Helper()
	name := fmt.Sprintf("%s-%d.example.test", []string{"web", "db", "cache"}[i%3], i)
	env := []string{"production", "testing"}[i%2]
	node := map[string]any{}
	for _, f := range query.AllColumns("nodes") {
		node[f.Field.Name] = nil
	}
	if i != 11 {
		o.addFacts(tb, s, i, name, env, node)
	}
	if i != 12 {
		o.addCatalog(tb, s, i, name, env, node)
	}
	if i%2 == 0 {
		o.addInputs(tb, s, i, name)
	}
	if i%4 != 3 {
		o.addAgent(tb, s, i, name)
	}
	for run := range i % 3 {
		o.addReport(tb, s, i, run, name, env, node)
	}
	if i == 5 || i == 6 {
		at := fleetStart.Add(time.Hour)
		column := map[int]string{5: "deactivated", 6: "expired"}[i]
		node[column] = at
		err := s.write(tb.Context(), func(ctx context.Context, q querier) error {
			_, err := q.exec(ctx, "UPDATE nodes SET "+column+"_at = $1 WHERE certname = $2", micros(at), name)
			return err
		})
		if err != nil {
			tb.Fatal(err)
		}
	}
	o.add("nodes", name, node)
}

// addAgent is an agent with one of three sets of modules, of which one is not known.
func (o *oracle) addAgent(tb testing.TB, s *Store, i int, name string) {
	tb.Helper()
	digest := fleet.DigestOf([]byte("lamp"))
	sets := []action.Set{
		action.NewSet([]action.Listed{
			{Name: "lamp", Version: "1.2", Provider: action.External, Digest: digest}, {Name: "main", Provider: action.Choria, Problem: "it's \"broken\""},
		}),
		action.NewSet([]action.Listed{{Name: "lamp", Provider: action.BuiltIn, Digest: digest}}),
	}
	a := catalogue.Agent{
		Node: fleet.Certname(name), Set: fleet.DigestOf(nil), Version: []string{"1.0", "web"}[i%2], OS: []string{"linux", "windows"}[i/7], Arch: "amd64",
		Told: fleetStart.Add(time.Duration(i) * time.Hour),
	}
	c := catalogue.Change{Agents: []catalogue.Agent{a, {Node: "stranger", Set: sets[0].Digest(), Version: "1.0", OS: "linux", Arch: "amd64", Told: fleetStart}}}
	if i%3 < 2 {
		set := sets[i%3]
		c.Agents[0].Set, c.Sets = set.Digest(), map[fleet.Digest]action.Set{set.Digest(): set}
		for _, l := range set {
			row := map[string]any{"name": l.Name, "provider": string(l.Provider), "version": nil, "digest": nil, "problem": nil}
			for field, text := range map[string]string{"version": l.Version, "digest": string(l.Digest), "problem": l.Problem} {
				if text != "" {
					row[field] = text
				}
			}
			o.add("modules", name, row)
		}
	}
	if err := s.Catalogue.SaveCatalogue(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	o.add("agents", name, map[string]any{"version": a.Version, "os": a.OS, "arch": a.Arch, "told": a.Told})
}

func (o *oracle) addInputs(tb testing.TB, s *Store, i int, name string) {
	tb.Helper()
	in := inventory.CatalogInputs{
		Origin: inventory.Origin{ProducedAt: fleetStart}, Certname: fleet.Certname(name), UUID: "u" + fmt.Sprint(i),
		Inputs: []inventory.CatalogInput{{Type: "hiera", Name: "apache::port"}, {Type: "hiera", Name: "n\"" + fmt.Sprint(i)}},
	}
	if err := s.Catalogs.SaveCatalogInputs(tb.Context(), in); err != nil {
		tb.Fatal(err)
	}
	list := []any{}
	for _, input := range in.Inputs {
		list = append(list, []any{input.Type, input.Name})
		o.add("catalog_input_contents", name, map[string]any{
			"producer_timestamp": fleetStart, "catalog_uuid": in.UUID, "type": input.Type, "name": input.Name,
		})
	}
	o.add("catalog_inputs", name, map[string]any{"producer_timestamp": fleetStart, "catalog_uuid": in.UUID, "inputs": jsonValue{list, true}})
}

func (o *oracle) addFacts(tb testing.TB, s *Store, i int, name, env string, node map[string]any) {
	tb.Helper()
	values := map[string]any{
		"kernel": []string{"Linux", "FreeBSD"}[i/7], "uptime": float64(i * 3), "load": float64(i) / 4, "virtual": i%2 == 0, "none": nil,
		"mem": fmt.Sprint(1024 * (i % 4)), "empty": map[string]any{}, "nothing": []any{}, "weird.name": "x\"y", "line": "a\nb",
		"os":         map[string]any{"family": []string{"Debian", "RedHat"}[i%2], "release": map[string]any{"major": fmt.Sprint(i), "full": "é" + fmt.Sprint(i)}},
		"processors": map[string]any{"count": float64(i % 5), "models": []any{"Xeon", "Epyc " + fmt.Sprint(i)}},
		"net":        map[string]any{"if.0": map[string]any{"ip": "10.0.0." + fmt.Sprint(i)}, "eth1": map[string]any{"ip": "10.1.0." + fmt.Sprint(i)}},
		"trusted":    map[string]any{"certname": name, "extensions": map[string]any{"pp_role": []string{"web", "db", "cache"}[i%3]}},
	}
	if i%4 == 0 {
		values["datacenter"] = "north"
	}
	if i%5 == 0 {
		values["mem"] = float64(i)
	}
	text, err := json.Marshal(values)
	if err != nil {
		tb.Fatal(err)
	}
	made, received := fleetStart.Add(time.Duration(i)*time.Minute), fleetStart.Add(time.Duration(i)*time.Minute+time.Second)
	stored, _, err := s.Facts.SaveFacts(tb.Context(), inventory.FactSet{
		Certname: fleet.Certname(name), Environment: fleet.Environment(env), Timestamp: made, ReceivedAt: received, Values: text,
		Origin: inventory.Origin{Producer: "puppet.example.test", ProducedAt: made}, Packages: fleetPackages(i),
	})
	if err != nil {
		tb.Fatal(err)
	}
	for _, p := range fleetPackages(i) {
		o.add("package_inventory", name, map[string]any{"package_name": p.Name, "version": p.Version, "provider": p.Provider})
	}
	node["facts_timestamp"], node["facts_environment"] = received, env
	o.add("factsets", name, map[string]any{
		"environment": env, "timestamp": received, "producer_timestamp": made, "producer": "puppet.example.test", "hash": string(stored.Digest),
		"facts": expandedFacts(name, values),
	})
	o.add("inventory", name, map[string]any{
		"environment": env, "timestamp": received, "facts": jsonValue{values, true}, "trusted": jsonValue{values["trusted"], true},
	})
	for _, fact := range slices.Sorted(maps.Keys(values)) {
		o.add("facts", name, map[string]any{"environment": env, "name": fact, "value": jsonValue{values[fact], true}})
		o.addLeaves(name, env, fact, []any{fact}, values[fact])
	}
}

// fleetPackages are those of the i-th node, sorted.
func fleetPackages(i int) []inventory.Package {
	return []inventory.Package{{Name: "bash", Version: fmt.Sprint(5 + i%2), Provider: "apt"}, {Name: "vim", Version: "9", Provider: "apt"}}
}

func expandedFacts(name string, values map[string]any) map[string]any {
	list := []any{}
	for _, fact := range slices.Sorted(maps.Keys(values)) {
		list = append(list, map[string]any{"name": fact, "value": values[fact]})
	}
	return map[string]any{"data": list, "href": "/pdb/query/v4/factsets/" + name + "/facts"}
}

func (o *oracle) addLeaves(node, env, fact string, path []any, v any) {
	at := func(step any) []any { return append(slices.Clip(path), step) }
	kind := "string"
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			o.addLeaves(node, env, fact, at(key), v[key])
		}
		return
	case []any:
		for i, item := range v {
			o.addLeaves(node, env, fact, at(int64(i)), item)
		}
		return
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case float64:
		kind = "integer"
		if v != float64(int64(v)) {
			kind = "float"
		}
	}
	o.add("fact_contents", node, map[string]any{"environment": env, "name": fact, "path": path, "value": jsonValue{v, true}})
	for _, r := range o.rows["fact_paths"] {
		if r.fields["type"] == kind && facts.PathText(r.fields["path"].([]any)...) == facts.PathText(path...) {
			return
		}
	}
	o.add("fact_paths", "", map[string]any{"path": path, "name": fact, "type": kind, "depth": path})
}

func (o *oracle) addCatalog(tb testing.TB, s *Store, i int, name, env string, node map[string]any) {
	tb.Helper()
	c := inventory.Catalog{
		Certname: fleet.Certname(name), Environment: fleet.Environment(env), Digest: fleet.DigestOf([]byte(name)), Version: fleet.DigestOf([]byte(env)),
		ConfigVersion: "c" + fmt.Sprint(i), CodeID: "code", JobID: []string{"", "9"}[i%2], Origin: inventory.Origin{Producer: "other.example.test"},
		UUID: "u" + fmt.Sprint(i), CompiledAt: fleetStart.Add(time.Duration(i) * time.Hour),
		Resources: []inventory.Resource{
			{Type: "Class", Title: "Main", Tags: []string{"class", "main"}},
			{Type: "Class", Title: []string{"Role::Web", "Role::Db", "Role::Cache"}[i%3], Tags: []string{"class", "role"}, File: "/code/role.pp", Line: 3 + i},
			{Type: "File", Title: "/etc/a[" + fmt.Sprint(i%2) + "]", Tags: []string{"file"}, Exported: i%4 == 1, Parameters: json.RawMessage(
				fmt.Sprintf(`{"ensure":"present","mode":%d,"backup":%t,"owner":null,"deep":{"list":["a",{"b":"c%d"}]},"text":"10"}`, i*10, i%2 == 0, i))},
			{Type: "Service", Title: "ssh", Parameters: json.RawMessage(`{"ensure":"running"}`)},
		},
		Edges: []inventory.Edge{
			{Source: "Class[Main]", Target: "File[/etc/a[" + fmt.Sprint(i%2) + "]]", Relationship: "contains"},
			{Source: "Class[Main]", Target: "Service[ssh]", Relationship: "notifies"},
		},
		Collected: []inventory.Collected{
			{Type: "File", Title: "/etc/a[" + fmt.Sprint(i%2) + "]", Exporter: fleet.Certname("node" + fmt.Sprint((i+1)%4))},
			{Type: "Service", Title: "ssh", Exporter: "gone.example.test"},
		}[:i%3],
	}
	if err := s.Catalogs.SaveCatalog(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	node["catalog_timestamp"], node["catalog_environment"] = c.CompiledAt, env
	o.add("catalogs", name, map[string]any{
		"version": c.ConfigVersion, "environment": env, "transaction_uuid": nil, "catalog_uuid": c.UUID,
		"code_id": "code", "job_id": []any{nil, "9"}[i%2], "hash": string(c.Digest), "producer_timestamp": c.CompiledAt, "producer": "other.example.test",
	})
	for _, r := range c.Resources {
		parameters := map[string]any{}
		if r.Parameters != nil {
			if err := json.Unmarshal(r.Parameters, &parameters); err != nil {
				tb.Fatal(err)
			}
		}
		tags := append([]string{}, r.Tags...)
		row := map[string]any{
			"environment": env, "type": r.Type, "title": r.Title, "tags": tags, "tag": tags, "exported": r.Exported,
			"file": nil, "line": nil, "parameters": jsonValue{parameters, true},
		}
		if r.File != "" {
			row["file"], row["line"] = r.File, float64(r.Line)
		}
		o.add("resources", name, row)
	}
	for _, r := range c.Collected {
		o.add("collected", name, map[string]any{"environment": env, "type": r.Type, "title": r.Title, "exporter": string(r.Exporter)})
	}
	for _, e := range c.Edges {
		kind, title, _ := strings.Cut(e.Target, "[")
		o.add("edges", name, map[string]any{
			"relationship": e.Relationship, "source_type": "Class", "source_title": "Main",
			"target_type": kind, "target_title": title[:len(title)-1],
		})
	}
}

func (o *oracle) addReport(tb testing.TB, s *Store, i, run int, name, env string, node map[string]any) {
	tb.Helper()
	at := fleetStart.Add(time.Duration(run)*24*time.Hour + time.Duration(i)*time.Minute)
	status := []string{"failed", "changed", "unchanged"}[(i+run)%3]
	r := inventory.Report{
		ID: fleet.DigestOf(fmt.Appendf(nil, "%s %d", name, run)), Certname: fleet.Certname(name), Environment: fleet.Environment(env),
		Status: status, Noop: i%2 == 1, CorrectiveChange: run == 1, PuppetVersion: "7.23.0", ReportFormat: 12, ConfigVersion: "v" + fmt.Sprint(run),
		CachedCatalog: "not_used", Origin: inventory.Origin{Producer: "puppet.example.test", ProducedAt: at.Add(90 * time.Second)}, StartedAt: at,
		EndedAt: at.Add(time.Minute), ReceivedAt: at.Add(2 * time.Minute),
		Metrics: json.RawMessage(`{"time":{"name":"time","label":"Time","values":[["total","Total",1.5]]}}`),
		Resources: []inventory.ResourceStatus{{
			Type: "File", Title: "/etc/a", ContainmentPath: []string{"Stage[main]", "Role::Web", "File[/etc/a]"}, File: "/x.pp", Line: 7,
			Time: at, Events: []inventory.Event{
				{Property: "mode", Previous: json.RawMessage(`"0600"`), Desired: json.RawMessage(fmt.Sprint(i)), Message: "mode changed", Name: "mode_changed", Status: "success", Time: at},
				{Property: "ensure", Desired: json.RawMessage(`"present"`), Message: "it broke", Status: []string{"failure", "noop"}[run], Time: at.Add(time.Second)},
			},
		}, {Type: "Exec", Title: "/bin/x", Skipped: true, Time: at}, {Type: "File", Title: "/same", Time: at}},
	}
	if err := s.Reports.SaveReport(tb.Context(), r); err != nil {
		tb.Fatal(err)
	}
	for _, older := range append(o.rows["reports"], o.rows["events"]...) {
		if older.node == name {
			older.fields["latest_report?"] = false
		}
	}
	node["report_timestamp"], node["report_environment"], node["latest_report_hash"] = r.EndedAt, env, string(r.ID)
	node["latest_report_status"], node["latest_report_noop"], node["latest_report_noop_pending"] = status, r.Noop, false
	node["latest_report_corrective_change"], node["cached_catalog_status"] = r.CorrectiveChange, "not_used"
	o.add("reports", name, map[string]any{
		"hash": string(r.ID), "puppet_version": "7.23.0", "report_format": 12.0, "configuration_version": r.ConfigVersion,
		"start_time": r.StartedAt, "end_time": r.EndedAt, "producer_timestamp": r.ProducedAt, "receive_time": r.ReceivedAt, "producer": r.Producer,
		"transaction_uuid": nil, "catalog_uuid": nil, "code_id": nil, "job_id": nil, "cached_catalog_status": "not_used", "environment": env,
		"status": status, "noop": r.Noop, "noop_pending": false, "corrective_change": r.CorrectiveChange, "type": "agent", "latest_report?": true,
	})
	for n, e := range r.Resources[0].Events {
		row := map[string]any{
			"report": string(r.ID), "configuration_version": r.ConfigVersion, "run_start_time": r.StartedAt, "run_end_time": r.EndedAt,
			"report_receive_time": r.ReceivedAt, "status": e.Status, "corrective_change": false, "timestamp": e.Time, "resource_type": "File",
			"resource_title": "/etc/a", "property": e.Property, "name": nil, "message": e.Message, "file": "/x.pp", "line": 7.0,
			"new_value": jsonValue{"present", true}, "old_value": jsonValue{},
			"containment_path": r.Resources[0].ContainmentPath, "containing_class": "Role::Web", "environment": env, "latest_report?": true,
		}
		if n == 0 {
			row["name"], row["new_value"], row["old_value"] = "mode_changed", jsonValue{float64(i), true}, jsonValue{"0600", true}
		}
		o.add("events", name, row)
	}
	o.add("events", name, map[string]any{
		"report": string(r.ID), "configuration_version": r.ConfigVersion, "run_start_time": r.StartedAt,
		"run_end_time": r.EndedAt, "report_receive_time": r.ReceivedAt, "status": "skipped", "corrective_change": false, "timestamp": at,
		"resource_type": "Exec", "resource_title": "/bin/x", "property": nil, "name": nil, "message": nil, "file": nil, "line": nil,
		"new_value": jsonValue{}, "old_value": jsonValue{}, "containment_path": nil, "containing_class": nil, "environment": env, "latest_report?": true,
	})
}

// addNames adds the entities that are sums of others.
func (o *oracle) addNames() {
	names := map[string]bool{}
	for _, r := range o.rows["facts"] {
		names[r.fields["name"].(string)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		o.add("fact_names", "", map[string]any{"name": name})
	}
	o.add("environments", "", map[string]any{"name": "production"})
	o.add("environments", "", map[string]any{"name": "testing"})
	o.add("producers", "", map[string]any{"name": "puppet.example.test"})
	o.add("producers", "", map[string]any{"name": "other.example.test"})
	for _, p := range inventory.DistinctPackages(append(fleetPackages(0), fleetPackages(1)...)) {
		o.add("packages", "", map[string]any{"package_name": p.Name, "version": p.Version, "provider": p.Provider})
	}
}
