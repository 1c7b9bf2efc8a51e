package ruby

import (
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/compile"
)

// wireInputs is what a worker says it read.
type wireInputs struct {
	File     []string `json:"file"`
	List     []string `json:"list"`
	Names    []string `json:"names"`
	Tree     []string `json:"tree"`
	Module   []string `json:"module"`
	Anywhere []string `json:"anywhere"`
	Values   []string `json:"values"`
	Present  []string `json:"present"`
	Volatile []string `json:"volatile"`
}

func (w *wireInputs) reads() *compile.Reads {
	if w == nil {
		return nil
	}
	reads := &compile.Reads{Values: w.Values, Present: w.Present, Volatile: w.Volatile}
	reads.Sources.Add(compile.Sources{
		Files: paths(w.File), Lists: paths(w.List), Names: paths(w.Names), Trees: paths(w.Tree), Modules: paths(w.Module), Anywhere: paths(w.Anywhere),
	})
	return reads
}

// paths leaves out what no file can be called: a line of text could not hold it.
func paths(list []string) []string {
	return slices.DeleteFunc(list, func(path string) bool { return strings.ContainsAny(path, "\n\x00") || path == "" })
}
