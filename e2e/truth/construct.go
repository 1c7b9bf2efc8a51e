package truth

import (
	"embed"
	"io/fs"
	"path"
	"slices"
	"strings"
)

//go:embed constructs/*.txt
var constructFiles embed.FS

// section is a named part of a construct.
type section struct{ name, text string }

// construct is one entry of the vocabulary.
type construct struct {
	name     string
	sections []section
}

// vocabulary is all of constructs/.
type vocabulary struct {
	sources, wrappers []string
	sound, mistakes   []construct
}

// readVocabulary parses the embedded files. They are part of the program: a mistake in them panics.
func readVocabulary() vocabulary {
	var v vocabulary
	names, err := fs.Glob(constructFiles, "constructs/*.txt")
	if err != nil {
		panic(err)
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := constructFiles.ReadFile(name)
		if err != nil {
			panic(err)
		}
		for _, c := range parseConstructs(string(text)) {
			switch {
			case c.name == "sources":
				v.sources = linesOf(c.sections[0].text)
			case c.name == "wrappers":
				v.wrappers = linesOf(c.sections[0].text)
			case path.Base(name) == "mistakes.txt":
				v.mistakes = append(v.mistakes, c)
			default:
				v.sound = append(v.sound, c)
			}
		}
	}
	return v
}

func parseConstructs(text string) []construct {
	var all []construct
	for line := range strings.Lines(text) {
		if name, ok := strings.CutPrefix(line, "=== "); ok {
			all = append(all, construct{name: strings.TrimSpace(name), sections: []section{{}}})
			continue
		}
		c := &all[len(all)-1]
		if name, ok := strings.CutPrefix(line, "-- "); ok {
			c.sections = append(c.sections, section{name: strings.TrimSuffix(strings.TrimSpace(name), " --")})
			continue
		}
		c.sections[len(c.sections)-1].text += line
	}
	for i := range all {
		for j := range all[i].sections {
			all[i].sections[j].text = strings.TrimRight(all[i].sections[j].text, "\n")
		}
	}
	return all
}

func linesOf(text string) []string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines
}
