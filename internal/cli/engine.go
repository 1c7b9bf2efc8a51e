package cli

import (
	"cmp"
	"strings"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/cli/print"
)

var engineCommand = asking{noun{
	use: "engine", short: "See which Puppet installations can compile",
	verbs: []declared{engineList},
}}

var engineList = verb[api.Nothing]{
	use: "list", short: "List the Puppet installations that can compile, and what they compile",
	prints: aList,
	long: `List the Puppet installations of the server that can compile, the default first, and the environments that each compiles.

The settings engines, engine_gems and engine name them and choose the default. tutti code deploy --engine makes one compile an
environment, tutti preview create --engine shows beforehand what that would change. See docs/puppet-versions.md.`,
	example: "  tutti engine list\n  tutti engine list -o json",
	run: lists(api.EngineList, func(*api.Nothing) print.Table[api.Engine] {
		return print.Table[api.Engine]{
			Columns: []string{"engine", "puppet", "ruby", "interpreter", "compiles", "note"},
			Spare:   []string{"interpreter", "compiles"},
			Row: func(e api.Engine) []any {
				note := ""
				if e.Default {
					note = "default"
				}
				return []any{
					e.Name, cmp.Or(strings.TrimSpace(strings.TrimPrefix(e.By+" "+e.Puppet, "puppet ")), "-"), cmp.Or(e.Ruby, "-"), e.Interpreter, e.Environments,
					cmp.Or(e.Trouble, note),
				}
			},
			Name:  func(e api.Engine) string { return e.Name },
			Empty: "This server has no engine.",
		}
	}),
}

// engineFlag is --engine.
func engineFlag(f flagSet, name *string) {
	f.StringVar(name, "engine", "", "the Puppet installation that compiles it (see tutti engine list); default: the server's default")
}
