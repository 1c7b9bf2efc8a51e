package supply

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Problem is why no node can use a module that a version supplies.
type Problem struct {
	Path   string // of its metadata, or of its folder, below the environment's root
	Reason string
}

// Check says which modules of a version no node can use, in the words in which a node would say it. open reads a file of the version.
func Check(ctx context.Context, tree *code.Tree, open func(ctx context.Context, content fleet.Digest) ([]byte, error)) ([]Problem, error) {
	roots := map[string]string{}
	for _, m := range tree.Modules() {
		if _, hides := roots[m.Name]; !hides {
			roots[m.Name] = m.Path
		}
	}
	var problems []Problem
	for _, m := range Of(tree).Modules {
		p := Problem{Path: roots[m.Module] + "/" + action.SupplyDir + "/" + m.Name, Reason: m.Problem}
		if p.Reason == "" {
			var file string
			var err error
			if file, p.Reason, err = problemOf(ctx, m, open); err != nil {
				return nil, err
			}
			p.Path += file
		}
		if p.Reason != "" {
			problems = append(problems, p)
		}
	}
	return problems, nil
}

// problemOf looks at what a module says of itself, and whether there is anything that could run.
func problemOf(ctx context.Context, m action.Supplied, open func(ctx context.Context, content fleet.Digest) ([]byte, error)) (file, reason string, err error) {
	at := slices.IndexFunc(m.Files, func(f action.SuppliedFile) bool { return f.Path == action.MetadataFile })
	file = "/" + action.MetadataFile
	if m.Files[at].Size > action.MaxMetadataBytes {
		return file, fmt.Sprintf("it has more than %d bytes", action.MaxMetadataBytes), nil
	}
	text, err := open(ctx, m.Files[at].Digest)
	if err != nil {
		return "", "", err
	}
	if _, err := action.Parse(m.Name, text); err != nil {
		return file, fault.Detail(err), nil
	}
	if !slices.ContainsFunc(m.Files, isProgram) {
		return "", "its folder has no program: run, or run-OS or run-OS_ARCH for the nodes that are to have it", nil
	}
	return "", "", nil
}

func isProgram(f action.SuppliedFile) bool {
	name, _, _ := strings.Cut(f.Path, ".") // Windows has extensions
	return (name == "run" || strings.HasPrefix(name, "run-")) && !strings.Contains(f.Path, "/")
}
