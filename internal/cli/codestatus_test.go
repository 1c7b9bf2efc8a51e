package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

// People learn which nodes are unknown, why, and what to do; what was held stands in lines of its own. All of it fits a terminal.
func TestCodeStatusSaysWhy(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	const loss = "web-1.example.test: catalog held: lost all of its 2 resources (version 0123456789ab); it keeps the one of version 123456789abc"
	err := printCodeStatus(print.Printer{Out: &out, Width: 80}, api.CodeStatus{
		Environment: "production", Nodes: 1, Unknown: 1, Held: 3, Losses: []string{loss},
		NoFacts: &api.CodeNodes{Nodes: 1, Names: []string{"new-1"}}, Untried: &api.CodeNodes{Nodes: 7, Names: []string{"a", "b"}},
		Verified: &api.CodeVerified{Same: 3, Differs: 2, Nodes: []string{"web-2.example.test", "web-3.example.test"}},
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		": 1 node, 0 current,", "unknown: 1 node sent no facts yet (new-1);", "no catalog was tried yet for 7 nodes (a, b and 5 more);",
		"ALARM: 2 catalogs are not what plain Puppet gives (web-2.example.test, web-3.example.test): no catalog of this version is used again;",
		loss + " and 2 more nodes look: tutti catalog held; if it is meant: tutti catalog let NODE",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	for line := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(line) - 1; n > 80 {
			t.Errorf("a line has %d characters: %s", n, line)
		}
	}
}
