package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// refusal is a server's no to this node's certificate, in words. TLS has an alert for most reasons, and Go's servers send "bad certificate" for
// those that they found out themselves, as that it was revoked: so the agent looks into the revocation list of the server.
type refusal struct {
	why, mend string
	anew      bool // the node needs another certificate
	err       error
}

func (r refusal) Error() string { return r.why + "; " + r.mend }
func (r refusal) Unwrap() error { return r.err }

// isAlert says whether a server ended a connection with an alert of TLS.
func isAlert(err error) bool {
	remote, ok := errors.AsType[*net.OpError](err)
	return ok && remote.Op == "remote error"
}

// explain says why a server refuses this node's certificate, if that is what err is about.
func (i *Identity) explain(ctx context.Context, server string, err error) error {
	if !isAlert(err) {
		return err
	}
	leaf, name := i.Certificate(), i.Name()
	anew := fmt.Sprintf("if this node may come back, run `tutti ca clean %s` on the server, and `tutti agent join` here, which says what to remove", name)
	no := refusal{mend: anew, err: err}
	switch text := err.Error(); {
	case strings.Contains(text, "expired certificate") && time.Now().Before(leaf.NotAfter):
		no.why = fmt.Sprintf("the server says that the certificate of %s has expired, though it is good until %s", name, leaf.NotAfter.Format(time.RFC3339))
		no.mend = "set both machines' clocks"
	case strings.Contains(text, "expired certificate"):
		no.why = fmt.Sprintf("the certificate of %s has expired: it ended on %s", name, leaf.NotAfter.Format(time.DateOnly))
		no.anew = true
	case strings.Contains(text, "unknown certificate authority"):
		no.why = fmt.Sprintf("the certificate of %s comes from another CA (%s) than the server's", name, leaf.Issuer.CommonName)
		no.mend = "join the server that it belongs to; " + anew
	case i.revokedAt(ctx, server):
		no.why = fmt.Sprintf("the certificate of %s (serial number %s) was revoked", name, fleet.Serial(leaf.SerialNumber))
		no.anew = true
	default:
		no.why = fmt.Sprintf("the server does not accept the certificate of %s (%v)", name, err)
		no.mend = fmt.Sprintf("the server's log says why; `tutti ca show %s` there shows the certificate that it knows", name)
	}
	return no
}

// revokedAt says whether a server's revocation list, which everybody may have, names this node's certificate.
func (i *Identity) revokedAt(ctx context.Context, server string) bool {
	ctx, cancel := context.WithTimeout(ctx, authorityTimeout)
	defer cancel()
	text, err := newAuthority(&url.URL{Scheme: "https", Host: server}, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: poolOf(i.authorities())}).list(ctx)
	if err != nil {
		return false
	}
	lists, err := parseLists(text)
	if err != nil {
		return false
	}
	for _, list := range lists {
		for _, ca := range i.authorities() {
			if list.CheckSignatureFrom(ca) == nil && revokedBy(i.Certificate(), list) {
				return true
			}
		}
	}
	return false
}
