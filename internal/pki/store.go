package pki

import (
	"context"
	"math/big"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Request is a certificate request that waits for a decision.
type Request struct {
	Certname   fleet.Certname
	PEM        []byte
	ReceivedAt time.Time
}

// Certificate is a certificate that this CA issued, or that was imported. Of a
// revoked one that an imported CA had already deleted, only the serial number
// and perhaps the name are known: PEM is then empty, Certname may be.
type Certificate struct {
	Certname  fleet.Certname
	Serial    *big.Int
	PEM       []byte
	NotBefore time.Time
	NotAfter  time.Time
	IssuedAt  time.Time
	RevokedAt time.Time // zero while it is good
	// Current is the certificate that its name stands for; older ones of the
	// same name stay known so that they can be revoked and listed in the CRL.
	Current bool
}

// Token is a one-time password for a join, kept as its SHA-256.
type Token struct {
	Hash      fleet.Digest
	Certname  fleet.Certname // empty: any name
	ExpiresAt time.Time
}

// Good tells whether t may be spent by name at now. At ExpiresAt it is over.
func (t Token) Good(name fleet.Certname, now time.Time) bool {
	return now.Before(t.ExpiresAt) && (t.Certname == "" || t.Certname == name)
}

// Store keeps requests, certificates and the revocation list. Every method may be
// called concurrently, from several processes, and is one transaction. Keys
// are not kept here. Times are kept to the second or better and come back in
// UTC; serial numbers are positive and have up to 20 bytes. What goes in and
// what comes out belongs to the caller.
type Store interface {
	// SaveRequest stores r; Conflict if a request of that name with other bytes
	// waits already, or a current, unrevoked certificate of that name exists.
	SaveRequest(ctx context.Context, r Request) error
	Request(ctx context.Context, name fleet.Certname) (Request, error)
	// Requests lists waiting requests by name.
	Requests(ctx context.Context) ([]Request, error)
	// DeleteRequest removes a waiting request; NotFound if there is none.
	DeleteRequest(ctx context.Context, name fleet.Certname) error

	// NextSerial hands out a serial number; never the same twice.
	NextSerial(ctx context.Context) (*big.Int, error)
	// RaiseSerial makes sure that NextSerial hands out numbers above n (import).
	RaiseSerial(ctx context.Context, n *big.Int) error

	// SaveCertificate stores c. If c.Current it takes the current mark from the
	// name's former certificate and removes the request of that name; otherwise
	// it touches nothing else. Conflict if that serial number is known already.
	SaveCertificate(ctx context.Context, c Certificate) error
	// Certificate returns the current certificate of a name.
	Certificate(ctx context.Context, name fleet.Certname) (Certificate, error)
	// Certificates lists current certificates by name.
	Certificates(ctx context.Context) ([]Certificate, error)
	// Revoke marks every unrevoked certificate of a name, current or not; it
	// returns those it marked, by serial number, and none is no error.
	Revoke(ctx context.Context, name fleet.Certname, at time.Time) ([]Certificate, error)
	// Revoked lists every revoked certificate, by serial number as a number.
	Revoked(ctx context.Context) ([]Certificate, error)
	// Forget takes away the name's current mark and its request: the name may be
	// asked for again. Revoked ones stay listed. NotFound if there was neither.
	Forget(ctx context.Context, name fleet.Certname) error

	// SaveToken stores a join token; Conflict if its hash is known already.
	SaveToken(ctx context.Context, t Token) error
	// SpendToken removes the token with that hash if it is good for name at now;
	// NotFound otherwise. Of several callers exactly one succeeds.
	SpendToken(ctx context.Context, hash fleet.Digest, name fleet.Certname, now time.Time) error
	// NextCRLNumber hands out revocation list numbers, each larger than before.
	NextCRLNumber(ctx context.Context) (*big.Int, error)
	RaiseCRLNumber(ctx context.Context, n *big.Int) error
}
