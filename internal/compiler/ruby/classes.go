package ruby

import (
	"context"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/groupcheck"
)

var _ groupcheck.Reader = (*Checker)(nil)

// Classes implements groupcheck.Reader.
func (c *Checker) Classes(ctx context.Context, in groupcheck.Input) (map[string][]code.Class, error) {
	found := map[string][]code.Class{}
	for _, f := range in.Files {
		found[f.Path] = []code.Class{}
	}
	files := codecheck.Input{Environment: in.Environment, Version: in.Version, ModulePath: in.ModulePath, Files: in.Files, Open: in.Open}
	err := c.Parse(ctx, files, func(f codecheck.Finding) {
		if f.Level != "class" {
			delete(found, f.File)
			return
		}
		name, parameter, isParameter := strings.Cut(f.Message, " ")
		classes, known := found[f.File]
		at := slices.IndexFunc(classes, func(is code.Class) bool { return is.Name == name })
		switch {
		case !known:
		case isParameter && at >= 0:
			classes[at].Parameters = append(classes[at].Parameters, parameter)
		case at < 0:
			found[f.File] = append(classes, code.Class{Name: name})
		}
	})
	return found, err
}
