package query

import "strings"

// Witnessed holds for a row k of fact_kinds whose node still bears witness.
const Witnessed = "EXISTS (SELECT 1 FROM facts f WHERE f.node_id = k.node_id AND f.path_id = k.path_id AND f.kind = k.kind)"

// Elsewhere lists what other nodes have of the kinds that lost their witness. It
// reads all facts, and only if there is such a kind.
const Elsewhere = "SELECT f.path_id, f.kind, min(f.node_id) FROM facts f WHERE f.path_id IN (SELECT k.path_id FROM fact_kinds k WHERE NOT " +
	Witnessed + ") GROUP BY f.path_id, f.kind"

// Clean leaves out of a text what PostgreSQL cannot keep: as it is stored, so it is asked for.
func Clean(text string) string { return strings.ReplaceAll(text, "\x00", "") }
