package puppetca

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
)

// maxTTL keeps a life in seconds from overflowing a duration.
const maxTTL = 100 * 365 * 24 * time.Hour

func (a *server) putCRL(w http.ResponseWriter, r *http.Request) error {
	body, err := readBody(w, r, maxCRLBytes)
	if err != nil {
		return err
	}
	if err := a.ca.Revocations.MergeCRLs(r.Context(), body); err != nil {
		return err
	}
	sendText(w, http.StatusOK, "The revocation lists are up to date.")
	return nil
}

func (a *server) getStatus(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	entry, err := a.ca.Show(r.Context(), name)
	if err != nil {
		return err
	}
	return sendJSON(w, statusOf(entry))
}

func (a *server) getStatuses(w http.ResponseWriter, r *http.Request) error {
	state := pki.State(r.URL.Query().Get("state"))
	switch state {
	case "", pki.Requested, pki.Signed, pki.Revoked:
	default:
		return fault.New(fault.Invalid, "the state %.40q is unknown: use requested, signed or revoked", state)
	}
	entries, err := a.ca.List(r.Context())
	if err != nil {
		return err
	}
	found := []status{}
	for _, entry := range entries {
		if state == "" || entry.State == state {
			found = append(found, statusOf(entry))
		}
	}
	return sendJSON(w, found)
}

func (a *server) putStatus(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	var wish struct {
		State pki.State `json:"desired_state"`
		TTL   seconds   `json:"cert_ttl"`
	}
	if err := readJSON(w, r, &wish); err != nil {
		return err
	}
	switch wish.State {
	case pki.Signed:
		_, err = a.ca.Requests.Sign(r.Context(), name, time.Duration(wish.TTL))
		err = as(http.StatusConflict, err, fault.Invalid, fault.Denied)
	case pki.Revoked:
		err = a.ca.Revoke(r.Context(), name)
	case pki.Requested:
		fallthrough
	default:
		err = fault.New(fault.Invalid, "desired_state is %.40q: use signed or revoked", wish.State)
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// seconds is a life in a JSON number, or in a string that holds one, as
// "puppetserver ca sign --ttl" sends it.
type seconds time.Duration

func (s *seconds) UnmarshalJSON(text []byte) error {
	var n json.Number
	if err := json.Unmarshal(text, &n); err != nil {
		return err
	}
	if n == "" { // null
		return nil
	}
	count, err := n.Int64()
	if err != nil || count <= 0 || count > int64(maxTTL/time.Second) {
		return fmt.Errorf("cert_ttl is %.40s, a positive number of seconds is expected", n)
	}
	*s = seconds(time.Duration(count) * time.Second)
	return nil
}

func (a *server) deleteStatus(w http.ResponseWriter, r *http.Request) error {
	name, err := certname(r)
	if err != nil {
		return err
	}
	if err := a.ca.Forget(r.Context(), name); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// names is the body that clean and sign take. async is accepted and means nothing:
// the answer comes when the work is done.
type names struct {
	Certnames []string `json:"certnames"`
	Async     bool     `json:"async"`
}

func readNames(w http.ResponseWriter, r *http.Request) ([]fleet.Certname, error) {
	var body names
	if err := readJSON(w, r, &body); err != nil {
		return nil, err
	}
	if body.Certnames == nil {
		return nil, fault.New(fault.Invalid, `the body must be {"certnames": [...]}`)
	}
	parsed := make([]fleet.Certname, 0, len(body.Certnames))
	for _, text := range body.Certnames {
		name, err := fleet.ParseCertname(text)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, name)
	}
	return parsed, nil
}

func (a *server) putClean(w http.ResponseWriter, r *http.Request) error {
	certnames, err := readNames(w, r)
	if err != nil {
		return err
	}
	unknown, err := a.ca.Clean(r.Context(), certnames...)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		sendText(w, http.StatusOK, fmt.Sprintf("Nothing was known of these names: %v", unknown))
		return nil
	}
	sendText(w, http.StatusOK, "All names are cleaned.")
	return nil
}

func (a *server) postSign(w http.ResponseWriter, r *http.Request) error {
	certnames, err := readNames(w, r)
	if err != nil {
		return as(http.StatusUnprocessableEntity, err, fault.Invalid)
	}
	return a.signEach(w, r, certnames)
}

func (a *server) postSignAll(w http.ResponseWriter, r *http.Request) error {
	entries, err := a.ca.List(r.Context())
	if err != nil {
		return err
	}
	var waiting []fleet.Certname
	for _, entry := range entries {
		if entry.State == pki.Requested {
			waiting = append(waiting, entry.Certname)
		}
	}
	return a.signEach(w, r, waiting)
}

func (a *server) signEach(w http.ResponseWriter, r *http.Request, certnames []fleet.Certname) error {
	result := struct {
		Signed []fleet.Certname `json:"signed"`
		NoCSR  []fleet.Certname `json:"no-csr"`
		Errors []fleet.Certname `json:"signing-errors"`
	}{[]fleet.Certname{}, []fleet.Certname{}, []fleet.Certname{}}
	for _, name := range certnames {
		_, err := a.ca.Requests.Sign(r.Context(), name, 0)
		switch {
		case err == nil:
			result.Signed = append(result.Signed, name)
		case fault.Of(err) == fault.NotFound, fault.Of(err) == fault.Conflict:
			result.NoCSR = append(result.NoCSR, name)
		default:
			a.log.ErrorContext(r.Context(), "certificate not signed", "node", name, "err", err)
			result.Errors = append(result.Errors, name)
		}
	}
	return sendJSON(w, result)
}

func (a *server) getExpirations(w http.ResponseWriter, _ *http.Request) error {
	certs, lists := a.ca.Revocations.Expirations()
	return sendJSON(w, map[string]map[string]string{"ca-certs": dates(certs), "crls": dates(lists)})
}

func dates(times map[string]time.Time) map[string]string {
	texts := map[string]string{}
	for name, at := range times {
		texts[name] = date(at)
	}
	return texts
}

func date(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05MST") }

// status is the API's word for a request or a certificate.
type status struct {
	Name                    fleet.Certname    `json:"name"`
	State                   pki.State         `json:"state"`
	Fingerprint             string            `json:"fingerprint"`
	Fingerprints            map[string]string `json:"fingerprints"`
	DNSAltNames             []string          `json:"dns_alt_names"`
	SubjectAltNames         []string          `json:"subject_alt_names"`
	AuthorizationExtensions map[string]string `json:"authorization_extensions"`
	Serial                  json.Number       `json:"serial_number,omitempty"`
	NotBefore               string            `json:"not_before,omitempty"`
	NotAfter                string            `json:"not_after,omitempty"`
}

func statusOf(e pki.Entry) status {
	s := status{
		Name: e.Certname, State: e.State, Fingerprint: e.Fingerprints.SHA256,
		Fingerprints: map[string]string{
			"default": e.Fingerprints.SHA256, "SHA1": e.Fingerprints.SHA1,
			"SHA256": e.Fingerprints.SHA256, "SHA512": e.Fingerprints.SHA512,
		},
		DNSAltNames: e.DNSAltNames(), SubjectAltNames: append([]string{}, e.AltNames...),
		AuthorizationExtensions: e.AuthorizationExtensions,
	}
	if e.Serial != nil {
		s.Serial = json.Number(e.Serial.String())
		s.NotBefore, s.NotAfter = date(e.NotBefore), date(e.NotAfter)
	}
	return s
}
