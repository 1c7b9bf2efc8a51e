package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"os"
	"slices"

	"github.com/tutti-project/tutti/internal/fault"
)

// trust finds the CA's certificates: those of an earlier join, those that were given, or the
// server's, if the fingerprint proves them.
func (j Join) trust(ctx context.Context) ([]*x509.Certificate, []byte, error) {
	from := j.at.ca
	kept, err := os.ReadFile(from)
	if own := ownPlaces(j.Dir).ca; errors.Is(err, os.ErrNotExist) && own != from {
		from = own
		kept, err = os.ReadFile(from)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, nil, unwritable(from, err)
	}
	if len(kept) == 0 {
		return j.trustAnew(ctx)
	}
	bundle, err := caCertificates(kept)
	if err != nil {
		return nil, nil, err
	}
	speaksFor, err := j.speaksFor(bundle)
	switch {
	case err != nil:
		return nil, nil, err
	case speaksFor:
		return bundle, kept, nil
	}
	if left, err := j.leftInVain(from); !left || err != nil {
		return nil, nil, errors.Join(err, j.foreign(from, bundle[0]))
	}
	return j.trustAnew(ctx)
}

func caCertificates(text []byte) ([]*x509.Certificate, error) {
	bundle, err := parseCertificates(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the CA's certificates: %s", fault.Detail(err))
	}
	return bundle, nil
}

// speaksFor tells whether what was given speaks for the CA of an earlier join; nothing speaks for it, too.
func (j Join) speaksFor(bundle []*x509.Certificate) (bool, error) {
	switch {
	case j.Fingerprint != "":
		sum, err := parseFingerprint(j.Fingerprint)
		return err == nil && proven(bundle, sum) == nil, err
	case len(j.CA) > 0:
		given, err := caCertificates(j.CA)
		return err == nil && slices.ContainsFunc(bundle, given[0].Equal), err
	}
	return true, nil
}

// leftInVain tells whether the CA of an earlier join counts no more: it is the agent's own, and is there without a certificate, so the join came to
// nothing. Else the node belongs to that fleet.
func (j Join) leftInVain(from string) (bool, error) {
	own := ownPlaces(j.Dir)
	joined, err := exists(own.certificate)
	return from == own.ca && !joined && err == nil, err
}

// trustAnew takes the CA's certificates that were given, or the server's, if the fingerprint proves them.
func (j Join) trustAnew(ctx context.Context) (bundle []*x509.Certificate, text []byte, err error) {
	if text = j.CA; len(text) == 0 {
		if text, err = unproven(j.Server).bundle(ctx); err != nil {
			return nil, nil, err
		}
	}
	if bundle, err = caCertificates(text); err != nil {
		if len(j.CA) == 0 {
			err = fault.New(fault.Invalid,
				"what %s gives as its CA's certificates is none: %s. Is it a Tutti server, and its port for agents, which is %s if nobody chose another?",
				j.Server.Host, fault.Detail(err), defaultPort)
		}
		return nil, nil, err
	}
	switch {
	case j.Fingerprint != "":
		sum, err := parseFingerprint(j.Fingerprint)
		if err != nil {
			return nil, nil, err
		}
		return bundle, text, proven(bundle, sum)
	case len(j.CA) == 0:
		return nil, nil, fault.New(fault.Invalid, "nothing proves that %s is your server. Its CA has the fingerprint\n  %s\nCompare that with what `tutti ca token` prints on the server, and give it with --ca-fingerprint",
			j.Server.Host, fingerprint(bundle[0]))
	}
	return bundle, text, nil
}

// foreign is that a node has another fleet's CA.
func (j Join) foreign(path string, ca *x509.Certificate) error {
	if j.shares != nil && path == j.at.ca {
		return fault.New(fault.Conflict, "Puppet on this node belongs to another fleet: %s holds the CA %q (%s), which is not that of %s. To bring the node over, remove what Puppet has of the other fleet: "+
			"`puppet ssl clean --localca`, and join again; or leave Puppet as it is: --no-puppet", path, ca.Subject.CommonName, fingerprint(ca), j.Server.Host)
	}
	return fault.New(fault.Conflict, "%s holds the certificates of another CA (%s): this node has joined another fleet; to leave it, remove %s", j.Dir,
		fingerprint(ca), j.Dir)
}
