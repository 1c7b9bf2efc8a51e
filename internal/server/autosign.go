package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"

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

// Trusted is puppetapi.Truster: what a node's certificate says of it, and what
// the operator's program knows besides.
func (d agentDoor) Trusted(ctx context.Context, node fleet.Certname, cert *x509.Certificate) (json.RawMessage, error) {
	if cert == nil {
		var err error
		if cert, err = d.issued(ctx, node); err != nil {
			return nil, err
		}
	}
	command := d.config.Load().TrustedExternalCommand
	if command == "" {
		return d.ca.Trusted(cert, nil)
	}
	program, err := d.trusters.TrustedExternal(command)
	if err != nil {
		return nil, err
	}
	external, err := program.External(ctx, node)
	if err != nil {
		return nil, err
	}
	return d.ca.Trusted(cert, external)
}

// issued is the certificate that a node has.
func (d agentDoor) issued(ctx context.Context, node fleet.Certname) (*x509.Certificate, error) {
	entry, err := d.ca.Certificate(ctx, node)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(entry.PEM)
	if block == nil {
		return nil, fault.New(fault.Internal, "the stored certificate of %s is not PEM", node)
	}
	return x509.ParseCertificate(block.Bytes)
}
