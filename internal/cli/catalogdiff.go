package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/diff"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// diffFlags say how a difference is printed.
type diffFlags struct {
	with                      string
	order, markdown, exitCode bool
}

var catalogDiff = verb[diffFlags]{
	use: "diff NODE [OTHER]", short: "Say how a node's newest catalog differs from another one", args: oneOrTwo("NODE", "OTHER"),
	long: `Say how a node's newest catalog differs from that of OTHER, or from the one given by --with:
resources that are added, removed and changed, parameter by parameter, text and the
content of files as a diff. Secrets are never shown: of them it says "(hidden)". What differs
in order only (before, require, notify, subscribe, tag, tags, edges) is counted; --order shows it.`,
	example: `  tutti catalog diff web-1.example.test web-2.example.test
  tutti catalog diff web-1.example.test --with catalog.json --exit-code
  tutti catalog diff web-1.example.test web-2.example.test -o json`,
	flags: func(f flagSet, in *diffFlags) {
		f.StringVar(&in.with, "with", "", "compare with a catalog in a `FILE`, as agents have it (- is standard input), or with a stored one of this digest")
		f.BoolVar(&in.order, "order", false, "show what differs in order only, too")
		f.BoolVar(&in.markdown, "markdown", false, "print Markdown, for a merge request")
		f.BoolVar(&in.exitCode, "exit-code", false, "end with exit code 3 if there is a difference (with --order, also if it is of order only)")
	},
	run: func(ctx context.Context, c *call, in *diffFlags) error {
		request, err := diffRequest(c.app, c.args, in.with)
		if err != nil {
			return err
		}
		return showDiff(ctx, c.app, request, *in)
	},
}

func diffRequest(a *app, args []string, with string) (api.CatalogDiffRequest, error) {
	request := api.CatalogDiffRequest{Name: args[0]}
	switch {
	case (len(args) == 2) == (with != ""):
		return request, usageError{errors.New("the other catalog is named by a second node or by --with: exactly one of them")}
	case len(args) == 2:
		request.Node = args[1]
		return request, nil
	}
	if digest, err := fleet.ParseDigest(with); err == nil {
		request.Digest = string(digest)
		return request, nil
	}
	text, err := readCatalog(a, with)
	request.Document = text
	return request, err
}

// readCatalog reads a file, or standard input.
func readCatalog(a *app, path string) (json.RawMessage, error) {
	from := a.system.In
	if path != "-" {
		file, err := openNamed("the catalog of --with", path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	}
	text, err := io.ReadAll(io.LimitReader(from, api.MaxBody))
	switch {
	case err != nil:
		return nil, fault.Wrap(fault.Invalid, err, "--with: %v", err)
	case len(text) == api.MaxBody:
		return nil, fault.New(fault.Invalid, "--with: %s has %d bytes or more, which is too large for a request", path, api.MaxBody)
	case !json.Valid(text):
		return nil, fault.New(fault.Invalid, "--with: %s is not JSON", path)
	}
	return text, nil
}

func showDiff(ctx context.Context, a *app, request api.CatalogDiffRequest, flags diffFlags) error {
	answer, err := ask(ctx, a, api.CatalogDiff, request)
	if err != nil {
		return err
	}
	switch {
	case a.printer().ForPrograms():
		err = a.printer().Thing(answer)
	case flags.markdown:
		err = diff.WriteMarkdown(a.system.Out, answer, flags.order)
	default:
		err = diff.WriteText(a.system.Out, answer, flags.order)
	}
	if err == nil && flags.exitCode && unequal(answer, flags.order) {
		return errDiffers
	}
	return err
}

// unequal says whether what was printed is a difference.
func unequal(d api.CatalogDifference, order bool) bool {
	return d.Added+d.Removed+d.Changed+len(d.ClassesAdded)+len(d.ClassesRemoved) > 0 ||
		d.Old.Environment != d.New.Environment || order && !d.Same
}
