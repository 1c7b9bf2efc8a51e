package rest

import (
	"context"
	"crypto/x509"
	"maps"
	"net/netip"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// Certificates is what the operations need of the CA: *pki.Authority, and the listeners that show its certificates.
type Certificates interface {
	List(ctx context.Context) ([]pki.Entry, error)
	Show(ctx context.Context, name fleet.Certname) (pki.Entry, error)
	Revoke(ctx context.Context, name fleet.Certname) error
	Clean(ctx context.Context, names ...fleet.Certname) (unknown []fleet.Certname, err error)
	RotateServer(ctx context.Context) (*x509.Certificate, error)
	Bundle() (pem []byte, changed time.Time)
}

// CertificateEnds says who has no good certificate any more; see pki.CertificateStore.
type CertificateEnds interface {
	Ended(ctx context.Context, names []fleet.Certname, now time.Time) (map[fleet.Certname]pki.Ended, error)
}

// CertificateRequests are signed, or dropped; *pki.Requests is one.
type CertificateRequests interface {
	Sign(ctx context.Context, name fleet.Certname, ttl time.Duration) (pki.Certificate, error)
	Clean(ctx context.Context, from string) (int, error)
	NewJoinToken(ctx context.Context, name fleet.Certname, ttl time.Duration) (string, error)
}

// certificates answers the operations of the CA.
type certificates struct {
	ca       Certificates
	requests CertificateRequests
}

func (h *certificates) bindings() []binding {
	return []binding{
		answer(api.CertificateList, h.listCertificates),
		answer(api.CertificateShow, h.showCertificate),
		answer(api.CertificateSign, h.signCertificate),
		answer(api.CertificateRevoke, h.revokeCertificate),
		answer(api.CertificateClean, h.cleanCertificate),
		answer(api.RequestClean, h.cleanRequests),
		answer(api.ServerRotate, h.rotateServer),
		answer(api.JoinTokenCreate, h.createJoinToken),
	}
}

func (h *certificates) listCertificates(ctx context.Context, request api.CertificateListRequest) (api.List[api.Certificate], error) {
	list := api.List[api.Certificate]{Items: []api.Certificate{}}
	switch pki.State(request.State) {
	case "", pki.Requested, pki.Signed, pki.Revoked:
	default:
		return list, fault.New(fault.Invalid, "state must be requested, signed or revoked, not %.40q", request.State)
	}
	entries, err := h.ca.List(ctx)
	if err != nil {
		return list, err
	}
	for _, entry := range entries {
		if request.State == "" || string(entry.State) == request.State {
			list.Items = append(list.Items, certificateOf(entry))
		}
	}
	return list, nil
}

func (h *certificates) showCertificate(ctx context.Context, request api.NameRequest) (api.Certificate, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Certificate{}, err
	}
	entry, err := h.ca.Show(ctx, name)
	if err != nil {
		return api.Certificate{}, err
	}
	answer := certificateOf(entry)
	answer.PEM = string(entry.PEM)
	return answer, nil
}

func certificateOf(e pki.Entry) api.Certificate {
	c := api.Certificate{
		Name: string(e.Certname), State: string(e.State), Fingerprint: e.Fingerprints.SHA256,
		NotBefore: timeOf(e.NotBefore), NotAfter: timeOf(e.NotAfter), AltNames: e.AltNames,
		Received: timeOf(e.ReceivedAt), From: e.From,
	}
	if e.Serial != nil {
		c.Serial = fleet.Serial(e.Serial)
	}
	if len(e.Extensions)+len(e.AuthorizationExtensions) > 0 {
		c.Extensions = map[string]string{}
		maps.Copy(c.Extensions, e.Extensions)
		maps.Copy(c.Extensions, e.AuthorizationExtensions)
	}
	return c
}

func (h *certificates) signCertificate(ctx context.Context, request api.NameRequest) (api.Certificate, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Certificate{}, err
	}
	if _, err := h.requests.Sign(ctx, name, 0); err != nil {
		return api.Certificate{}, err
	}
	return h.showCertificate(ctx, request)
}

func (h *certificates) revokeCertificate(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	return api.Nothing{}, h.ca.Revoke(ctx, name)
}

func (h *certificates) cleanCertificate(ctx context.Context, request api.NameRequest) (api.Nothing, error) {
	name, err := fleet.ParseCertname(request.Name)
	if err != nil {
		return api.Nothing{}, err
	}
	unknown, err := h.ca.Clean(ctx, name)
	if err == nil && len(unknown) > 0 {
		err = fault.New(fault.NotFound, "there is no certificate and no request of %s", name)
	}
	return api.Nothing{}, err
}

func (h *certificates) cleanRequests(ctx context.Context, request api.RequestCleanRequest) (api.RequestCleanResponse, error) {
	if request.From != "" {
		address := request.From
		if network, err := netip.ParsePrefix(address); err == nil { // as a list shows it
			address = network.Addr().String()
		}
		if _, err := netip.ParseAddr(address); err != nil {
			return api.RequestCleanResponse{}, fault.New(fault.Invalid, "from must be an IP address, not %.80q", request.From)
		}
		request.From = address
	}
	dropped, err := h.requests.Clean(ctx, request.From)
	return api.RequestCleanResponse{Dropped: dropped}, err
}

func (h *certificates) rotateServer(ctx context.Context, _ api.Nothing) (api.Certificate, error) {
	made, err := h.ca.RotateServer(ctx)
	if err != nil {
		return api.Certificate{}, err
	}
	return certificateOf(pki.EntryOf(made)), nil
}

// The lifetimes of a join token.
const (
	defaultTokenLife = 24 * time.Hour
	maxTokenLife     = 366 * 24 * time.Hour
)

func (h *certificates) createJoinToken(ctx context.Context, request api.JoinTokenRequest) (api.JoinToken, error) {
	var name fleet.Certname
	if request.Name != "" {
		var err error
		if name, err = fleet.ParseCertname(request.Name); err != nil {
			return api.JoinToken{}, err
		}
	}
	life := defaultTokenLife
	if request.Seconds != 0 {
		if request.Seconds < 0 || request.Seconds > int64(maxTokenLife/time.Second) {
			return api.JoinToken{}, fault.New(fault.Invalid, "seconds must be 1 to %d, not %d", int64(maxTokenLife/time.Second), request.Seconds)
		}
		life = time.Duration(request.Seconds) * time.Second
	}
	expires := time.Now().Add(life)
	token, err := h.requests.NewJoinToken(ctx, name, life)
	bundle, _ := h.ca.Bundle()
	return api.JoinToken{Token: token, Expires: expires.UTC(), CAFingerprint: pki.FingerprintOf(bundle)}, err
}
