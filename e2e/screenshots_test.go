//go:build screenshots

package e2e_test

import (
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/internal/sim"
)

// Pictures of the console's pages, to be looked at, and those of the README: `make screenshots`.
func TestScreenshots(t *testing.T) {
	begin(t, 60)
	out, err := filepath.Abs(filepath.Join("..", "bin", "screenshots"))
	if err != nil {
		t.Fatal(err)
	}
	pictures, err := filepath.Abs(filepath.Join("..", "docs", "pictures"))
	if err != nil {
		t.Fatal(err)
	}
	w := startConsole(t, sim.Names(120, "example.test"))
	w.works(t)
	w.browse(t, "screenshots.mjs", "TUTTI_SCREENSHOTS="+out, "TUTTI_PICTURES="+pictures)
}

// works makes what the pages of work have to show: groups, runs of a task, calls of actions, saved queries.
func (w *consoleWorld) works(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{
		{"group", "create", "Debian", "--rule", `facts.os.family = "Debian"`, "--description", "what all Debian machines get"},
		{
			"group", "create", "Web servers", "--parent", "Debian", "--rule", `name ~ "^sim-000" or trusted.extensions.pp_role = "web"`,
			"--description", "they answer browsers", "--variable", "tier=gold", "--data-value", `ssh::server::ciphers=["aes256-gcm@openssh.com"]`,
		},
		{"group", "create", "Canaries", "--parent", "Web servers", "--rule", `name ~ "^sim-0001"`, "--variable", "tier=silver"},
		{"group", "create", "Databases", "--rule", `facts.os.famly = "RedHat" and facts.processors.count >= 16`, "--environment", "staging", "--environment-group"},
		{"group", "create", "By hand", "--pin", w.red, "--pin", "web-99.example.test"},
		{"task", "run", "web::restart", "action=reload", "wait=7", "--where", `certname ~ "^sim-000"`, "--yes"},
		{"action", "run", "service", "status", "service=ssh", "--where", `certname ~ "^sim-"`},
		{"action", "run", "rpcutil", "ping", "--where", `certname ~ "^sim-000"`},
		{"query", "save", "failed", `nodes[certname, report_timestamp]{latest_report_status = "failed"}`, "--description", "whose last run failed"},
		{"query", "save", "families", `facts[value, count()]{name = "kernel" group by value}`},
		{"query", "save", "mine", `nodes[certname]{}`, "--private"},
	} {
		w.tutti(t, args...)
	}
}
