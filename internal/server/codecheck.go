package server

import (
	"context"
	"time"

	"github.com/tutti-project/tutti/internal/action/supply"
	"github.com/tutti-project/tutti/internal/cas"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/codecheck/groupcheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/compiler/ruby"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/yamljson"
)

// openChecks wires the checks of code, and of groups beside code, to their neighbours. It compiles on as many workers at once as one environment may have.
func (p *parts) openChecks(parser *ruby.Checker, orders compile.Orders, workers int) {
	p.checks = codecheck.New(codecheck.Parts{
		Code:     p.library,
		ToJSON:   yamljson.ToJSON,
		Versions: p.store.Versions,
		Store:    p.store.CodeChecks,
		Parser:   parser,
		Compiler: bounded{p.ruby, make(chan struct{}, workers)},
		Orders:   orders,
		Fleet:    checkedFleet{p.store.Wants, p.store.Queue, p.store.Reusables, p.store.CodeChecks},
		Survey: func(env fleet.Environment, version fleet.Digest) codecheck.Survey {
			return p.reuser.Survey(p.store.Reusables, env, version)
		},
		Supplied: codeFiles{p.library, p.blobs}.checkSupplied,
		Log:      p.log.Logger,
		Open:     codeFiles{p.library, p.blobs}.open,
	}, codecheck.Config{
		Nodes:  func() int { return p.config.Load().DeployCheckNodes },
		Reuses: func() bool { return p.config.Load().ReuseCatalogs },
		VolatileTTL: func() time.Duration {
			if c := p.config.Load(); c.ReuseCatalogs {
				return c.VolatileTTL
			}
			return 0
		},
	})
	p.groupDoubts = groupcheck.New(groupcheck.Parts{
		Code: p.library, Versions: p.store.Versions, Reader: parser, Facts: p.store.Facts, Nodes: p.knownNodes(),
		Open: codeFiles{p.library, p.blobs}.open,
	})
}

// codeFiles reads files of versions.
type codeFiles struct {
	library *code.Library
	blobs   cas.Store
}

// open reads one.
func (f codeFiles) open(ctx context.Context, d fleet.Digest) ([]byte, error) {
	return cas.Bytes(ctx, f.blobs, d, code.MaxFileBytes)
}

// checkSupplied tells of modules of actions that no node could use as mistakes of a version.
func (f codeFiles) checkSupplied(ctx context.Context, env fleet.Environment, version fleet.Digest) ([]codecheck.Finding, error) {
	tree, err := f.library.Tree(ctx, env, version)
	if err != nil {
		return nil, err
	}
	problems, err := supply.Check(ctx, tree, f.open)
	var found []codecheck.Finding
	for _, wrong := range problems {
		found = append(found, codecheck.Finding{Level: codecheck.Mistake, File: wrong.Path, Message: wrong.Reason})
	}
	return found, err
}

// bounded is a compiler of which at most as many compile as turns has room for.
type bounded struct {
	compile.Compiler
	turns chan struct{}
}

// Compile implements compile.Compiler.
func (b bounded) Compile(ctx context.Context, order compile.Order) (compile.Outcome, error) {
	select {
	case b.turns <- struct{}{}:
		defer func() { <-b.turns }()
	case <-ctx.Done():
		return compile.Outcome{}, ctx.Err()
	}
	return b.Compiler.Compile(ctx, order)
}

// admit stages a version that is to be deployed, and checks it.
func (d deployments) admit(ctx context.Context, deployment code.Deployment, mode codecheck.Mode) (*codecheck.Report, error) {
	if mode == codecheck.Checked && !d.config.Load().DeployCheck {
		mode = codecheck.Unchecked
	}
	if mode == codecheck.Unchecked {
		return nil, nil //nolint:nilnil // nothing was asked, nothing was found
	}
	staged, err := d.library.Stage(ctx, deployment)
	if err != nil {
		return nil, err
	}
	return d.checks.Admit(ctx, staged.Environment, staged.ID, mode)
}

// Inspect implements rest.Code.
func (d deployments) Inspect(ctx context.Context, env fleet.Environment, version fleet.Digest) (codecheck.Report, error) {
	return d.checks.Check(ctx, env, version, true)
}

// Found implements rest.Code.
func (d deployments) Found(ctx context.Context, env fleet.Environment, version fleet.Digest) (*codecheck.Report, error) {
	r, err := d.reports.Check(ctx, env, version)
	if fault.Is(err, fault.NotFound) {
		return nil, nil //nolint:nilnil // it was not checked
	}
	return &r, err
}
