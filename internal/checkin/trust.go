package checkin

import (
	"context"
	"crypto/x509"
	"encoding/json"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Authority knows certificates; *pki.Authority is one.
type Authority interface {
	// Issued is the certificate that a node has; NotFound.
	Issued(ctx context.Context, node fleet.Certname) (*x509.Certificate, error)
	// Trusted is what a certificate says, with what somebody else knows of the node.
	Trusted(cert *x509.Certificate, external json.RawMessage) (json.RawMessage, error)
}

// Trust makes $trusted of nodes.
type Trust struct {
	Authority Authority
	// External asks what the operator's program knows of a node; nil without such a program.
	External func(ctx context.Context, node fleet.Certname) (json.RawMessage, error)
}

// Trusted is what a node's certificate says of it, and what the operator's program knows besides. Without a
// certificate it takes the one that was issued to the node; NotFound if there is none.
func (t Trust) Trusted(ctx context.Context, node fleet.Certname, cert *x509.Certificate) (json.RawMessage, error) {
	if cert == nil {
		var err error
		if cert, err = t.Authority.Issued(ctx, node); err != nil {
			return nil, err
		}
	}
	external, err := t.External(ctx, node)
	if err != nil {
		return nil, err
	}
	return t.Authority.Trusted(cert, external)
}

// Known is Trusted of a node that does not ask itself; nothing of one without a certificate.
func (t Trust) Known(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	trusted, err := t.Trusted(ctx, node, nil)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return trusted, err
}

// Certified is what a node's certificate says, without the operator's program; nothing of a node that has none.
func (t Trust) Certified(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	cert, err := t.Authority.Issued(ctx, node)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return t.Authority.Trusted(cert, nil)
}

// Issued is compile.Trust: $trusted by the certificates that nodes have.
type Issued struct{ Trust Trust }

// Trusted implements compile.Trust.
func (i Issued) Trusted(ctx context.Context, node fleet.Certname) (json.RawMessage, error) {
	return i.Trust.Trusted(ctx, node, nil)
}
