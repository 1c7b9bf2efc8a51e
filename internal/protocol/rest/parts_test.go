package rest_test

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/code"
	"github.com/tutti-project/tutti/internal/code/codetest"
	"github.com/tutti-project/tutti/internal/codecheck"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/inventory"
)

// someEngines is rest.Engines: one that works, which is the default, and one that is broken.
type someEngines struct{}

func (someEngines) Engines() []api.Engine {
	return []api.Engine{
		{Name: "system", Default: true, Puppet: "7.23.0", Ruby: "3.1.2", JIT: true, Interpreter: "/usr/bin/ruby"},
		{Name: "puppet8", Interpreter: "/opt/puppet8/bin/ruby", Trouble: "there is no Ruby with Puppet"},
	}
}

// codeParts is rest.Code over fakes.
type codeParts struct {
	*code.Library
	*codetest.Store
}

// Deploy finds a mistake in whatever comes from a directory called broken.
func (c codeParts) Deploy(ctx context.Context, d code.Deployment, mode codecheck.Mode) (code.Version, *codecheck.Report, error) {
	if mode == codecheck.Unchecked || d.Origin != "broken" {
		version, err := c.Library.Deploy(ctx, d)
		return version, nil, err
	}
	wrong := codecheck.Finding{Level: codecheck.Mistake, File: "site.pp", Line: 3, Message: "wrong"}
	report := codecheck.Report{Environment: d.Environment, Files: 2, Findings: []codecheck.Finding{wrong}}
	if mode == codecheck.Forced {
		report.Forced = true
		version, err := c.Library.Deploy(ctx, d)
		return version, &report, err
	}
	return code.Version{}, nil, fault.Wrap(fault.Conflict, &codecheck.Refused{Report: report}, "a mistake")
}

// Manifest implements rest.Code.
func (c codeParts) Manifest(ctx context.Context, _ fleet.Environment, version fleet.Digest) (code.Manifest, error) {
	return c.Library.Manifest(ctx, version)
}

// Inspect finds nothing.
func (codeParts) Inspect(_ context.Context, env fleet.Environment, version fleet.Digest) (codecheck.Report, error) {
	return codecheck.Report{Environment: env, Version: version}, nil
}

// Found says that nothing was checked.
func (codeParts) Found(context.Context, fleet.Environment, fleet.Digest) (*codecheck.Report, error) {
	return nil, nil
}

// Status says that one of three nodes fails, one sent no facts, and two have a catalog of the version.
func (c codeParts) Status(ctx context.Context, env fleet.Environment) (code.Version, compile.CodeStatus, error) {
	version, err := c.Refresh(ctx, env)
	wrong := compile.CodeError{
		Error: compile.Error{Cause: compile.CauseCode, Message: "wrong", File: "manifests/site.pp", Line: 3}, Nodes: 1, Examples: []fleet.Certname{"web-1"},
	}
	return version, compile.CodeStatus{
		Nodes: 3, Current: 2, Failed: 1, Errors: []compile.CodeError{wrong},
		Unknown: 1, NoFacts: []fleet.Certname{"new-1"}, Of: []fleet.Certname{"db-1", "web-1"},
	}, err
}

// asker answers every question with one node, or with the rows it has for its PQL;
// the real one is tested in store/sql.
type asker struct{ rows map[string][]string }

func (a asker) Ask(ctx context.Context, q inventory.Question, each func(json.RawMessage) error) error {
	switch q.Query.Query().Entity {
	case "edges": // longer than any buffer, and then it fails
		if err := fill(each); err != nil {
			return err
		}
		return fault.Later(time.Second, "the query took too long")
	case "factsets": // longer than any buffer, and then nothing until the asker has gone
		if err := fill(each); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	}
	if rows, ok := a.rows[q.Query.Query().String()]; ok {
		for _, row := range rows {
			if err := each(json.RawMessage(row)); err != nil {
				return err
			}
		}
		return nil
	}
	if q.Counted != nil {
		q.Counted(1)
	}
	return each(json.RawMessage(`{"certname":"web-1"}`))
}

// fill gives more rows than any buffer holds.
func fill(each func(json.RawMessage) error) error {
	for range 10_000 {
		if err := each(json.RawMessage(`{"source_title":"/some/file/that/is/somewhere"}`)); err != nil {
			return err
		}
	}
	return nil
}

func (asker) AskEvents(context.Context, inventory.EventQuestion, func(json.RawMessage) error) error {
	return nil
}

// asked are the answers to questions that are not about web-1 alone.
var asked = map[string][]string{
	`nodes[certname] { inventory { facts.os.family = "Debian" } and certname ~ "n" }`: {
		`{"certname":"n-3"}`, `{"certname":"n-1"}`, `{"certname":"gone"}`, `{"certname":"n-4"}`,
	},
}
