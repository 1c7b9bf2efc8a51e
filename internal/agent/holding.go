package agent

import (
	"context"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// holding is what a node has of its own before it asks for anything.
type holding struct {
	key         crypto.Signer
	keyText     []byte            // to be written; nil: it is at its place
	leaf        *x509.Certificate // nil: there is none yet
	certificate []byte            // leaf, as it is kept
	before      bool              // the certificate was there already
	moved       bool              // key and certificate come from the agent's own directory
}

// have looks for the key and the certificate that are there, and makes a key if there is none. It writes nothing.
func (j Join) have(bundle []*x509.Certificate) (h holding, err error) {
	own := ownPlaces(j.Dir)
	if h.key, _, err = readKey(j.at.key); err != nil {
		return h, err
	}
	from := j.at
	if j.shares != nil {
		key, text, err := readKey(own.key)
		switch {
		case err != nil:
			return h, err
		case key != nil && h.key != nil && !sameKey(key.Public(), h.key.Public()):
			return h, j.twoKeys(own)
		case key != nil && h.key == nil:
			h.key, h.keyText, h.moved, from = key, text, true, own
		}
	}
	leaf, err := readCertificate(from.certificate)
	switch {
	case errors.Is(err, os.ErrNotExist) && h.key != nil:
		return h, nil
	case errors.Is(err, os.ErrNotExist):
		h.key, h.keyText, err = newKey()
		return h, err
	case err != nil:
		return h, err
	case h.key == nil:
		return h, fault.New(fault.Conflict, "there is the certificate %s, and no key %s that belongs to it. Put the key back; or give the name up: `tutti ca clean %s` on the server, remove the certificate, "+
			"and join again", from.certificate, from.key, j.Name)
	}
	h.leaf, h.before = leaf, true
	if h.certificate, err = os.ReadFile(from.certificate); err != nil {
		return h, unwritable(from.certificate, err)
	}
	return h, j.stands(from, leaf, h.key, bundle)
}

// twoKeys is the dead end in which agent and Puppet have each made a key.
func (j Join) twoKeys(own places) error {
	return fault.New(fault.Conflict, "there are two keys for %s: the agent's, %s, and Puppet's, %s; the server signs one. To share the agent's, give Puppet's up: `puppet ssl clean`; to share Puppet's, "+
		"give the agent's up: remove %s and %s, and `tutti ca clean %s` on the server if it has signed that one; then join again. To leave Puppet as it is: --no-puppet",
		j.Name, own.key, j.at.key, own.key, own.certificate, j.Name)
}

// stands says whether the certificate that is there can be used.
func (j Join) stands(at places, leaf *x509.Certificate, key crypto.Signer, bundle []*x509.Certificate) error {
	anew := fmt.Sprintf("run `tutti ca clean %s` on the server, and remove the file", j.Name)
	leave := ""
	if j.shares != nil {
		anew, leave = fmt.Sprintf("run `tutti ca clean %s` on the server and `puppet ssl clean` here, and join again", j.Name),
			"; to leave Puppet as it is: --no-puppet"
	}
	switch {
	case leaf.Subject.CommonName != string(j.Name):
		return fault.New(fault.Conflict, "this node has joined as %s already, not as %s; for another name remove %s", leaf.Subject.CommonName, j.Name, j.Dir)
	case !sameKey(leaf.PublicKey, key.Public()):
		return fault.New(fault.Conflict, "%s is not the key of %s; put back the one that belongs to it; or to join anew, %s%s", at.key, at.certificate, anew, leave)
	case time.Now().After(leaf.NotAfter):
		return fault.New(fault.Conflict, "the certificate %s has expired: it ended on %s; to join anew, %s%s", at.certificate,
			leaf.NotAfter.Format(time.DateOnly), anew, leave)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(bundle), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown && j.shares != nil {
		return fault.New(fault.Conflict, "Puppet has a certificate of another CA: %s was signed by %q, not by the CA of %s (%q). To bring the node over, give it up: `puppet ssl clean --localca`, and join again%s",
			at.certificate, leaf.Issuer.CommonName, j.Server.Host, bundle[0].Subject.CommonName, leave)
	}
	if err != nil {
		return fault.Wrap(fault.Conflict, err, "the certificate %s is not good (%v); to join anew, %s%s", at.certificate, err, anew, leave)
	}
	return nil
}

// good asks the server how the name stands: a certificate that was revoked is no use, and one that the server has for another key would
// only cost the token. One that it has for this key is taken.
func (j Join) good(ctx context.Context, ca *authority, list []byte, mine *holding) error {
	lists, err := parseLists(list)
	if err != nil {
		return err
	}
	leaf, text := mine.leaf, mine.certificate
	if leaf == nil {
		text, err = ca.certificate(ctx, j.Name)
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if leaf, err = j.checked(text, mine.key); err != nil {
			return err
		}
	}
	for _, l := range lists {
		if revokedBy(leaf, l) {
			return fault.New(fault.Conflict,
				"the certificate of %s was revoked (serial number %s). If the node may come back, run `tutti ca clean %s` on the server, %s here, and join again",
				j.Name, fleet.Serial(leaf.SerialNumber), j.Name, j.giveUp())
		}
	}
	mine.leaf, mine.certificate = leaf, text
	return nil
}

// giveUp is what removes the certificate of this node.
func (j Join) giveUp() string {
	if j.shares != nil {
		return "`puppet ssl clean`"
	}
	return "remove " + j.at.certificate
}

// keep writes what is known before the certificate is: the CA's certificates and the key.
func (j Join) keep(mine holding, bundle []byte) error {
	if j.shares != nil {
		if err := j.shares.makeDirs(j.at.owner); err != nil {
			return err
		}
	}
	if mine.keyText != nil {
		if err := j.at.put(j.at.key, mine.keyText, j.at.mode); err != nil {
			return err
		}
	}
	return j.at.put(j.at.ca, bundle, 0o644)
}

// checked reads a certificate and sees that it is for the key.
func (j Join) checked(text []byte, key crypto.Signer) (*x509.Certificate, error) {
	all, err := parseCertificates(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the certificate of %s: %s", j.Name, fault.Detail(err))
	}
	if !sameKey(all[0].PublicKey, key.Public()) {
		return nil,
			fault.New(fault.Conflict,
				"the name %s is taken: its certificate is for another key. If this node replaces the other one, run `tutti ca clean %s` on the server and join again; "+
					"else choose another name with --certname", j.Name, j.Name)
	}
	return all[0], nil
}
