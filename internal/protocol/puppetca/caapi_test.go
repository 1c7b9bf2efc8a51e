package puppetca_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
	"github.com/tutti-project/tutti/internal/protocol/puppetca"
)

var adminsAllowed = pki.Config{AllowAuthorizationExtensions: true}

func TestANodeJoins(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	node, admin := s.anybody(t), s.admin(t)
	got := node.want(200, "BEGIN CERTIFICATE", "GET", "certificate/ca", "")
	if got.header.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Errorf("content type %q", got.header.Get("Content-Type"))
	}
	node.want(200, "BEGIN X509 CRL", "GET", "certificate_revocation_list/ca", "")
	node.want(404, "web1", "GET", "certificate/web1", "")
	node.want(404, "web1", "GET", "certificate_request/web1", "")

	csr := string(pkitest.CSR{Name: "web1"}.PEM(t))
	node.want(200, "", "PUT", "certificate_request/web1", csr)
	node.want(200, "", "PUT", "certificate_request/web1", csr)
	node.want(200, csr, "GET", "certificate_request/web1", "")
	node.want(404, "", "GET", "certificate/web1", "")
	admin.want(204, "", "PUT", "certificate_status/web1", `{"desired_state":"signed","cert_ttl":"3600"}`)
	cert := parseCertificate(t, []byte(node.want(200, "BEGIN CERTIFICATE", "GET", "certificate/web1", "").body))
	if left := time.Until(cert.NotAfter); left < 59*time.Minute || left > time.Hour {
		t.Errorf("certificate is good for %s, want an hour", left)
	}
	admin.want(409, "no waiting request", "PUT", "certificate_status/web1", `{"desired_state":"signed"}`)
}

func TestRefusedRequestsAre400(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	node := s.anybody(t)
	s.node(t, "taken")
	for path, body := range map[string]string{
		"certificate_request/web1":          "no PEM",
		"certificate_request/web2":          string(pkitest.CSR{Name: "web2", Forge: true}.PEM(t)),
		"certificate_request/web3":          string(pkitest.CSR{Name: "other"}.PEM(t)),
		"certificate_request/taken":         string(pkitest.CSR{Name: "taken"}.PEM(t)),
		"certificate_request/Web4":          string(pkitest.CSR{Name: "Web4"}.PEM(t)),
		"certificate_request/..%2F..%2Fetc": string(pkitest.CSR{Name: "../../etc"}.PEM(t)),
		"certificate_request/web5":          string(pkitest.CSR{Name: "web5", Challenge: "tutti-join-stolen"}.PEM(t)),
	} {
		if got := node.do("PUT", path, body); got.status != 400 || got.body == "" {
			t.Errorf("%s: %d %q", path, got.status, got.body)
		}
	}
	node.want(413, "bytes", "PUT", "certificate_request/web6", strings.Repeat("x", 70_000))
}

func TestOnlyAdministratorsDecide(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	for name, c := range map[string]*client{"anybody": s.anybody(t), "a node": s.node(t, "web1")} {
		for _, call := range [][2]string{
			{"PUT", "certificate_revocation_list"},
			{"DELETE", "certificate_request/web1"},
			{"GET", "certificate_status/web1"},
			{"PUT", "certificate_status/web1"},
			{"DELETE", "certificate_status/web1"},
			{"GET", "certificate_statuses/all"},
			{"PUT", "clean"},
			{"POST", "sign"},
			{"POST", "sign/all"},
			{"GET", "expirations"},
		} {
			got := c.do(call[0], call[1], `{"desired_state":"revoked","certnames":["web1"]}`)
			if got.status != 403 || !strings.HasPrefix(got.body, "Forbidden request: /puppet-ca/v1/"+call[1]+" (method :"+strings.ToLower(call[0])) {
				t.Errorf("%s may %s %s: %d %q", name, call[0], call[1], got.status, got.body)
			}
		}
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	admin := s.admin(t)
	s.node(t, "web1")
	_, err := s.ca.Requests.Submit(t.Context(), "web2", pkitest.CSR{Name: "web2"}.PEM(t), "")
	must(t, err)
	var one map[string]any
	must(t, json.Unmarshal([]byte(admin.want(200, "", "GET", "certificate_status/web1", "").body), &one))
	for _, key := range []string{
		"name", "state", "fingerprint", "fingerprints", "dns_alt_names", "subject_alt_names",
		"authorization_extensions", "serial_number", "not_before", "not_after",
	} {
		if one[key] == nil {
			t.Errorf("status has no %s: %v", key, one)
		}
	}
	if _, err := time.Parse("2006-01-02T15:04:05UTC", one["not_after"].(string)); err != nil {
		t.Error(err)
	}
	waiting := admin.want(200, `"state":"requested"`, "GET", "certificate_status/web2", "")
	if strings.Contains(waiting.body, "serial_number") {
		t.Errorf("a request has a serial number: %s", waiting.body)
	}
	admin.want(404, "web9", "GET", "certificate_status/web9", "")

	admin.want(204, "", "PUT", "certificate_status/web1", `{"desired_state":"revoked"}`)
	for query, want := range map[string][]string{
		"": {"web2", "admin", "web1"}, "?state=requested": {"web2"}, "?state=signed": {"admin"}, "?state=revoked": {"web1"},
	} {
		var list []struct{ Name string }
		must(t, json.Unmarshal([]byte(admin.want(200, "", "GET", "certificate_statuses/any_key"+query, "").body), &list))
		var got []string
		for _, e := range list {
			got = append(got, e.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	admin.want(400, "state", "GET", "certificate_statuses/any_key?state=lost", "")
	admin.want(409, "", "PUT", "certificate_status/web2", `{"desired_state":"revoked"}`)
	admin.want(404, "", "PUT", "certificate_status/web9", `{"desired_state":"revoked"}`)
	admin.want(404, "", "PUT", "certificate_status/web9", `{"desired_state":"signed"}`)
	for _, broken := range []string{`{`, `[]`, `{"desired_state":"lost"}`, `{"desired_state":7}`, `{"desired_state":"signed","cert_ttl":-1}`} {
		admin.want(400, "", "PUT", "certificate_status/web2", broken)
	}
	admin.want(204, "", "DELETE", "certificate_status/web2", "")
	admin.want(404, "", "DELETE", "certificate_status/web2", "")
}

func TestSignAndCleanMany(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	admin := s.admin(t)
	for _, name := range []string{"web1", "web2", "web3"} {
		s.anybody(t).want(200, "", "PUT", "certificate_request/"+name, string(pkitest.CSR{Name: name}.PEM(t)))
	}
	admin.want(200, `{"signed":["web2"],"no-csr":["web9"],"signing-errors":[]}`, "POST", "sign", `{"certnames":["web2","web9"]}`)
	admin.want(200, `{"signed":["web1","web3"],"no-csr":[],"signing-errors":[]}`, "POST", "sign/all", "")
	s.anybody(t).want(200, "", "PUT", "certificate_request/web4", string(pkitest.CSR{Name: "web4"}.PEM(t)))
	_, err := s.ca.Server.Certificate(t.Context(), []string{"web4"}) // from now on that is the server
	must(t, err)
	admin.want(200, `{"signed":[],"no-csr":[],"signing-errors":["web4"]}`, "POST", "sign/all", "")
	admin.want(409, "name of this server", "PUT", "certificate_status/web4", `{"desired_state":"signed"}`)
	admin.want(422, "", "POST", "sign", `{"names":["web2"]}`)
	admin.want(422, "", "POST", "sign", `{`)
	admin.want(200, "web9", "PUT", "clean", `{"certnames":["web1","web9"],"async":false}`)
	admin.want(200, "", "PUT", "clean", `{"certnames":["web2"]}`)
	admin.want(400, "", "PUT", "clean", `{"certnames":["../x"]}`)
	s.anybody(t).want(404, "", "GET", "certificate/web1", "")
	s.anybody(t).want(200, "", "GET", "certificate/web3", "")
	s.anybody(t).want(200, "", "PUT", "certificate_request/web1", string(pkitest.CSR{Name: "web1"}.PEM(t)))
	admin.want(204, "", "DELETE", "certificate_request/web1", "")
	admin.want(404, "", "DELETE", "certificate_request/web1", "")
}

func TestUnchangedIs304(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	s.node(t, "web1")
	node := s.anybody(t)
	later := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	before := time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat)
	for _, path := range []string{"certificate/ca", "certificate_revocation_list/ca", "certificate/web1"} {
		if got := node.want(304, "", "GET", path, "", "If-Modified-Since", later); got.body != "" {
			t.Errorf("%s: 304 with a body", path)
		}
		node.want(200, "BEGIN", "GET", path, "", "If-Modified-Since", before)
		node.want(200, "BEGIN", "GET", path, "", "If-Modified-Since", "last week")
	}
	// A list that changed in the second of the last fetch is sent again.
	fetched := time.Now().UTC().Format(http.TimeFormat)
	must(t, s.ca.Revoke(t.Context(), "web1"))
	node.want(200, "BEGIN", "GET", "certificate_revocation_list/ca", "", "If-Modified-Since", fetched)
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	off := start(t, pki.Config{})
	off.node(t, "web1").want(404, "switched off", "POST", "certificate_renewal", "")

	s := start(t, pki.Config{AllowRenewal: true})
	s.anybody(t).want(400, "certificate", "POST", "certificate_renewal", "")
	node := s.node(t, "web1")
	cert := parseCertificate(t, []byte(node.want(200, "BEGIN CERTIFICATE", "POST", "certificate_renewal", "").body))
	if cert.Subject.CommonName != "web1" {
		t.Errorf("renewed %s", cert.Subject)
	}
	node.want(200, "BEGIN CERTIFICATE", "POST", "certificate_renewal", "")
	node.want(429, "web1 renews its certificate more than 2 times a day (setting renewals_per_day); come back in 1", "POST", "certificate_renewal", "")
	s.node(t, "web2").want(200, "BEGIN CERTIFICATE", "POST", "certificate_renewal", "")
}

func TestListsOfOtherCAs(t *testing.T) {
	t.Parallel()
	s, other := start(t, adminsAllowed), start(t, pki.Config{})
	admin := s.admin(t)
	own, _ := s.ca.Revocations.CRL()
	foreign, _ := other.ca.Revocations.CRL()
	admin.want(200, "", "PUT", "certificate_revocation_list", string(own))
	admin.want(400, "not signed", "PUT", "certificate_revocation_list", string(foreign))
	admin.want(400, "PEM", "PUT", "certificate_revocation_list", "x")
	var ends map[string]map[string]string
	must(t, json.Unmarshal([]byte(admin.want(200, "", "GET", "expirations", "").body), &ends))
	if len(ends["ca-certs"]) != 1 || len(ends["crls"]) != 1 {
		t.Errorf("expirations %v", ends)
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, adminsAllowed)
	s.anybody(t).want(404, "", "GET", "nothing/here", "")
	s.anybody(t).want(405, "", "POST", "certificate/web1", "")
}

// The limit counts for the address, whatever port a connection comes from.
func TestAFullCAForgetsTheOldestRequest(t *testing.T) {
	t.Parallel()
	s := start(t, pki.Config{MaxWaitingOfOne: 2})
	for _, name := range []string{"web1", "web2", "web3"} {
		s.anybody(t).want(200, "", "PUT", "certificate_request/"+name, string(pkitest.CSR{Name: name}.PEM(t)))
	}
	s.anybody(t).want(404, "", "GET", "certificate_request/web1", "")
	s.anybody(t).want(200, "", "GET", "certificate_request/web3", "")
	entry, err := s.ca.Show(t.Context(), "web3")
	must(t, err)
	if entry.From != "127.0.0.1" {
		t.Errorf("the request came from %q", entry.From)
	}
}

// A store that cannot be reached does not say when it can again.
func TestEvery503SaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir()}, awayStore{pkitest.NewMemory()}, quiet)
	must(t, err)
	w := httptest.NewRecorder()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/puppet-ca/v1/certificate/web1", nil)
	must(t, err)
	puppetca.New(puppetca.Config{Authority: ca, Log: quiet}).ServeHTTP(w, r)
	if after, err := strconv.Atoi(w.Header().Get("Retry-After")); w.Code != 503 || err != nil || after < 5 || after > 30 {
		t.Errorf("%d with Retry-After %q, want 503 and 5 to 30 seconds", w.Code, w.Header().Get("Retry-After"))
	}
}

// awayStore is a database that does not answer.
type awayStore struct{ pki.Store }

func (awayStore) Certificate(context.Context, fleet.Certname) (pki.Certificate, error) {
	return pki.Certificate{}, fault.New(fault.Unavailable, "the database does not answer")
}

func TestOurOwnMistakesSayLittle(t *testing.T) {
	t.Parallel()
	ca, err := pki.Open(t.Context(), pki.Config{Dir: t.TempDir()}, brokenStore{pkitest.NewMemory()}, quiet)
	must(t, err)
	w := httptest.NewRecorder()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/puppet-ca/v1/certificate/web1", nil)
	must(t, err)
	puppetca.New(puppetca.Config{Authority: ca, Log: quiet}).ServeHTTP(w, r)
	if w.Code != 500 || strings.Contains(w.Body.String(), "password") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// brokenStore fails as a database does, with words that are nobody's business.
type brokenStore struct{ pki.Store }

func (brokenStore) Certificate(context.Context, fleet.Certname) (pki.Certificate, error) {
	return pki.Certificate{}, errors.New("no connection for user tutti with password hunter2")
}
