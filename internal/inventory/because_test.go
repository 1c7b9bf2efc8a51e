package inventory_test

import (
	"maps"
	"testing"

	"github.com/tutti-project/tutti/internal/inventory"
)

func TestBecause(t *testing.T) {
	t.Parallel()
	edge := func(source, relationship, target string) inventory.Edge {
		return inventory.Edge{Source: source, Relationship: relationship, Target: target}
	}
	edges := []inventory.Edge{
		edge("Class[app]", "contains", "File[/a]"),
		edge("Class[app]", "contains", "Service[a]"),
		edge("Class[web]", "contains", "File[/w]"),
		edge("Class[web]", "contains", "Exec[w]"),
		edge("File[/a]", "required-by", "Service[a]"),
		edge("Class[app]", "before", "Class[web]"),
		edge("File[/w]", "notifies", "Exec[w]"),
		edge("Exec[w]", "before", "File[/w]"), // a loop does no harm
		edge("File[/b]", "before", "Exec[b]"),
	}
	for name, c := range map[string]struct {
		failed, skipped []string
		want            map[string]string
	}{
		"nothing failed": {nil, []string{"Service[a]"}, map[string]string{}},
		"what needs it, and what needs its class": {
			[]string{"File[/a]"},
			[]string{"Service[a]", "File[/w]", "Exec[w]", "Exec[b]"},
			map[string]string{"Service[a]": "File[/a]", "File[/w]": "File[/a]", "Exec[w]": "File[/a]"},
		},
		"one because of another": {
			[]string{"File[/b]"}, []string{"Exec[b]"}, map[string]string{"Exec[b]": "File[/b]"},
		},
		"what was not skipped is no reason": {
			[]string{"File[/a]"}, []string{"Exec[w]"}, map[string]string{"Exec[w]": "File[/a]"},
		},
	} {
		if got := inventory.Because(c.failed, c.skipped, edges); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, not %v", name, got, c.want)
		}
	}
}
