package pki

import (
	"context"
	"math/big"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// RequestHead is what is known of a waiting request without reading it.
type RequestHead struct {
	Certname   fleet.Certname
	ReceivedAt time.Time
	// From is the address that limits are counted for: of an IPv6 address its
	// network (/64); empty if it is not known.
	From string
}

// Request is a certificate request that waits for a decision.
type Request struct {
	RequestHead
	PEM []byte
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
	// Server marks one of the listener's own. It is never current: no name that a
	// node may have stands for it, and revoking a name leaves it alone.
	Server bool
}

// Spent tells whether a certificate that ended before a time is needed no more: it stands for no
// name, and its end says of it what a revocation would. One that only a number is known of stays.
func (c Certificate) Spent(before time.Time) bool {
	return !c.Current && !c.Server && len(c.PEM) > 0 && c.NotAfter.Before(before)
}

// Ended is why no certificate of a name is good any more.
type Ended struct {
	RevokedAt time.Time // zero: none was revoked, all of them expired
	NotAfter  time.Time // of the one that would be good longest
}

// EndedOf says whether certificates of one name, of which none is a server's, are all revoked or expired.
func EndedOf(certs []Certificate, now time.Time) (e Ended, ended bool) {
	for _, c := range certs {
		if c.RevokedAt.IsZero() && c.NotAfter.After(now) {
			return Ended{}, false
		}
		if c.RevokedAt.After(e.RevokedAt) {
			e.RevokedAt = c.RevokedAt
		}
		if c.NotAfter.After(e.NotAfter) {
			e.NotAfter = c.NotAfter
		}
	}
	return e, len(certs) > 0
}

// State is the word for it.
func (e Ended) State() string {
	if e.RevokedAt.IsZero() {
		return "expired"
	}
	return "revoked"
}

// Told tells people of a node's certificate, and what lets the node in again.
func (e Ended) Told(name fleet.Certname) string {
	if e.RevokedAt.IsZero() {
		return "its certificate expired on " + e.NotAfter.UTC().Format(time.DateOnly) + ": `tutti agent doctor` on the node says what to do"
	}
	return "its certificate was revoked on " + e.RevokedAt.UTC().Format(time.DateOnly) + ": if the node may come back, `tutti ca clean " + string(name) +
		"`, then join it again"
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
//
// Wide: the sum of its parts, each a port of its own; one transaction may be about several of them.
type Store interface {
	RequestStore
	LedgerStore
	SharedStore
	CertificateStore
	TokenStore
}

// RequestStore keeps requests that wait.
type RequestStore interface {
	// SaveRequest stores r; Conflict if a request of that name with other bytes
	// waits already, or a current, unrevoked certificate of that name exists.
	SaveRequest(ctx context.Context, r Request) error
	// ReplaceRequest stores r in place of any request of that name; Conflict if a
	// current, unrevoked certificate of that name exists.
	ReplaceRequest(ctx context.Context, r Request) error
	Request(ctx context.Context, name fleet.Certname) (Request, error)
	// Requests lists waiting requests by name.
	Requests(ctx context.Context) ([]Request, error)
	// RequestHeads lists waiting requests in the order in which they came.
	RequestHeads(ctx context.Context) ([]RequestHead, error)
	// DropRequests removes those of the requests that still wait, and counts them.
	DropRequests(ctx context.Context, names []fleet.Certname) (int, error)
	// DeleteRequest removes a waiting request; NotFound if there is none.
	DeleteRequest(ctx context.Context, name fleet.Certname) error
}

// LedgerStore keeps the CA's records as one: each change of certificates moves them from one anchor to the next.
type LedgerStore interface {
	// CAAnchor returns where these records stand; the zero anchor at first.
	CAAnchor(ctx context.Context) (Anchor, error)
	// ChangeCA makes a change in one transaction if the records stand at c.Before, and
	// moves them to c.After. At c.After it does nothing: a change may be offered
	// again. Conflict otherwise, or if a serial number is known already. c.Line is kept with it. A certificate
	// that is issued as current takes that mark from the name's former one and removes
	// the name's request; others touch nothing else. A serial number that is revoked
	// already, or unknown, stays as it is. A name that is forgotten loses its
	// current mark and its request; revoked ones stay listed.
	ChangeCA(ctx context.Context, c Change) error
	// RestateCA replaces every certificate by certs and moves the records to an anchor, in
	// one transaction. Requests and tokens stay; lines of the journal go.
	RestateCA(ctx context.Context, to Anchor, certs []Certificate) error
	// NextCRLNumber hands out revocation list numbers, each larger than before.
	NextCRLNumber(ctx context.Context) (*big.Int, error)
	RaiseCRLNumber(ctx context.Context, n *big.Int) error
}

// JournalLine is a line of the journal, which says how the CA came to an anchor's number. The first one of a journal says where it begins.
type JournalLine struct {
	Seq  int64
	Text []byte
}

// SharedStore keeps what authorities of several processes need of each other; see Config.Shared.
type SharedStore interface {
	// HoldCA waits until no other process holds the CA, and returns how to give it back; Unavailable when that takes long. It ends by
	// itself some seconds after its holder was heard of last, so it only keeps decisions apart: what keeps changes apart is ChangeCA.
	HoldCA(ctx context.Context) (release func(), err error)
	// JournalLines lists lines from a number on, by number, some hundred of them at most.
	JournalLines(ctx context.Context, from int64) ([]JournalLine, error)
	// KeepJournal replaces all lines. Conflict unless the records stand at an anchor.
	KeepJournal(ctx context.Context, at Anchor, lines []JournalLine) error
}

// CertificateStore reads what was issued and revoked.
type CertificateStore interface {
	// History lists every certificate there is, by serial number.
	History(ctx context.Context) ([]Certificate, error)
	// Certificate returns the current certificate of a name.
	Certificate(ctx context.Context, name fleet.Certname) (Certificate, error)
	// Certificates lists current certificates by name.
	Certificates(ctx context.Context) ([]Certificate, error)
	// ServerCertificates lists every certificate with the Server mark, by serial number.
	ServerCertificates(ctx context.Context) ([]Certificate, error)
	// Unrevoked lists every unrevoked certificate of a name, current or not, but no
	// server's, by serial number.
	Unrevoked(ctx context.Context, name fleet.Certname) ([]Certificate, error)
	// Ended says of those of the names that have certificates, but no good one, why; no server's certificate counts.
	Ended(ctx context.Context, names []fleet.Certname, now time.Time) (map[fleet.Certname]Ended, error)
	// Revoked lists every revoked certificate, by serial number as a number.
	Revoked(ctx context.Context) ([]Certificate, error)
	// PruneCertificates forgets certificates that were Spent before a time, and counts them.
	PruneCertificates(ctx context.Context, before time.Time) (int, error)
}

// TokenStore keeps join tokens.
type TokenStore interface {
	// PruneJoinTokens forgets tokens that ended before a time, and counts them.
	PruneJoinTokens(ctx context.Context, before time.Time) (int, error)
	// SaveToken stores a join token; Conflict if its hash is known already.
	SaveToken(ctx context.Context, t Token) error
	// Token returns the token with that hash, good or not; NotFound if there is none.
	Token(ctx context.Context, hash fleet.Digest) (Token, error)
	// SpendToken removes the token with that hash if it is good for name at now;
	// NotFound otherwise. Of several callers exactly one succeeds.
	SpendToken(ctx context.Context, hash fleet.Digest, name fleet.Certname, now time.Time) error
	// DropTokens removes every token.
	DropTokens(ctx context.Context) error
}
