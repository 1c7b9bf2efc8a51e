package agent

import (
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// Join is a wish to belong to a server's fleet.
type Join struct {
	Server      *url.URL
	Name        fleet.Certname
	Token       string        // empty: somebody has to sign the request
	Fingerprint string        // of the CA
	CA          []byte        // its certificates in PEM, instead of a fingerprint
	Dir         string        // where everything is written to
	Wait        time.Duration // for the signature; 0: look once
	Runs        bool          // agent.yaml says that the agent lets Puppet run on a schedule
	Say         func(format string, args ...any)
}

// Joined is what a Join led to.
type Joined struct {
	Name        fleet.Certname `json:"name"`
	Server      string         `json:"server"`
	Dir         string         `json:"dir"`
	CA          string         `json:"ca_fingerprint"`
	Certificate string         `json:"certificate_fingerprint"`
	Expires     time.Time      `json:"expires"`
	Before      bool           `json:"joined_before"`
}

// Run joins. Everything that it does can be done again: what is there is used.
func (j Join) Run(ctx context.Context) (Joined, error) {
	if err := makeDir(j.Dir); err != nil {
		return Joined{}, err
	}
	bundle, err := j.trust(ctx)
	if err != nil {
		return Joined{}, err
	}
	key, err := j.key()
	if err != nil {
		return Joined{}, err
	}
	ca := newAuthority(j.Server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: poolOf(bundle)})
	leaf, before, err := j.have(bundle, key)
	if err != nil {
		return Joined{}, err
	}
	if !before {
		if leaf, err = j.obtain(ctx, ca, key); err != nil {
			return Joined{}, err
		}
	}
	list, err := ca.list(ctx)
	if err != nil {
		return Joined{}, err
	}
	if err := write(j.path(crlName), list, 0o644); err != nil {
		return Joined{}, err
	}
	return Joined{j.Name, j.Server.String(), j.Dir, fingerprint(bundle[0]), fingerprint(leaf), leaf.NotAfter.UTC(), before},
		writeSettings(j.Dir, j.Server, runsSetting(j.Runs), j.Say)
}

func (j Join) path(name string) string { return filepath.Join(j.Dir, name) }

// trust finds the CA's certificates: those of an earlier join, those that were given, or the
// server's, if the fingerprint proves them.
func (j Join) trust(ctx context.Context) ([]*x509.Certificate, error) {
	kept, err := os.ReadFile(j.path(caName))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, unwritable(j.path(caName), err)
	}
	text := j.CA
	switch {
	case len(kept) > 0:
		text = kept
	case len(text) == 0:
		if text, err = unproven(j.Server).bundle(ctx); err != nil {
			return nil, err
		}
	}
	bundle, err := parseCertificates(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the CA's certificates: %s", fault.Detail(err))
	}
	switch {
	case j.Fingerprint != "":
		sum, err := parseFingerprint(j.Fingerprint)
		if err != nil {
			return nil, err
		}
		if err := proven(bundle, sum); err != nil && len(kept) > 0 {
			return nil, fault.New(fault.Conflict, "%s holds the certificates of another CA (%s): this node has joined another fleet; to leave it, remove %s",
				j.Dir, fingerprint(bundle[0]), j.Dir)
		} else if err != nil {
			return nil, err
		}
	case len(kept) == 0 && len(j.CA) == 0:
		return nil, fault.New(fault.Invalid, "nothing proves that %s is your server. Its CA has the fingerprint\n  %s\nCompare that with what `tutti ca token` prints on the server, and give it with --ca-fingerprint",
			j.Server.Host, fingerprint(bundle[0]))
	}
	return bundle, write(j.path(caName), text, 0o644)
}

// key reads the node's key, or makes it.
func (j Join) key() (crypto.Signer, error) {
	text, err := os.ReadFile(j.path(keyName))
	if err == nil {
		key, err := parseKey(text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "%s: %s", j.path(keyName), fault.Detail(err))
		}
		return key, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, unwritable(j.path(keyName), err)
	}
	key, text, err := newKey()
	if err != nil {
		return nil, err
	}
	return key, write(j.path(keyName), text, 0o600)
}

// have looks for the certificate of an earlier join.
func (j Join) have(bundle []*x509.Certificate, key crypto.Signer) (*x509.Certificate, bool, error) {
	text, err := os.ReadFile(j.path(certificateName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, unwritable(j.path(certificateName), err)
	}
	leaf, err := j.checked(text, key)
	if err != nil {
		return nil, false, err
	}
	if leaf.Subject.CommonName != string(j.Name) {
		return nil, false, fault.New(fault.Conflict, "this node has joined as %s already, not as %s; for another name remove %s", leaf.Subject.CommonName, j.Name, j.Dir)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: poolOf(bundle), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return nil, false, fault.Wrap(fault.Conflict, err, "the certificate %s is not good (%v); to join anew, run `tutti ca clean %s` on the server, and remove the file",
			j.path(certificateName), err, j.Name)
	}
	return leaf, true, nil
}

// checked reads a certificate and sees that it is for the key.
func (j Join) checked(text []byte, key crypto.Signer) (*x509.Certificate, error) {
	all, err := parseCertificates(text)
	if err != nil {
		return nil, fault.New(fault.Invalid, "the certificate of %s: %s", j.Name, fault.Detail(err))
	}
	if !sameKey(all[0].PublicKey, key.Public()) {
		return nil, fault.New(fault.Conflict, "the name %s is taken: its certificate is for another key. If this node replaces the other one, run `tutti ca clean %s` on the server and join again; "+
			"else choose another name with --certname", j.Name, j.Name)
	}
	return all[0], nil
}

// obtain sends a request and waits for the certificate.
func (j Join) obtain(ctx context.Context, ca *authority, key crypto.Signer) (*x509.Certificate, error) {
	request, err := newRequest(j.Name, key, j.Token)
	if err != nil {
		return nil, err
	}
	refused := ca.submit(ctx, j.Name, request)
	if refused != nil && fault.Of(refused) != fault.Conflict {
		return nil, refused
	}
	text, err := j.await(ctx, ca, refused)
	if err != nil {
		return nil, err
	}
	leaf, err := j.checked(text, key)
	if err != nil {
		return nil, err
	}
	return leaf, write(j.path(certificateName), text, 0o644)
}

// How often a certificate is asked for: at first often, then seldom.
const (
	firstLook = 500 * time.Millisecond
	lastLook  = 10 * time.Second
)

// await asks for the certificate until it is there. A CA that refuses a request may have the certificate
// nevertheless: it refuses those of names that have one.
func (j Join) await(ctx context.Context, ca *authority, refused error) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, j.Wait+authorityTimeout)
	defer cancel()
	end := time.Now().Add(j.Wait)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		text, err := ca.certificate(ctx, j.Name)
		switch {
		case err == nil:
			return text, nil
		case refused != nil:
			return nil, j.refusal(refused)
		case fault.Of(err) != fault.NotFound:
			return nil, err
		case time.Now().Add(pause).After(end):
			return nil, fault.New(fault.Unavailable, "the request of %s waits for its signature%s. Sign it on the server with `tutti ca sign %s`, and run this command again", j.Name, j.despite(), j.Name)
		case pause == firstLook:
			j.Say("The request of %s waits for its signature%s. Sign it on the server: tutti ca sign %s", j.Name, j.despite(), j.Name)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

// despite is said of a request that waits though it carries a token.
func (j Join) despite() string {
	if j.Token == "" {
		return ""
	}
	return ", for the token is none that this CA made"
}

// refusal says what to do about the CA's no.
func (j Join) refusal(err error) error {
	said, hint := fault.Detail(err), "mend that and join again"
	switch {
	case strings.Contains(said, "token"):
		hint = "make a new one on the server: tutti ca token " + string(j.Name)
	case strings.Contains(said, "another key"), strings.Contains(said, "revoked"):
		hint = fmt.Sprintf("if this node replaces the other one, run `tutti ca clean %s` on the server and join again; else choose another name with --certname", j.Name)
	}
	return fault.New(fault.Conflict, "the CA refuses the request: %s; %s", said, hint)
}

// runsSetting is the line for runs on a schedule; without it there are none.
func runsSetting(scheduled bool) string {
	if !scheduled {
		return ""
	}
	return "runs: " + RunsScheduled + "\n"
}

// writeSettings writes agent.yaml, unless it is there. More is what follows the servers.
func writeSettings(dir string, server *url.URL, more string, say func(string, ...any)) error {
	path := filepath.Join(dir, ConfigFile)
	there, err := exists(path)
	if err != nil {
		return err
	}
	line := "servers: [" + strconv.Quote(server.String()) + "]\n"
	if there {
		text, err := os.ReadFile(path)
		if err == nil && !strings.Contains(string(text), server.Host) {
			say("%s is there already and does not name this server; it should say\n  %s", path, strings.TrimSpace(line))
		}
		if runs := runsSetting(true); err == nil && strings.Contains(more, runs) && !strings.Contains(string(text), runs) {
			say("%s is there already; for runs on a schedule it should say\n  %s", path, strings.TrimSpace(runs))
		}
		return nil
	}
	return write(path, []byte("# Settings of tutti agent; `tutti agent run --help` lists them all.\n"+line+more), 0o644)
}
