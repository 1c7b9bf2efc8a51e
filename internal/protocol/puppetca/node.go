package puppetca

import (
	"net"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// caName stands for the CA itself where a certname is expected.
const caName = "ca"

func certname(r *http.Request) (fleet.Certname, error) {
	return fleet.ParseCertname(r.PathValue("name"))
}

func (a *server) getCertificate(w http.ResponseWriter, r *http.Request) error {
	if r.PathValue("name") == caName {
		bundle, changed := a.ca.Bundle()
		return sendPEM(w, r, bundle, changed)
	}
	name, err := certname(r)
	if err != nil {
		return err
	}
	c, err := a.ca.Certificate(r.Context(), name)
	if err != nil {
		return err
	}
	return sendPEM(w, r, c.PEM, c.IssuedAt)
}

// getCRL serves the list under any name, as the reference CA does.
func (a *server) getCRL(w http.ResponseWriter, r *http.Request) error {
	list, changed := a.ca.Revocations.CRL()
	return sendPEM(w, r, list, changed)
}

func (a *server) getRequest(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	waiting, err := a.ca.Requests.Waiting(r.Context(), name)
	if err != nil {
		return err
	}
	sendText(w, http.StatusOK, string(waiting.PEM))
	return nil
}

// remote is the address that a request came from, without its port.
func remote(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

func (a *server) putRequest(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	body, err := readBody(w, r, pki.MaxRequestBytes)
	if err != nil {
		return err
	}
	if _, err := a.ca.Requests.Submit(r.Context(), name, body, remote(r)); err != nil {
		if fault.Of(err) != fault.Unavailable {
			a.log.InfoContext(r.Context(), "certificate request refused", "node", name, "remote", r.RemoteAddr, "err", err)
		}
		return as(http.StatusBadRequest, err, fault.Denied, fault.Conflict)
	}
	sendText(w, http.StatusOK, "")
	return nil
}

func (a *server) deleteRequest(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	if err := a.ca.Requests.Delete(r.Context(), name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *server) postRenewal(w http.ResponseWriter, r *http.Request) error {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return fault.New(fault.Invalid, "renewal needs the client certificate that is to be renewed")
	}
	old := r.TLS.VerifiedChains[0][0]
	if err := a.renewals.Allow(old.Subject.CommonName, time.Now()); err != nil {
		return err
	}
	c, err := a.ca.Renew(r.Context(), old)
	if err != nil {
		return err
	}
	sendText(w, http.StatusOK, string(c.PEM))
	return nil
}
