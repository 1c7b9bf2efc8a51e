package pql

import "slices"

// Type is what a field holds.
type Type uint8

// The types of fields.
const (
	TextType   Type = iota
	BoolType        // true or false
	NumberType      // whole
	TimeType        // ISO 8601
	JSONType        // any value
	ListType        // strings; a comparison asks for any element
	PathType        // keys and indexes that lead to a fact's leaf
)

func (t Type) String() string {
	return [...]string{"text", "boolean", "number", "timestamp", "json", "array", "path"}[t]
}

// FieldInfo is what the schema knows of a field.
type FieldInfo struct {
	Name   string
	Type   Type
	Answer bool // rows have it
	Test   bool // conditions may use it
	Nested bool // a path may lead into it
}

// Entity is one kind of row.
type Entity struct {
	Name   string
	Hidden bool // PQL has no name for it, the AST does
	Counts bool // it sums up events and has an address of its own only
	Fields []FieldInfo
}

// Field finds a field by name.
func (e *Entity) Field(name string) *FieldInfo {
	i := slices.IndexFunc(e.Fields, func(f FieldInfo) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &e.Fields[i]
}

// LookUp finds an entity by name; nil if there is none.
func LookUp(name string) *Entity {
	i := slices.IndexFunc(schema[:], func(e Entity) bool { return e.Name == name })
	if i < 0 {
		return nil
	}
	return &schema[i]
}

// Entities lists the schema. It must not be changed.
func Entities() []Entity { return schema[:] }

func field(name string, t Type) FieldInfo {
	return FieldInfo{Name: name, Type: t, Answer: true, Test: true}
}
func text(name string) FieldInfo   { return field(name, TextType) }
func truth(name string) FieldInfo  { return field(name, BoolType) }
func number(name string) FieldInfo { return field(name, NumberType) }
func stamp(name string) FieldInfo  { return field(name, TimeType) }
func list(name string) FieldInfo   { return field(name, ListType) }
func path(name string) FieldInfo   { return field(name, PathType) }
func value(name string) FieldInfo  { return field(name, JSONType) }

// nested is a structured field that paths lead into; as a whole it is only shown.
func nested(name string) FieldInfo {
	return FieldInfo{Name: name, Type: JSONType, Answer: true, Nested: true}
}

// shown is a field that conditions may not use.
func shown(name string) FieldInfo { return FieldInfo{Name: name, Type: JSONType, Answer: true} }

// tested is a field that rows do not have.
func tested(name string, t Type) FieldInfo { return FieldInfo{Name: name, Type: t, Test: true} }

// ofNode is what every entity that belongs to a node has.
var ofNode = [...]FieldInfo{text("certname"), tested("node_state", TextType)}

func nodeFields(fields ...FieldInfo) []FieldInfo {
	return append(ofNode[:len(ofNode):len(ofNode)], fields...)
}

// schema is the one table of what can be asked.
var schema = [...]Entity{
	{Name: "nodes", Fields: nodeFields(
		stamp("deactivated"), stamp("expired"), stamp("catalog_timestamp"), stamp("facts_timestamp"), stamp("report_timestamp"),
		text("catalog_environment"), text("facts_environment"), text("report_environment"), text("latest_report_hash"),
		text("latest_report_status"), truth("latest_report_noop"), truth("latest_report_noop_pending"),
		truth("latest_report_corrective_change"), text("latest_report_job_id"), text("cached_catalog_status"))},
	{Name: "facts", Fields: nodeFields(text("environment"), text("name"), value("value"))},
	{Name: "fact_names", Hidden: true, Fields: []FieldInfo{text("name")}},
	{Name: "fact_paths", Fields: []FieldInfo{path("path"), text("type"), text("name"), tested("depth", NumberType)}},
	{Name: "fact_contents", Fields: nodeFields(text("environment"), path("path"), text("name"), value("value"))},
	{Name: "factsets", Fields: nodeFields(
		text("environment"), stamp("timestamp"), stamp("producer_timestamp"), text("producer"), text("hash"), shown("facts"))},
	{Name: "inventory", Fields: nodeFields(stamp("timestamp"), text("environment"), nested("facts"), nested("trusted"))},
	{Name: "catalogs", Fields: nodeFields(
		text("version"), text("environment"), text("transaction_uuid"), text("catalog_uuid"), text("code_id"), text("job_id"),
		text("hash"), stamp("producer_timestamp"), text("producer"), shown("resources"), shown("edges"))},
	{Name: "resources", Fields: nodeFields(
		text("environment"), text("resource"), text("type"), text("title"), list("tags"), tested("tag", ListType), truth("exported"),
		text("file"), number("line"), nested("parameters"))},
	{Name: "collected", Fields: nodeFields(text("environment"), text("type"), text("title"), text("exporter"))},
	{Name: "edges", Fields: nodeFields(
		text("relationship"), text("source_type"), text("source_title"), text("target_type"), text("target_title"))},
	{Name: "reports", Fields: nodeFields(
		text("hash"), text("puppet_version"), number("report_format"), text("configuration_version"), stamp("start_time"),
		stamp("end_time"), stamp("producer_timestamp"), stamp("receive_time"), text("producer"), text("transaction_uuid"),
		text("catalog_uuid"), text("code_id"), text("job_id"), text("cached_catalog_status"), text("environment"), text("status"),
		truth("noop"), truth("noop_pending"), truth("corrective_change"), text("type"), shown("metrics"), shown("logs"),
		shown("resource_events"), tested("latest_report?", BoolType))},
	{Name: "events", Fields: nodeFields(
		text("report"), text("configuration_version"), stamp("run_start_time"), stamp("run_end_time"), stamp("report_receive_time"),
		text("status"), truth("corrective_change"), stamp("timestamp"), text("resource_type"), text("resource_title"),
		text("property"), text("name"), value("new_value"), value("old_value"), text("message"), text("file"), number("line"),
		list("containment_path"), text("containing_class"), text("environment"), tested("latest_report?", BoolType))},
	{Name: "environments", Fields: []FieldInfo{text("name")}},
	{Name: "producers", Hidden: true, Fields: []FieldInfo{text("name")}},
	{Name: "packages", Fields: []FieldInfo{text("package_name"), text("version"), text("provider")}},
	{Name: "package_inventory", Fields: nodeFields(text("package_name"), text("version"), text("provider"))},
	{Name: "agents", Fields: nodeFields(text("version"), text("os"), text("arch"), stamp("told"))},
	{Name: "modules", Fields: nodeFields(text("name"), text("version"), text("provider"), text("digest"), text("problem"))},
	{Name: "catalog_inputs", Hidden: true, Fields: nodeFields(stamp("producer_timestamp"), text("catalog_uuid"), shown("inputs"))},
	{Name: "catalog_input_contents", Hidden: true, Fields: nodeFields(
		stamp("producer_timestamp"), text("catalog_uuid"), text("type"), text("name"))},
	{Name: "event_counts", Hidden: true, Counts: true, Fields: []FieldInfo{
		number("failures"), number("successes"), number("noops"), number("skips"),
	}},
	{Name: "aggregate_event_counts", Hidden: true, Counts: true, Fields: []FieldInfo{
		number("failures"), number("successes"), number("noops"), number("skips"), number("total"),
	}},
}

// functions of columns.
var functions = [...]string{"count", "avg", "sum", "min", "max", "to_string", "jsonb_typeof"}

func isFunction(name string) bool { return slices.Contains(functions[:], name) }

// Aggregates says whether a column's function takes many rows.
func (c Column) Aggregates() bool {
	return c.Function != "" && c.Function != "to_string" && c.Function != "jsonb_typeof"
}

// Related says which fields of two entities must be equal for their rows to belong
// together; none if they have nothing to do with each other.
func Related(from, to string) (here, there []string) {
	for _, r := range relations {
		switch {
		case r.a == from && r.b == to:
			return r.as, r.bs
		case r.b == from && r.a == to:
			return r.bs, r.as
		}
	}
	a, b := LookUp(from), LookUp(to)
	for _, pair := range [...][3]string{{"environments", "environment", "name"}, {"producers", "producer", "name"}} {
		if to == pair[0] && a.Field(pair[1]) != nil {
			return []string{pair[1]}, []string{pair[2]}
		}
		if from == pair[0] && b.Field(pair[1]) != nil {
			return []string{pair[2]}, []string{pair[1]}
		}
	}
	if a.Field("certname") != nil && b.Field("certname") != nil {
		return []string{"certname"}, []string{"certname"}
	}
	return nil, nil
}

// relations are those that are not by certname.
var relations = [...]struct {
	a, b   string
	as, bs []string
}{
	{"facts", "fact_contents", []string{"certname", "name"}, []string{"certname", "name"}},
	{"facts", "fact_paths", []string{"name"}, []string{"name"}},
	{"facts", "fact_names", []string{"name"}, []string{"name"}},
	{"fact_contents", "fact_paths", []string{"path"}, []string{"path"}},
	{"fact_contents", "fact_names", []string{"name"}, []string{"name"}},
	{"events", "reports", []string{"report"}, []string{"hash"}},
	{"packages", "package_inventory", []string{"package_name", "version", "provider"}, []string{"package_name", "version", "provider"}},
}
