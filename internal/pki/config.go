package pki

import (
	"context"
	"encoding/asn1"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// The key types of a new CA.
const (
	ECDSAP256 = "ecdsa-p256"
	RSA4096   = "rsa-4096"
)

const (
	// MaxRequestBytes is the largest certificate request in PEM.
	MaxRequestBytes = 64 << 10
	// backdate is how far a node's clock may be behind ours.
	backdate = 24 * time.Hour
	// serverRenewal is how long before its end the server's certificate is replaced.
	serverRenewal = 30 * 24 * time.Hour
)

// Config is what an operator may choose. The zero value of a field is its default.
type Config struct {
	// Dir holds keys and certificates. It is created with mode 0700.
	Dir string
	// KeyType of a CA that is made at the first start: ECDSAP256 or RSA4096.
	KeyType string
	// CAName is the CN of a new CA; by default "Tutti CA" and a random number.
	CAName string
	// LeafTTL is how long a node's certificate is good; 5 years.
	LeafTTL time.Duration
	// CATTL is how long a new CA is good; 15 years.
	CATTL time.Duration
	// CRLTTL is how long a revocation list is good; 5 years, because agents before
	// version 8 fetch it once.
	CRLTTL time.Duration
	// AllowSubjectAltNames lets requests ask for other names than their own.
	AllowSubjectAltNames bool
	// AllowAuthorizationExtensions lets requests ask for extensions that grant
	// rights, such as pp_cli_auth.
	AllowAuthorizationExtensions bool
	// AllowRenewal lets a node with a good certificate fetch a new one for its key.
	AllowRenewal bool
	// Autosign says which requests are signed at once; by default none.
	Autosign AutosignPolicy
	// OIDNames maps more object identifiers to short names for trusted data.
	OIDNames map[string]string
	// MaxWaiting is how many requests may wait for a decision; 20 000. MaxWaitingOfOne
	// is how many of them may come from one address; 2 000.
	MaxWaiting, MaxWaitingOfOne int
	// RequestTTL is how long a request waits before it is dropped; 0: for ever.
	RequestTTL time.Duration
	// RefreshEvery is how often Run looks for what other processes revoked; a minute.
	RefreshEvery time.Duration
	// Shared makes this one of several authorities of one CA, in processes that use the same store; see the package comment. Nil: it is alone.
	Shared Shared
	// WatchEvery is how often one of several looks whether another has done anything; two seconds.
	WatchEvery time.Duration
}

// Shared keeps secrets for authorities of one CA, so that nobody else can read them. Errors say what is wrong with the key to them.
type Shared interface {
	// Load returns a secret by name; nil if there is none.
	Load(ctx context.Context, name string) ([]byte, error)
	// Keep keeps a secret in place of what there was.
	Keep(ctx context.Context, name string, content []byte) error
}

func (c Config) withDefaults() (Config, error) {
	if c.KeyType == "" {
		c.KeyType = ECDSAP256
	}
	for value, def := range map[*time.Duration]time.Duration{
		&c.LeafTTL: years(5), &c.CATTL: years(15), &c.CRLTTL: years(5), &c.RefreshEvery: time.Minute,
		&c.WatchEvery: 2 * time.Second,
	} {
		if *value == 0 {
			*value = def
		}
	}
	if c.MaxWaiting == 0 {
		c.MaxWaiting = 20_000
	}
	if c.MaxWaitingOfOne == 0 {
		c.MaxWaitingOfOne = 2_000
	}
	return c, c.validate()
}

func years(n int) time.Duration { return time.Duration(n) * 365 * 24 * time.Hour }

func (c Config) validate() error {
	switch {
	case c.Dir == "":
		return fault.New(fault.Invalid, "the CA directory is empty: name one")
	case c.KeyType != ECDSAP256 && c.KeyType != RSA4096:
		return fault.New(fault.Invalid, "the CA key type is %q: use %s or %s", c.KeyType, ECDSAP256, RSA4096)
	case c.LeafTTL < time.Minute || c.CATTL < time.Hour || c.CRLTTL < time.Hour:
		return fault.New(fault.Invalid,
			"a certificate must be good for a minute or more, the CA and its revocation list for an hour or more")
	case c.RefreshEvery < 0 || c.WatchEvery < 0 || c.MaxWaiting < 0 || c.MaxWaitingOfOne < 0 || c.RequestTTL < 0:
		return fault.New(fault.Invalid, "the refresh interval, the limits of waiting requests and their life must not be negative")
	}
	for oid, name := range c.OIDNames {
		if _, err := parseOID(oid); err != nil {
			return err
		}
		if name == "" {
			return fault.New(fault.Invalid, "the short name of OID %s is empty", oid)
		}
	}
	return c.Autosign.Check()
}

func parseOID(text string) (asn1.ObjectIdentifier, error) {
	parts := strings.Split(text, ".")
	if len(parts) < 2 || len(parts) > 64 {
		return nil, fault.New(fault.Invalid, "the OID %.80q is not a list of 2 to 64 numbers with dots between", text)
	}
	oid := make(asn1.ObjectIdentifier, len(parts))
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 31)
		if err != nil {
			return nil, fault.New(fault.Invalid, "the OID %.80q holds %.20q where a number belongs", text, part)
		}
		oid[i] = int(n)
	}
	return oid, nil
}
