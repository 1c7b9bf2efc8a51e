package query

// source is where an entity's rows come from. An @ in its texts stands for the
// number of its use, so that one entity can be used several times in a query.
type source struct {
	from   string
	joins  []extra // what from lacks, in order; a query has only those that it mentions
	parts  []extra // columns that stand in from where it has partsMark, likewise
	where  string  // holds for all its rows; may be empty
	node   string  // the id of the node that a row belongs to; empty for rows of no node
	fields map[string]sqlField
}

// partsMark is where a source's parts go.
const partsMark = "/*parts*/"

// extra is a join that adds one row of another table at most, and exactly one where it is not a
// LEFT JOIN: without it the rows are the same.
type extra struct{ name, text string }

var (
	joinNode    = func(id string) extra { return extra{"n@", "JOIN nodes n@ ON n@.id = " + id} }
	joinFacts   = func(node string) extra { return extra{"s@", "LEFT JOIN factsets s@ ON s@.node_id = " + node} }
	joinCatalog = func(node string) extra { return extra{"c@", "LEFT JOIN catalogs c@ ON c@.node_id = " + node} }
)

// sqlField is how a field is stored.
type sqlField struct {
	as     storedAs
	expr   string // NULL where there is no value
	kind   string // of a leaf: inventory.Kind, or -1 for what has structure
	number string // of a leaf
	raw    string // of a leaf: what it is assembled from
	column string // what expr is where there is a value
	when   string // of a flag: what it is true for
	there  bool   // it always has a value
}

type storedAs uint8

const (
	asText storedAs = iota
	asFlag
	asInt
	asTime
	asList      // JSON array of strings
	asPath      // path of a leaf
	asLeaf      // value of a fact
	asJSON      // JSON text
	asFacts     // packed facts
	asFactList  // the same, shown as a list of names and values
	asTrusted   // the same, shown without all but trusted
	asReport    // a part of a packed report
	asRows      // list of rows, see render
	asFloat     // of sums
	asAverage   // the same, never whole
	asLeafValue // assembled leaves below a path
)

func asA(as storedAs, expr string) sqlField { return sqlField{as: as, expr: expr} }

func textOf(expr string) sqlField {
	return sqlField{as: asText, expr: "NULLIF(" + expr + ", '')", column: expr}
}

func plainText(expr string) sqlField { return asA(asText, expr) }
func flagOf(expr string) sqlField    { return asA(asFlag, expr) }
func timeOf(expr string) sqlField {
	return sqlField{as: asTime, expr: "NULLIF(" + expr + ", 0)", column: expr}
}

func timeAt(expr string) sqlField { return sqlField{as: asTime, expr: expr, column: expr, there: true} }

// keyText is a text that a row is found by, and always has.
func keyText(expr string) sqlField {
	return sqlField{as: asText, expr: expr, column: expr, there: true}
}

func flagWhen(cond string) sqlField {
	return sqlField{as: asFlag, expr: "CASE WHEN " + cond + " THEN 1 ELSE 0 END", when: cond}
}
func countOf(expr string) sqlField { return asA(asInt, "NULLIF("+expr+", 0)") }

// narrowed is what is known of a condition before rows are read.
type narrowed struct {
	hoisted string // of facts: conditions on name and certname alone
	page    string // of facts: which are meant, node_id and name, if that is known
	shown   bool   // of facts: values are shown, not compared, so leaves need no order
	paths   bool   // of facts and leaves: few paths are meant
	latest  bool   // of reports and events: only each node's newest report is meant
}

// leavesOf joins nodes, paths and leaves. CROSS JOIN tells SQLite the order: with
// few paths one look-up for each node and path is far less than all leaves of a
// node. PostgreSQL finds the order itself.
func leavesOf(node, path, leaf string, paths bool) string {
	first, second := "facts "+leaf, "fact_paths "+path
	if paths {
		first, second = second, first
	}
	return "nodes " + node + " CROSS JOIN " + first + " CROSS JOIN " + second
}

// source describes an entity.
func (w Words) source(entity string, known narrowed) source {
	switch entity {
	case "nodes":
		return w.nodes()
	case "facts":
		return w.facts(known)
	case "fact_names":
		return source{from: "(SELECT DISTINCT name FROM fact_paths) p@", fields: map[string]sqlField{"name": plainText("p@.name")}}
	case "fact_paths":
		return w.factPaths()
	case "fact_contents":
		return w.factContents(known)
	case "factsets":
		return w.factsets()
	case "inventory":
		return w.inventory()
	case "catalogs":
		return w.catalogs()
	case "resources":
		return w.resources()
	case "collected":
		return w.collected()
	case "edges":
		return w.edges()
	case "reports":
		return w.reports(known)
	case "events":
		return w.events(known)
	case "environments":
		return source{
			from: `(SELECT environment AS name FROM nodes UNION SELECT environment FROM factsets UNION SELECT environment FROM catalogs
				UNION SELECT environment FROM versions) e@`, where: "e@.name <> ''", fields: map[string]sqlField{"name": plainText("e@.name")},
		}
	case "producers":
		return source{from: "(SELECT producer AS name FROM reports WHERE producer <> '' UNION SELECT producer FROM catalogs WHERE producer <> '' " +
			"UNION SELECT producer FROM factsets WHERE producer <> '') p@", fields: map[string]sqlField{"name": plainText("p@.name")}}
	case "catalog_inputs":
		fields := inputFields()
		fields["inputs"] = asA(asJSON, "i@.inputs")
		return source{from: "catalog_inputs i@", joins: []extra{joinNode("i@.node_id")}, node: "i@.node_id", fields: fields}
	case "catalog_input_contents":
		fields := inputFields()
		fields["type"], fields["name"] = plainText("(l@.value ->> 0)"), plainText("(l@.value ->> 1)")
		return source{
			from:  "catalog_inputs i@ CROSS JOIN " + w.either("json_each(i@.inputs) l@", "LATERAL jsonb_array_elements(CAST(i@.inputs AS jsonb)) l@(value)"),
			joins: []extra{joinNode("i@.node_id")}, node: "i@.node_id", fields: fields,
		}
	case "packages":
		return source{
			from: "packages p@", where: "EXISTS (SELECT 1 FROM node_packages i WHERE i.package_id = p@.id)", fields: packageFields(),
		}
	case "agents":
		return source{
			from: agentsOf, node: "n@.id", fields: map[string]sqlField{
				"certname": keyText("n@.certname"), "version": keyText("a@.version"), "os": keyText("a@.os"), "arch": keyText("a@.arch"), "told": timeAt("a@.told_at"),
			},
		}
	case "modules":
		return source{
			from: agentsOf + " JOIN set_modules m@ ON m@.set_digest = a@.modules", node: "n@.id", fields: map[string]sqlField{
				"certname": keyText("n@.certname"), "name": keyText("m@.name"), "version": textOf("m@.version"), "provider": keyText("m@.provider"),
				"digest": textOf("m@.digest"), "problem": textOf("m@.problem"),
			},
		}
	default: // package_inventory
		fields := packageFields()
		fields["certname"] = keyText("n@.certname")
		return source{
			from: "node_packages i@ JOIN packages p@ ON p@.id = i@.package_id", joins: []extra{joinNode("i@.node_id")}, node: "i@.node_id", fields: fields,
		}
	}
}

// agentsOf joins nodes with what their agents told of themselves.
const agentsOf = "agents a@ JOIN nodes n@ ON n@.certname = a@.certname"

func inputFields() map[string]sqlField {
	return map[string]sqlField{"certname": keyText("n@.certname"), "producer_timestamp": timeOf("i@.produced_at"), "catalog_uuid": textOf("i@.uuid")}
}

func packageFields() map[string]sqlField {
	return map[string]sqlField{"package_name": plainText("p@.name"), "version": plainText("p@.version"), "provider": plainText("p@.provider")}
}

func (w Words) nodes() source {
	return source{
		from: "nodes n@", node: "n@.id",
		joins: []extra{joinFacts("n@.id"), joinCatalog("n@.id"), {"r@", "LEFT JOIN reports r@ ON r@.digest = n@.latest_report"}},
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "deactivated": timeOf("n@.deactivated_at"), "expired": timeOf("n@.expired_at"),
			"catalog_timestamp": timeOf("c@.compiled_at"), "facts_timestamp": timeOf("s@.received_at"), "report_timestamp": timeOf("r@.ended_at"),
			"catalog_environment": plainText("c@.environment"), "facts_environment": plainText("s@.environment"),
			"report_environment": plainText("r@.environment"), "latest_report_hash": textOf("n@.latest_report"), "latest_report_status": textOf("n@.latest_status"),
			"latest_report_noop": flagOf("CASE WHEN n@.latest_report <> '' THEN n@.latest_noop END"), "latest_report_noop_pending": flagOf("r@.noop_pending"),
			"latest_report_corrective_change": flagOf("CASE WHEN n@.latest_report <> '' THEN n@.latest_corrective END"), "latest_report_job_id": textOf("r@.job_id"),
			"cached_catalog_status": textOf("r@.cached_catalog"),
		},
	}
}

// topPath is the path that a fact itself has; isTop tells it from those below.
const (
	topPath = `CASE WHEN substr(p.path, 1, 1) = '"' THEN '"' || replace(replace(p.name, '\', '\\'), '"', '\"') || '"' ELSE p.name END`
	isTop   = "p.path = " + topPath
)

// kindOfFact is inventory.Kind of a plain fact, -1 of an object, -2 of an array.
const kindOfFact = "CASE WHEN " + isTop + " AND f.kind < 5 THEN f.kind WHEN f.kind = 6 AND " + isTop +
	" OR substr(p.path, length(" + topPath + ") + 1, 1) = '[' THEN -2 ELSE -1 END"

// facts puts the leaves of each fact together.
func (w Words) facts(known narrowed) source {
	order := "p.path"
	if known.shown {
		order = ""
	}
	from, where := leavesOf("m", "p", "f", known.paths), " WHERE f.node_id = m.id AND f.path_id = p.id"
	switch {
	case known.page != "":
		from, where = known.page+" CROSS JOIN fact_paths p CROSS JOIN facts f", " WHERE p.name = k.name AND f.node_id = k.node_id AND f.path_id = p.id"
	case known.hoisted != "":
		where += " AND " + known.hoisted
	}
	return source{
		from: "(SELECT f.node_id, p.name" + partsMark + " FROM " + from + where + " GROUP BY f.node_id, p.name) v@",
		parts: []extra{
			{"v@.leaves", ", " + w.list("p.path, f.kind, f.value", order) + " AS leaves"},
			{"v@.kind", ", max(" + kindOfFact + ") AS kind"},
			{"v@.value", ", max(CASE WHEN f.kind < 5 AND " + isTop + " THEN f.value END) AS value"},
			{"v@.number", ", max(CASE WHEN " + isTop + " THEN f.number END) AS number"},
		},
		joins: []extra{joinNode("v@.node_id"), joinFacts("v@.node_id")},
		node:  "v@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "environment": plainText("s@.environment"), "name": plainText("v@.name"),
			"value": {as: asLeaf, expr: "v@.value", kind: "v@.kind", number: "v@.number", raw: "v@.leaves"},
		},
	}
}

func kindName(kind string) string {
	return "CASE " + kind + " WHEN 0 THEN 'null' WHEN 1 THEN 'boolean' WHEN 2 THEN 'integer' WHEN 3 THEN 'float' ELSE 'string' END"
}

func (w Words) factPaths() source {
	return source{
		from: "(SELECT p.id, p.path, p.name, k.kind FROM fact_kinds k JOIN fact_paths p ON p.id = k.path_id WHERE k.kind < 5 AND (" + Witnessed +
			" OR (k.path_id, k.kind) IN (SELECT o.path_id, o.kind FROM (" + Elsewhere + ") o))) p@",
		fields: map[string]sqlField{
			"path": {as: asPath, expr: "p@.path", raw: "p@.id"}, "type": plainText(kindName("p@.kind")), "name": plainText("p@.name"),
			"depth": {as: asPath, expr: "p@.path", raw: "p@.id"},
		},
	}
}

func (w Words) factContents(known narrowed) source {
	return source{
		from: leavesOf("n@", "p@", "f@", known.paths), joins: []extra{joinFacts("f@.node_id")},
		node: "f@.node_id", where: "f@.node_id = n@.id AND f@.path_id = p@.id AND f@.kind < 5",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "environment": plainText("s@.environment"), "name": plainText("p@.name"),
			"path":  {as: asPath, expr: "p@.path", raw: "p@.id"},
			"value": {as: asLeaf, expr: "f@.value", kind: "f@.kind", number: "f@.number", raw: ""},
		},
	}
}

func (w Words) factsets() source {
	return source{
		from: "factsets s@", joins: []extra{joinNode("s@.node_id")}, node: "s@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "environment": plainText("s@.environment"), "timestamp": timeOf("s@.received_at"),
			"producer_timestamp": timeOf("s@.produced_at"), "producer": textOf("s@.producer"), "hash": plainText("s@.digest"),
			"facts": {as: asFactList, expr: documentOf, raw: "n@.certname"},
		},
	}
}

const documentOf = "(SELECT d.document FROM fact_documents d WHERE d.node_id = s@.node_id)"

func (w Words) inventory() source {
	return source{
		from: "factsets s@", joins: []extra{joinNode("s@.node_id")}, node: "s@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "timestamp": timeOf("s@.received_at"), "environment": plainText("s@.environment"),
			"facts": asA(asFacts, documentOf), "trusted": asA(asTrusted, documentOf),
		},
	}
}

func (w Words) catalogs() source {
	return source{
		from: "catalogs c@", joins: []extra{joinNode("c@.node_id")}, node: "c@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "version": textOf("c@.config_version"), "environment": plainText("c@.environment"),
			"transaction_uuid": textOf("c@.transaction_uuid"), "catalog_uuid": textOf("c@.uuid"), "code_id": textOf("c@.code_id"), "job_id": textOf("c@.job_id"),
			"hash": plainText("c@.digest"), "producer_timestamp": timeOf("c@.produced_at"), "producer": textOf("c@.producer"),
			"resources": {as: asRows, raw: "n@.certname", expr: "(SELECT " + w.list(
				w.hex("r.id")+", r.type, r.title, r.tags, r.exported, r.file, r.line, COALESCE(p.parameters, '{}')", "r.type, r.title") +
				" FROM resources r LEFT JOIN resource_parameters p ON p.hash = r.parameters WHERE r.node_id = c@.node_id)"},
			"edges": {as: asRows, raw: "n@.certname", expr: "(SELECT " + w.list("e.source, e.target, e.relationship", "e.source, e.target, e.relationship") +
				" FROM edges e WHERE e.node_id = c@.node_id)"},
		},
	}
}

func (w Words) resources() source {
	return source{
		from: "resources r@", node: "r@.node_id",
		joins: []extra{joinNode("r@.node_id"), joinCatalog("r@.node_id"), {"p@", "LEFT JOIN resource_parameters p@ ON p@.hash = r@.parameters"}},
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "environment": plainText("c@.environment"), "resource": plainText(w.hex("r@.id")),
			"type": plainText("r@.type"), "title": plainText("r@.title"), "tags": asA(asList, "COALESCE(NULLIF(r@.tags, ''), '[]')"),
			"tag": asA(asList, "COALESCE(NULLIF(r@.tags, ''), '[]')"), "exported": flagOf("r@.exported"), "file": textOf("r@.file"),
			"line": countOf("r@.line"), "parameters": asA(asJSON, "COALESCE(p@.parameters, '{}')"),
		},
	}
}

func (w Words) collected() source {
	return source{
		from: "collected o@", node: "o@.node_id",
		joins: []extra{joinNode("o@.node_id"), joinCatalog("o@.node_id")},
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "environment": plainText("c@.environment"),
			"type": keyText("o@.type"), "title": keyText("o@.title"), "exporter": keyText("o@.exporter"),
		},
	}
}

// ends of an edge are stored as Type[title].
func (w Words) typeOf(ref string) sqlField {
	return plainText("substr(" + ref + ", 1, " + w.find(ref, "'['") + " - 1)")
}

func (w Words) titleOf(ref string) sqlField {
	at := w.find(ref, "'['")
	return plainText("substr(" + ref + ", " + at + " + 1, length(" + ref + ") - " + at + " - 1)")
}

func (w Words) edges() source {
	return source{
		from: "edges e@", joins: []extra{joinNode("e@.node_id")}, node: "e@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "relationship": plainText("e@.relationship"),
			"source_type": w.typeOf("e@.source"), "source_title": w.titleOf("e@.source"),
			"target_type": w.typeOf("e@.target"), "target_title": w.titleOf("e@.target"),
		},
	}
}

// newestOf joins each node with its newest report: that is how SQLite should go.
const newestOf = "nodes n@ CROSS JOIN reports r@"

func (w Words) reports(known narrowed) source {
	from, joins, where := "reports r@", []extra{joinNode("r@.node_id")}, ""
	if known.latest {
		from, joins, where = newestOf, nil, "r@.digest = n@.latest_report"
	}
	document := func(part string) sqlField {
		return sqlField{as: asReport, expr: "(SELECT d.document FROM report_documents d WHERE d.report_id = r@.id)", raw: "r@.digest", kind: part}
	}
	return source{
		from: from, joins: joins, where: where, node: "r@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "hash": plainText("r@.digest"), "puppet_version": plainText("r@.puppet_version"),
			"report_format": asA(asInt, "r@.report_format"), "configuration_version": plainText("r@.config_version"),
			"start_time": timeAt("r@.started_at"), "end_time": timeAt("r@.ended_at"), "producer_timestamp": timeOf("r@.produced_at"),
			"receive_time": timeAt("r@.received_at"), "producer": textOf("r@.producer"), "transaction_uuid": textOf("r@.transaction_uuid"),
			"catalog_uuid": textOf("r@.catalog_uuid"), "code_id": textOf("r@.code_id"), "job_id": textOf("r@.job_id"),
			"cached_catalog_status": textOf("r@.cached_catalog"), "environment": plainText("r@.environment"), "status": textOf("r@.status"),
			"noop": flagOf("r@.noop"), "noop_pending": flagOf("r@.noop_pending"), "corrective_change": flagOf("r@.corrective"),
			"type": plainText("r@.kind"), "metrics": document("metrics"), "logs": document("logs"), "resource_events": document("resource_events"),
			"latest_report?": flagWhen("r@.digest = n@.latest_report"),
		},
	}
}

func (w Words) events(known narrowed) source {
	from, joins, where := "events e@", []extra{{"r@", "JOIN reports r@ ON r@.id = e@.report_id"}, joinNode("r@.node_id")}, ""
	if known.latest {
		from, joins, where = newestOf+" CROSS JOIN events e@", nil, "r@.digest = n@.latest_report AND e@.report_id = r@.id"
	}
	return source{
		from: from, joins: joins, where: where, node: "r@.node_id",
		fields: map[string]sqlField{
			"certname": keyText("n@.certname"), "report": plainText("r@.digest"), "configuration_version": plainText("r@.config_version"),
			"run_start_time": timeAt("r@.started_at"), "run_end_time": timeAt("r@.ended_at"), "report_receive_time": timeAt("r@.received_at"),
			"status": textOf("e@.status"), "corrective_change": flagOf("e@.corrective"), "timestamp": timeOf("e@.happened_at"),
			"resource_type": plainText("e@.type"), "resource_title": plainText("e@.title"), "property": textOf("e@.property"), "name": textOf("e@.name"),
			"new_value": asA(asJSON, "NULLIF(e@.desired, '')"), "old_value": asA(asJSON, "NULLIF(e@.previous, '')"),
			"message": textOf("e@.message"), "file": textOf("e@.file"), "line": countOf("e@.line"),
			"containment_path": asA(asList, containment), "environment": plainText("r@.environment"),
			"containing_class": plainText(w.innermostClass(containment)),
			"latest_report?":   flagWhen("r@.digest = n@.latest_report"),
		},
	}
}

// innermostClass is the last of a containment path that is no reference to a resource.
func (w Words) innermostClass(path string) string {
	return "(SELECT l.value FROM " + w.Elements(path) + " l WHERE l.value NOT LIKE '%[%' ORDER BY l.at DESC LIMIT 1)"
}

// containment is a JSON array; an event that lies nowhere has none.
const containment = "NULLIF(NULLIF(e@.containment_path, 'null'), '')"
