// Package skeleton is beginnings of modules in several languages: programs of pxp-agent's contract, with one action that reads, one that
// acts, and a script that tries both.
package skeleton

import (
	"embed"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/fault"
)

//go:embed templates
var templates embed.FS

// File is a file of a module.
type File struct {
	Name       string
	Text       []byte
	Executable bool
}

// language is what differs beside the program.
type language struct {
	name    string // as people write it
	program string // the program's file; empty: the module itself
	build   string // makes the module of it
}

var languages = map[string]language{
	"sh":     {name: "shell"},
	"python": {name: "Python"},
	"ruby":   {name: "Ruby"},
	"go":     {name: "Go", program: "main.go", build: "go build -o MODULE .\n"},
}

// Languages are those in which a module can be begun.
func Languages() []string { return []string{"sh", "python", "ruby", "go"} }

// Files are those of a module of a name. A language that is none, and a name that no module can have, is Invalid.
func Files(module, in string) ([]File, error) {
	if err := action.CheckName("NAME", module); err != nil {
		return nil, err
	}
	if strings.Contains(module, ".") {
		return nil, fault.New(fault.Invalid, "field NAME: %.80q has a dot; the agent takes the file of a module by its name, which has no extension", module)
	}
	l, known := languages[in]
	if !known {
		return nil, fault.New(fault.Invalid, "%.40q is no language of a module; choose %s", in, strings.Join(Languages(), ", "))
	}
	program := l.program
	if program == "" {
		program = module
	}
	built := ""
	if l.build != "" {
		built = "Build it first: `" + strings.TrimSpace(l.build) + "`\n\n"
	}
	replaced := strings.NewReplacer("METADATA\n", text("metadata.json"), "LANGUAGE", l.name, "PROGRAM", program, "BUILT",
		strings.ReplaceAll(built, "MODULE", module), "BUILD\n", strings.ReplaceAll(l.build, "MODULE", module), "MODULE", module)
	files := []File{
		{program, []byte(replaced.Replace(text(in))), l.program == ""},
		{"test.sh", []byte(replaced.Replace(text("test.sh"))), true},
		{"README.md", []byte(replaced.Replace(text("README.md"))), false},
	}
	if in == "go" {
		files = slices.Insert(files, 1, File{Name: "go.mod", Text: []byte("module " + strings.ToLower(module) + "\n\ngo 1.22\n")})
	}
	return files, nil
}

func text(name string) string {
	content, err := templates.ReadFile("templates/" + name)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(content)
}
