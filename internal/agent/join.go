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
	Name        fleet.Certname // empty: Puppet's, or this machine's
	Token       string         // empty: somebody has to sign the request
	Fingerprint string         // of the CA
	CA          []byte         // its certificates in PEM, instead of a fingerprint
	Dir         string         // where everything is written to
	Wait        time.Duration  // for the signature; 0: look once
	Puppet      string         // the Puppet that shares the certificate; empty: it is left alone
	Named       bool           // Puppet is not where it usually is: agent.yaml names it
	Runs        bool           // agent.yaml says that the agent lets Puppet run on a schedule
	Say         func(format string, args ...any)

	at     places
	shares *neighbour // nil: the agent alone has the certificate
	asks   csrAttributes
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
	Shared      *Shared        `json:"puppet,omitempty"` // nil: Puppet was left alone
	Run         *FirstRun      `json:"run,omitempty"`    // nil: none was asked for
}

// Shared is what a Join did about Puppet.
type Shared struct {
	Puppet string   `json:"executable"`
	SSLDir string   `json:"ssldir"`
	Config string   `json:"config"`
	Set    []string `json:"set,omitempty"`   // in its puppet.conf, as "name = value"
	Taken  bool     `json:"taken,omitempty"` // Puppet had the certificate, and the agent took it
	Given  bool     `json:"given,omitempty"` // the agent had it before, and Puppet got it
}

// Run joins. Everything that it does can be done again: what is there is used. Nothing is written, and no token is spent, before what is
// there already was found to fit.
func (j Join) Run(ctx context.Context) (Joined, error) {
	if err := makeDir(j.Dir); err != nil {
		return Joined{}, err
	}
	if err := j.place(ctx); err != nil {
		return Joined{}, err
	}
	bundle, text, err := j.trust(ctx)
	if err != nil {
		return Joined{}, err
	}
	mine, err := j.have(bundle)
	if err != nil {
		return Joined{}, err
	}
	ca := newAuthority(j.Server, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: poolOf(bundle)})
	list, err := ca.list(ctx)
	if err != nil {
		return Joined{}, err
	}
	if err := j.good(ctx, ca, list, &mine); err != nil {
		return Joined{}, err
	}
	trusted, err := exists(j.at.ca)
	if err != nil {
		return Joined{}, err
	}
	if err := j.keep(mine, text); err != nil {
		return Joined{}, err
	}
	if mine.leaf == nil {
		if mine.leaf, err = j.obtain(ctx, ca, mine.key); err != nil {
			if fault.Is(err, fault.Conflict) && mine.keyText != nil && !mine.moved { // no request is there for the key: nothing is to be left behind
				_ = os.Remove(j.at.key)
				if !trusted {
					_ = os.Remove(j.at.ca)
				}
			}
			return Joined{}, err
		}
	} else if mine.moved || !mine.before {
		if err := j.at.put(j.at.certificate, mine.certificate, 0o644); err != nil {
			return Joined{}, err
		}
	}
	if err := j.at.put(j.at.crl, list, 0o644); err != nil {
		return Joined{}, err
	}
	done := Joined{
		Name: j.Name, Server: j.Server.String(), Dir: j.Dir, CA: fingerprint(bundle[0]), Certificate: fingerprint(mine.leaf), Expires: mine.leaf.NotAfter.UTC(),
		Before: mine.before,
	}
	return done, j.settle(ctx, &done, mine)
}

// place finds out where the certificate is to be, and what the node is called.
func (j *Join) place(ctx context.Context) (err error) {
	if j.Puppet == "" {
		j.at, err = placesNow(j.Dir)
		return err
	}
	n, err := askNeighbour(ctx, j.Puppet)
	if err != nil {
		return err
	}
	if j.Name == "" {
		if j.Name, err = fleet.ParseCertname(n.is["certname"]); err != nil {
			return fault.New(fault.Invalid, "Puppet's certname (%s) cannot be used: %s; give --certname", n.is["config"], fault.Detail(err))
		}
	}
	j.shares, j.at = &n, n.places(j.Name)
	if j.asks, err = readAttributes(n.is["csr_attributes"]); err != nil {
		return err
	}
	if j.Token == "" {
		j.Token = j.asks.password
	}
	return n.fits(j.Name, j.Server)
}

// settle makes the settings say what was done: Puppet's, and the agent's.
func (j Join) settle(ctx context.Context, done *Joined, mine holding) (err error) {
	if j.shares == nil {
		return writeSettings(j.Dir, j.Server, "", runsSetting(j.Runs), j.Say)
	}
	_ = os.Remove(filepath.Join(j.shares.is["requestdir"], string(j.Name)+".pem")) // of a certificate that is there now
	done.Shared = &Shared{
		Puppet: j.Puppet, SSLDir: j.shares.is["ssldir"], Config: j.shares.is["config"], Taken: mine.before && !mine.moved, Given: mine.before && mine.moved,
	}
	if done.Shared.Set, err = j.shares.configure(ctx, j.Name, j.Server); err != nil {
		return err
	}
	more := j.at.settings("The certificate is Puppet's, too: the agent renews it for both.")
	if j.Named {
		more += "puppet: " + strconv.Quote(j.Puppet) + "\n"
	}
	if err := writeSettings(j.Dir, j.Server, more+"renew_shared: true\n", runsSetting(j.Runs), j.Say); err != nil {
		return err
	}
	own := ownPlaces(j.Dir)
	for _, path := range []string{own.certificate, own.key, own.ca, own.crl} { // there is one key for the name, and it is Puppet's, too
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return unwritable(path, err)
		}
	}
	return nil
}

// settings are the lines of agent.yaml that name these places.
func (p places) settings(why string) string {
	var text strings.Builder
	text.WriteString("# " + why + "\n")
	for _, line := range [][2]string{{"ca_file", p.ca}, {"certificate_file", p.certificate}, {"key_file", p.key}, {"crl_file", p.crl}} {
		text.WriteString(line[0] + ": " + strconv.Quote(line[1]) + "\n")
	}
	return text.String()
}

// obtain sends a request and waits for the certificate.
func (j Join) obtain(ctx context.Context, ca *authority, key crypto.Signer) (*x509.Certificate, error) {
	request, err := newRequest(j.Name, key, j.Token, j.asks.more...)
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
	return leaf, j.at.put(j.at.certificate, text, 0o644)
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
			return nil,
				fault.New(fault.Unavailable, "the request of %s waits for its signature%s. Sign it on the server with `tutti ca sign %s`, and run this command again",
					j.Name, j.despite(), j.Name)
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
		said = strings.TrimSuffix(said, ": make a new one") // the CA does not know who reads that
		hint = "make a new one on the server: tutti ca token " + string(j.Name)
	case strings.Contains(said, "another key"), strings.Contains(said, "revoked"):
		hint = fmt.Sprintf("if this node replaces the other one, run `tutti ca clean %s` on the server and join again; else choose another name with --certname",
			j.Name)
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

// writeSettings writes agent.yaml. If it is there, it stays as it is, and gets at most the lines about certificates (files) when it has none.
func writeSettings(dir string, server *url.URL, files, more string, say func(string, ...any)) error {
	path := filepath.Join(dir, ConfigFile)
	line := "servers: [" + strconv.Quote(server.String()) + "]\n"
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return write(path, []byte("# Settings of tutti agent; `tutti agent run --help` lists them all.\n"+line+files+more), 0o644)
	}
	if err != nil {
		return unwritable(path, err)
	}
	if !strings.Contains(string(text), server.Host) {
		say("%s is there already and does not name this server; it should say\n  %s", path, strings.TrimSpace(line))
	}
	if runs := runsSetting(true); strings.Contains(more, runs) && !strings.Contains(string(text), runs) {
		say("%s is there already; for runs on a schedule it should say\n  %s", path, strings.TrimSpace(runs))
	}
	if files == "" || strings.Contains(string(text), files) {
		return nil
	}
	if strings.Contains(string(text), "key_file:") {
		say("%s is there already and names other certificates; it should say\n%s", path, strings.TrimSpace(files))
		return nil
	}
	if len(text) > 0 && !strings.HasSuffix(string(text), "\n") {
		text = append(text, '\n')
	}
	return rewrite(path, append(text, files...), 0o644)
}
