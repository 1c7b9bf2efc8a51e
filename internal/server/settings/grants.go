package settings

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/program/cell"
)

// checkCells looks at the settings of cells.
func (c Config) checkCells() error {
	if err := oneOf("compile_isolation", c.CompileIsolation, string(cell.BestEffort), string(cell.Strict), string(cell.Off)); err != nil {
		return err
	}
	if err := oneOf("program_isolation", c.ProgramIsolation, string(cell.BestEffort), string(cell.Off)); err != nil {
		return err
	}
	_, _, err := c.Grants()
	if err == nil {
		_, err = c.ProgramReaches()
	}
	return err
}

// granted is an entry of a setting: what is granted, and to which environment; empty: to all.
type granted struct {
	environment fleet.Environment
	what        string
}

// narrowed takes ENVIRONMENT: off an entry. What is granted may hold colons itself, behind a slash or an equals sign.
func narrowed(entry string) granted {
	name, rest, found := strings.Cut(entry, ":")
	if !found || name == "" || strings.ContainsAny(name, "/=") {
		return granted{what: entry}
	}
	return granted{fleet.Environment(name), rest}
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ownVariables are those that a cell sets itself.
var ownVariables = []string{"HOME", "TMPDIR", "PATH", "LANG", "LC_ALL", "TZ", "GEM_PATH", "MALLOC_ARENA_MAX"}

// Grants reads what environments may reach beyond their versions. all names every grant, so that catalogs made with others are not used again.
func (c Config) Grants() (of func(fleet.Environment) ruby.Grants, all string, err error) {
	table := map[fleet.Environment]*ruby.Grants{"": {}}
	for _, setting := range []struct {
		key     string
		entries []string
		add     func(g *ruby.Grants, what string) error
	}{
		{"compile_read", c.CompileRead, func(g *ruby.Grants, what string) error { g.Read = append(g.Read, what); return c.mayShow(what) }},
		{"compile_gems", c.CompileGems, func(g *ruby.Grants, what string) error { g.Gems = append(g.Gems, what); return c.mayShow(what) }},
		{"compile_variables", c.CompileVariables, addVariable},
		{"compile_network", c.CompileNetwork, addPort},
	} {
		for _, entry := range setting.entries {
			g := narrowed(entry)
			if g.environment != "" {
				if _, err := fleet.ParseEnvironment(string(g.environment)); err != nil {
					return nil, "", Bad(setting.key, "%q: %s", g.environment, fault.Detail(err))
				}
			}
			if table[g.environment] == nil {
				table[g.environment] = &ruby.Grants{}
			}
			if err := setting.add(table[g.environment], g.what); err != nil {
				return nil, "", Bad(setting.key, "%s", err)
			}
		}
	}
	of = func(env fleet.Environment) ruby.Grants {
		g := *table[""]
		if own := table[env]; env != "" && own != nil {
			g = ruby.Grants{
				Read: slices.Concat(g.Read, own.Read), Gems: slices.Concat(own.Gems, g.Gems),
				Variables: slices.Concat(g.Variables, own.Variables), Ports: slices.Concat(g.Ports, own.Ports),
			}
		}
		return g
	}
	return of, fmt.Sprintf("%q %q %q %q", c.CompileRead, c.CompileGems, c.CompileVariables, c.CompileNetwork), nil
}

// mayShow refuses paths with which the server's own data would be seen.
func (c Config) mayShow(path string) error {
	data, err := filepath.Abs(c.Data)
	switch {
	case err != nil:
		return err
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("%q holds a zero byte", path)
	case !filepath.IsAbs(path) || filepath.Clean(path) != path && filepath.Clean(path)+"/" != path:
		return fmt.Errorf("%q is not the absolute path of a file or directory", path)
	case contains(path, data) || contains(data, path):
		return fmt.Errorf("with %s code would see the server's data directory, %s", path, data)
	}
	return nil
}

// contains tells whether path is dir, or below it.
func contains(dir, path string) bool {
	relative, err := filepath.Rel(dir, path)
	return err == nil && relative != ".." && !strings.HasPrefix(relative, "../")
}

func addVariable(g *ruby.Grants, what string) error {
	name, _, given := strings.Cut(what, "=")
	switch {
	case !variableForm.MatchString(name):
		return fmt.Errorf("%q is not the name of a variable", name)
	case slices.Contains(ownVariables, name):
		return fmt.Errorf("%s is set by the server itself", name)
	case !given:
		value, set := os.LookupEnv(name)
		if !set {
			return fmt.Errorf("the server has no variable %s", name)
		}
		what = name + "=" + value
	case strings.ContainsRune(what, 0): // no process could be started with it
		return fmt.Errorf("the value of %s holds a zero byte", name)
	}
	g.Variables = append(g.Variables, what)
	return nil
}

func addPort(g *ruby.Grants, what string) error {
	port, err := portOf(what)
	g.Ports = append(g.Ports, port)
	return err
}
