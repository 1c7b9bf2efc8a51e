package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
)

// authority is the CA of a server, asked over /puppet-ca/v1.
type authority struct {
	server *url.URL
	http   *http.Client
}

// Bounds of what a CA answers.
const (
	maxCertificateBytes = 1 << 20
	maxListBytes        = 64 << 20
	authorityTimeout    = 30 * time.Second
)

func newAuthority(server *url.URL, config *tls.Config) *authority {
	return &authority{server, &http.Client{Timeout: authorityTimeout, Transport: &http.Transport{
		TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true,
	}}}
}

// unproven asks a server whose certificate nothing is known of. Only the CA's certificates
// may be asked for, which are then held against a fingerprint.
func unproven(server *url.URL) *authority {
	return newAuthority(server, &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}) //nolint:gosec // what comes is proved by its fingerprint
}

func (a *authority) bundle(ctx context.Context) ([]byte, error) {
	return a.get(ctx, "certificate/ca", maxCertificateBytes)
}

func (a *authority) list(ctx context.Context) ([]byte, error) {
	return a.get(ctx, "certificate_revocation_list/ca", maxListBytes)
}

// certificate is NotFound until it has been signed.
func (a *authority) certificate(ctx context.Context, name fleet.Certname) ([]byte, error) {
	return a.get(ctx, "certificate/"+string(name), maxCertificateBytes)
}

// submit sends a request; Conflict carries the CA's own words.
func (a *authority) submit(ctx context.Context, name fleet.Certname, request []byte) error {
	_, err := a.do(ctx, http.MethodPut, "certificate_request/"+string(name), request, maxCertificateBytes)
	return err
}

// renew asks for a new certificate for the one that the connection shows.
func (a *authority) renew(ctx context.Context) ([]byte, error) {
	return a.do(ctx, http.MethodPost, "certificate_renewal", nil, maxCertificateBytes)
}

func (a *authority) get(ctx context.Context, path string, limit int64) ([]byte, error) {
	return a.do(ctx, http.MethodGet, path, nil, limit)
}

func (a *authority) do(ctx context.Context, method, path string, body []byte, limit int64) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, a.server.String()+"/puppet-ca/v1/"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain")
	r.Header.Set("Content-Type", "text/plain")
	response, err := a.http.Do(r)
	if err != nil {
		return nil, unreachable(ctx, a.server.Host, err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err != nil {
		return nil, unreachable(ctx, a.server.Host, err)
	}
	if int64(len(text)) > limit {
		return nil, fault.New(fault.Invalid, "the server's answer to %s is larger than %d bytes", path, limit)
	}
	said := strings.TrimSpace(fmt.Sprintf("%.500s", text))
	switch response.StatusCode {
	case http.StatusOK:
		return text, nil
	case http.StatusNotFound:
		return nil, fault.New(fault.NotFound, "%s does not know %s: %s", a.server.Host, path, said)
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict:
		return nil, fault.New(fault.Conflict, "%s", said)
	}
	return nil, fault.New(fault.Unavailable, "%s answers %s with %s: %s", a.server.Host, path, response.Status, said)
}

// unreachable words an error of the connection: what was tried, why not, what to do.
func unreachable(ctx context.Context, host string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	hint := "is the server running there, and is the port open?"
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		names := append([]string{}, name.Certificate.DNSNames...)
		for _, ip := range name.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
		hint = fmt.Sprintf("use one of the names in its certificate (%s), or add this one to dns_alt_names on the server", strings.Join(names, ", "))
	} else if api.NoName(err) {
		hint = "name the server as this machine knows it, by a name that is in its certificate, or give its address in /etc/hosts"
	} else if isAlert(err) {
		hint = "the server does not accept this node's certificate; `tutti agent doctor` says why"
	} else if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		hint = "its certificate does not come from the CA that this agent knows; is it the right server, and is this machine's clock right?"
	}
	return &fault.Error{Kind: fault.Unavailable, Detail: fmt.Sprintf("cannot reach %s: %s; %s", host, api.NoConnection(err), hint), Err: api.ErrUnreachable}
}
