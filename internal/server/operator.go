package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/program/cell"
	"github.com/tutti-project/tutti/internal/program/hook"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// operator runs the operator's programs that the settings name. Each kind has turns of its own: strangers make the autosign policy run,
// nodes wait for the others.
type operator struct {
	signers     *hook.Runner // of the autosign policy
	trusters    *hook.Runner // of external trusted data
	classifiers *hook.Runner // of the external node classifier
	config      *atomic.Pointer[settings.Config]
}

// openOperator makes it, with an empty directory for the cells that the programs run in.
func openOperator(data *datadir.Dir, cells *cell.Keeper, config *atomic.Pointer[settings.Config], log *slog.Logger) (operator, error) {
	c := config.Load()
	reaches, err := c.ProgramReaches()
	if err != nil {
		return operator{}, err
	}
	dir := data.Join("programs")
	if err := os.RemoveAll(dir); err != nil { // of a server that was killed
		return operator{}, fmt.Errorf("empty the directory of programs: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return operator{}, fmt.Errorf("make the directory of programs: %w", err)
	}
	runner := func(name string) *hook.Runner {
		cfg := hook.Config{Log: log}
		if cell.Mode(c.ProgramIsolation) != cell.Off {
			cfg.Cells, cfg.Reach, cfg.Dir = cells, reaches[name], dir
			cfg.Reach.Hide = []string{data.Path}
		}
		return hook.New(cfg)
	}
	return operator{
		signers:     runner(settings.AutosignProgram),
		trusters:    runner(settings.TrustedProgram),
		classifiers: runner(settings.ClassifierProgram),
		config:      config,
	}, nil
}

// autosignPolicy says which requests are signed at once.
func (o operator) autosignPolicy(c settings.Config) (pki.AutosignPolicy, error) {
	switch c.Autosign {
	case "off":
		return pki.AutosignPolicy{}, nil
	case "all":
		return pki.AutosignPolicy{All: true}, nil
	case "list":
		policy := pki.AutosignPolicy{Names: c.AutosignList}
		if err := policy.Check(); err != nil {
			return pki.AutosignPolicy{}, settings.Bad("autosign_list", "%s", fault.Detail(err))
		}
		return policy, nil
	}
	program, err := o.signers.Autosign(c.Autosign)
	if err != nil {
		return pki.AutosignPolicy{}, settings.Bad("autosign", "%s", fault.Detail(err))
	}
	return pki.AutosignPolicy{Decide: program.Decide}, nil
}

// checkTruster refuses a program for external trusted data that cannot be run, at
// the start rather than at the first node.
func (o operator) checkTruster(c settings.Config) error {
	if c.TrustedExternalCommand == "" {
		return nil
	}
	if _, err := o.trusters.TrustedExternal(c.TrustedExternalCommand); err != nil {
		return settings.Bad("trusted_external_command", "%s", fault.Detail(err))
	}
	return nil
}

// external asks the operator's program for trusted data, if there is one.
func (o operator) external(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	command := o.config.Load().TrustedExternalCommand
	if command == "" {
		return nil, nil
	}
	program, err := o.trusters.TrustedExternal(command)
	if err != nil {
		return nil, err
	}
	return program.External(ctx, node)
}

// nodeClassifier is the operator's program that classifies nodes, if there is one.
func (o operator) nodeClassifier() (classify.Program, error) {
	path := o.config.Load().ExternalNodeClassifier
	if path == "" {
		return classify.Program{}, nil
	}
	program, err := o.classifiers.NodeClassifier(path)
	if err != nil {
		return classify.Program{}, err
	}
	return classify.Program{Path: path, Classify: program.Classification}, nil
}

// checkNodeClassifier refuses a program that cannot be run, at the start rather
// than at the first node.
func (o operator) checkNodeClassifier(c settings.Config) error {
	if c.ExternalNodeClassifier == "" {
		return nil
	}
	if _, err := o.classifiers.NodeClassifier(c.ExternalNodeClassifier); err != nil {
		return settings.Bad("external_node_classifier", "%s", fault.Detail(err))
	}
	return nil
}
