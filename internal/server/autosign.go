package server

import (
	"context"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/checkin"
	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// autosignPolicy says which requests are signed at once.
func (p *parts) autosignPolicy(c Config) (pki.AutosignPolicy, error) {
	switch c.Autosign {
	case "off":
		return pki.AutosignPolicy{}, nil
	case "all":
		return pki.AutosignPolicy{All: true}, nil
	case "list":
		policy := pki.AutosignPolicy{Names: c.AutosignList}
		if err := policy.Check(); err != nil {
			return pki.AutosignPolicy{}, bad("autosign_list", "%s", fault.Detail(err))
		}
		return policy, nil
	}
	program, err := p.signers.Autosign(c.Autosign)
	if err != nil {
		return pki.AutosignPolicy{}, bad("autosign", "%s", fault.Detail(err))
	}
	return pki.AutosignPolicy{Decide: program.Decide}, nil
}

// checkTruster refuses a program for external trusted data that cannot be run, at
// the start rather than at the first node.
func (p *parts) checkTruster(c Config) error {
	if c.TrustedExternalCommand == "" {
		return nil
	}
	if _, err := p.trusters.TrustedExternal(c.TrustedExternalCommand); err != nil {
		return bad("trusted_external_command", "%s", fault.Detail(err))
	}
	return nil
}

// openTrust makes what says who nodes are, and which groups they are in.
func (p *parts) openTrust() {
	p.trust = checkin.Trust{Authority: p.ca, External: p.external}
	p.groups = classify.NewService(classify.ServiceParts{
		Store: p.store.Groups, Known: checkin.Known{Inventory: p.store.Facts, Trust: p.trust}, Program: p.nodeClassifier, Log: p.log.Logger,
	})
}

// external asks the operator's program for trusted data, if there is one.
func (p *parts) external(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	command := p.config.Load().TrustedExternalCommand
	if command == "" {
		return nil, nil
	}
	program, err := p.trusters.TrustedExternal(command)
	if err != nil {
		return nil, err
	}
	return program.External(ctx, node)
}

// nodeClassifier is the operator's program that classifies nodes, if there is one.
func (p *parts) nodeClassifier() (classify.Program, error) {
	path := p.config.Load().ExternalNodeClassifier
	if path == "" {
		return classify.Program{}, nil
	}
	program, err := p.programs.NodeClassifier(path)
	if err != nil {
		return classify.Program{}, err
	}
	return classify.Program{Path: path, Classify: program.Classification}, nil
}

// checkNodeClassifier refuses a program that cannot be run, at the start rather
// than at the first node.
func (p *parts) checkNodeClassifier(c Config) error {
	if c.ExternalNodeClassifier == "" {
		return nil
	}
	if _, err := p.programs.NodeClassifier(c.ExternalNodeClassifier); err != nil {
		return bad("external_node_classifier", "%s", fault.Detail(err))
	}
	return nil
}
