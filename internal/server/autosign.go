package server

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"strings"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// autosign decides about one request by the settings as they are now.
func (p *parts) autosign(ctx context.Context, name fleet.Certname, requestPEM []byte) (bool, error) {
	c := p.config.Load()
	switch c.Autosign {
	case "off":
		return false, nil
	case "all":
		return true, nil
	case "list":
		return listed(c.AutosignList, string(name)), nil
	}
	policy, err := p.hooks.Autosign(c.Autosign)
	if err != nil {
		return false, err
	}
	return policy.Decide(ctx, name, requestPEM)
}

// listed says whether a name is in the list or below one of its *.domain patterns.
func listed(patterns []string, name string) bool {
	for _, pattern := range patterns {
		domain, wild := strings.CutPrefix(pattern, "*.")
		if pattern == name || pattern == "*" || wild && strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	return false
}

// Trusted is puppetapi.Truster: what a certificate says of its node, and what the
// operator's program knows besides.
func (d agentDoor) Trusted(ctx context.Context, cert *x509.Certificate) (json.RawMessage, error) {
	trusted, err := d.ca.Trusted(cert)
	command := d.config.Load().TrustedExternalCommand
	if err != nil || command == "" {
		return trusted, err
	}
	program, err := d.hooks.TrustedExternal(command)
	if err != nil {
		return nil, err
	}
	external, err := program.External(ctx, fleet.Certname(cert.Subject.CommonName))
	if err != nil {
		return nil, err
	}
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(trusted, &whole); err != nil {
		return nil, fault.Wrap(fault.Internal, err, "trusted data of %s", cert.Subject.CommonName)
	}
	whole["external"] = external
	return json.Marshal(whole)
}
