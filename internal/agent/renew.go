package agent

import (
	"context"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net/url"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
)

// daily is how often the revocation list is fetched and the certificate's end looked at; retry, how soon
// after a failure.
const (
	daily = 24 * time.Hour
	retry = 15 * time.Minute
)

// keepCertificates renews the certificate before its end and fetches the revocation list, if they are
// the agent's own, or it shares them with puppet. Others are left to puppet.
func (d *daemon) keepCertificates(ctx context.Context) error {
	if !d.ownsCertificates() {
		return nil
	}
	for pause := rand.N(inTime(d.id.Certificate(), retry, time.Now())); ; { //nolint:gosec // no secret
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
		most := pauseFor(d.id.Certificate())
		if err := d.refresh(ctx); err != nil {
			d.log.WarnContext(ctx, "certificates not refreshed, will retry", "err", err)
			most = retry
		}
		pause = inTime(d.id.Certificate(), most, time.Now())
	}
}

// renewalDue says whether a certificate is renewed now: before its end by the setting, or when a third of its life is
// left, whichever comes later. So one that lives for days is not renewed all the time.
func renewalDue(c *x509.Certificate, before time.Duration, now time.Time) bool {
	return before != 0 && c.NotAfter.Sub(now) <= min(before, c.NotAfter.Sub(c.NotBefore)/3)
}

// pauseFor is about a day, and less for a certificate that does not live for many: there are several tries in the third
// of its life in which it is renewed.
func pauseFor(c *x509.Certificate) time.Duration {
	day := min(daily, c.NotAfter.Sub(c.NotBefore)/12)
	return day/2 + rand.N(day+1) //nolint:gosec // no secret
}

// inTime is most, or less for a certificate that ends soon: a tenth of what is left. So a node that was away until then is renewed in time. One that has
// ended is past help.
func inTime(c *x509.Certificate, most time.Duration, now time.Time) time.Duration {
	left := c.NotAfter.Sub(now)
	if left <= 0 {
		return most
	}
	return min(most, max(left/10, time.Second))
}

// refresh asks the servers in turn; the first that answers is enough.
func (d *daemon) refresh(ctx context.Context) (err error) {
	for _, address := range d.primaries() {
		var server *url.URL
		if server, err = ParseServer(address); err != nil {
			return err
		}
		if err = refresh(ctx, d.Config, d.id, server); err == nil {
			return nil
		}
	}
	return err
}

// refresh fetches the revocation list, and a new certificate if the time has come.
func refresh(ctx context.Context, c Config, id *Identity, server *url.URL) error {
	config, err := id.TLS()
	if err != nil {
		return err
	}
	ca := newAuthority(server, config.Clone())
	list, err := ca.list(ctx)
	if err != nil {
		return fmt.Errorf("fetch the revocation list: %w", err)
	}
	if lists, err := parseLists(list); err != nil || len(lists) == 0 {
		return fault.New(fault.Invalid, "what %s gave for a revocation list is none", server.Host)
	}
	if err := rewrite(c.CRLFile, list, 0o644); err != nil {
		return err
	}
	if !renewalDue(id.Certificate(), c.Renew, time.Now()) {
		return nil
	}
	text, err := ca.renew(ctx)
	if err != nil {
		return fmt.Errorf("renew the certificate: %w", err)
	}
	if err := acceptable(text, id); err != nil {
		return err
	}
	return rewrite(c.CertificateFile, text, 0o644)
}

// acceptable says whether a renewed certificate can take the old one's place.
func acceptable(text []byte, id *Identity) error {
	all, err := parseCertificates(text)
	if err != nil {
		return err
	}
	fresh, old := all[0], id.Certificate()
	if fresh.Subject.CommonName != old.Subject.CommonName || !sameKey(fresh.PublicKey, old.PublicKey) || !fresh.NotAfter.After(old.NotAfter) {
		return fault.New(fault.Invalid, "the renewed certificate is not for this node and its key, or ends no later than the old one; it is not used")
	}
	_, err = fresh.Verify(x509.VerifyOptions{Roots: poolOf(id.authorities()), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return err
}
