package pdbdiff_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/pql"
)

// loose is a field whose value no input decides; its form must still be right.
type loose struct {
	entity, field string
	form          *regexp.Regexp
	row           string // of docs/puppetdb-compatibility.md; empty: both are right
}

var (
	aTime = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
	aFlag = regexp.MustCompile(`^(null|true|false)$`)
	aHash = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
)

// looseFields is all that is not compared by value.
var looseFields = [...]loose{
	{"nodes", "facts_timestamp", aTime, ""},   // when facts arrived
	{"nodes", "catalog_timestamp", aTime, ""}, // when the catalog arrived
	{"factsets", "timestamp", aTime, ""},
	{"inventory", "timestamp", aTime, ""},
	{"reports", "receive_time", aTime, ""},
	{"events", "report_receive_time", aTime, ""},
	{"factsets", "hash", aHash, "hashes"},
	{"catalogs", "hash", aHash, "hashes"},
	{"catalogs", "resource", aHash, "hashes"},
	{"resources", "resource", aHash, "hashes"},
	{"nodes", "latest_report_corrective_change", aFlag, "corrective change"},
	{"reports", "corrective_change", aFlag, "corrective change"},
	{"events", "corrective_change", aFlag, "corrective change"},
}

// loosener replaces what need not be equal in answers about an entity: the fields
// above by their names, and hashes of reports by what the report is.
func (s *server) loosener(entity string) func(key, text string) (string, bool) {
	names := map[string]string{}
	for transaction, hash := range s.hashes {
		names[hash] = transaction
	}
	return func(key, text string) (string, bool) {
		if transaction, ok := names[text]; ok {
			return "report " + transaction, true
		}
		if key == "href" {
			for hash, transaction := range names {
				if strings.Contains(text, hash) {
					return strings.ReplaceAll(text, hash, "report "+transaction), true
				}
			}
		}
		for _, l := range looseFields {
			if l.entity == entity && l.field == key && l.form.MatchString(text) {
				return "some " + key, true
			}
		}
		return "", false
	}
}

// entity is what a question's rows are.
func (q question) entity() string {
	segments := strings.Split(strings.Trim(q.path, "/"), "/")
	for _, segment := range slices.Backward(segments) {
		name := strings.ReplaceAll(segment, "-", "_")
		if pql.LookUp(name) != nil {
			return name
		}
	}
	query := q.params.Get("query")
	var body struct{ Query json.RawMessage }
	if json.Unmarshal([]byte(q.body), &body) == nil {
		query = string(body.Query)
		_ = json.Unmarshal(body.Query, &query) // a text holds PQL, a list is the tree itself
	}
	if parsed, err := pql.Read(query); err == nil {
		return parsed.Entity
	}
	return ""
}
