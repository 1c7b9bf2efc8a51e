package tutti_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/reference/licences.md")

// licences are known by what their texts say. Others may not be linked into the program.
var licences = []struct{ name, says string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"MPL-2.0", "Mozilla Public License Version 2.0"},
	{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
	{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"},
	{"ISC", "Permission to use, copy, modify, and distribute this software for any purpose with or without fee"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "The names of its contributors may not be used"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce the above copyright notice"},
}

const licencesPage = "docs/reference/licences.md"

// What is linked into the program has a licence that may be, and the page that lists it is true.
func TestLicences(t *testing.T) {
	t.Parallel()
	found := linked(t)
	if len(found) < 10 {
		t.Fatalf("only %d modules are linked: nothing was looked at", len(found))
	}
	var page strings.Builder
	page.WriteString("# Licences\n\n<!-- Written by `make generate`; do not edit. -->\n\n" +
		"What the program is linked with, besides Go itself (BSD-3-Clause).\n\n| module | version | licence |\n|---|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(found)) {
		m := found[path]
		name := licenceOf(t, m.Dir)
		if name == "" {
			t.Errorf("%s has no licence that is known: read its text, and add it to licences or choose another module", path)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", path, m.Version, name)
	}
	page.WriteString("\n## The console\n\nWhat the pages for browsers are built of, besides the tools that build them.\n\n| package | version | licence |\n|---|---|---|\n")
	for _, p := range bundled(t) {
		if !slices.Contains(consoleLicences, p.Licence) {
			t.Errorf("%s has the licence %q: read it, and add it to consoleLicences or choose another package", p.name, p.Licence)
		}
		fmt.Fprintf(&page, "| `%s` | %s | %s |\n", p.name, p.Version, p.Licence)
	}
	if *update {
		if err := os.WriteFile(licencesPage, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(licencesPage)
	if err != nil || string(kept) != page.String() {
		t.Errorf("%s is not what is linked (%v): make generate", licencesPage, err)
	}
}

// consoleLicences may be in the console.
var consoleLicences = []string{"MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "0BSD", "Apache-2.0", "MPL-2.0", "Unlicense", "(MIT OR CC0-1.0)"}

// bundledPackage is a package of JavaScript as the lock file has it.
type bundledPackage struct {
	name    string
	Version string `json:"version"`
	Licence string `json:"license"`
	Dev     bool   `json:"dev"`
}

// bundled are the packages that the console may have code of: all that package-lock.json does not call tools.
func bundled(t *testing.T) (packages []bundledPackage) {
	t.Helper()
	text, err := os.ReadFile("console/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct{ Packages map[string]bundledPackage }
	if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(lock.Packages)) {
		if p := lock.Packages[path]; path != "" && !p.Dev {
			p.name = path[strings.LastIndex(path, "node_modules/")+len("node_modules/"):]
			packages = append(packages, p)
		}
	}
	if len(packages) < 5 {
		t.Fatalf("only %d packages are in the console: nothing was looked at", len(packages))
	}
	return packages
}

type linkedModule struct{ Path, Version, Dir string }

// linked are the modules of the program's packages.
func linked(t *testing.T) map[string]linkedModule {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=Module", "./cmd/tutti")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := map[string]linkedModule{}
	for decoder := json.NewDecoder(out); ; {
		var p struct{ Module *linkedModule }
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module != nil && p.Module.Version != "" {
			found[p.Module.Path] = *p.Module
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return found
}

// licenceOf names the licences of a module; empty: it has none that is known.
func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "COPYING*", "License*", "license*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // a directory
			}
			if names := licencesIn(string(text)); len(names) > 0 {
				return strings.Join(names, ", ")
			}
		}
	}
	return ""
}

// licencesIn lists the licences that a text has, each once.
func licencesIn(text string) (names []string) {
	words := strings.Join(strings.Fields(text), " ")
	for _, l := range licences {
		longer := l.name == "BSD-2-Clause" && slices.Contains(names, "BSD-3-Clause") // which says the same, and more
		if strings.Contains(words, l.says) && !longer && !slices.Contains(names, l.name) {
			names = append(names, l.name)
		}
	}
	return names
}
