package api

import (
	"net/http"
	"time"

	"github.com/tutti-project/tutti/internal/fleet"
)

// Certificates, and the requests for them.
var (
	CertificateList = op[CertificateListRequest, List[Certificate]](Operation{
		Name: "certificate.list", Method: http.MethodGet, Path: "/certificates", Permission: fleet.CertificateRead, Kind: Question,
		Summary: "List certificates and requests",
	})
	CertificateShow = op[NameRequest, Certificate](Operation{
		Name: "certificate.show", Method: http.MethodGet, Path: "/certificates/{name}",
		Permission: fleet.CertificateRead, Kind: Question,
		Summary: "Show one certificate or request",
	})
	CertificateSign = op[NameRequest, Certificate](Operation{
		Name: "certificate.sign", Method: http.MethodPost, Path: "/certificates/{name}/sign",
		Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Sign a certificate request",
	})
	CertificateRevoke = op[NameRequest, Nothing](Operation{
		Name: "certificate.revoke", Method: http.MethodPost, Path: "/certificates/{name}/revoke",
		Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Revoke a certificate and close its connections",
	})
	CertificateClean = op[NameRequest, Nothing](Operation{
		Name: "certificate.clean", Method: http.MethodDelete, Path: "/certificates/{name}",
		Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Revoke a certificate and forget it, so that the name can be asked for again",
	})
	RequestClean = op[RequestCleanRequest, RequestCleanResponse](Operation{
		Name: "request.clean", Method: http.MethodDelete, Path: "/certificate-requests",
		Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Drop the certificate requests that wait, all or those from one address",
	})
	ServerRotate = op[Nothing, Certificate](Operation{
		Name: "server_certificate.rotate", Method: http.MethodPost, Path: "/server-certificate/rotate",
		Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Give the server a new key and certificate, and revoke its former ones",
	})
	JoinTokenCreate = op[JoinTokenRequest, JoinToken](Operation{
		Name: "join_token.create", Method: http.MethodPost, Path: "/join-tokens", Permission: fleet.CertificateWrite, Kind: Act,
		Summary: "Make a one-time password that signs one request",
	})
)

// certificateOperations is the operations of this file, in the order of the reference.
func certificateOperations() []Operation {
	return listed(CertificateList, CertificateShow, CertificateSign, CertificateRevoke, CertificateClean, RequestClean,
		ServerRotate, JoinTokenCreate)
}

// CertificateListRequest narrows the list of certificates.
type CertificateListRequest struct {
	State string `query:"state"` // requested, signed, revoked; empty: all
}

// Certificate is a certificate or a request for one.
type Certificate struct {
	Name        string            `json:"name"`
	State       string            `json:"state"`            // requested, signed, revoked
	Serial      string            `json:"serial,omitempty"` // hexadecimal, as openssl prints it
	Fingerprint string            `json:"fingerprint"`      // SHA-256, colon form
	NotBefore   *time.Time        `json:"not_before,omitempty"`
	NotAfter    *time.Time        `json:"not_after,omitempty"`
	Received    *time.Time        `json:"received,omitempty"`   // of a request
	From        string            `json:"from,omitempty"`       // the address that a request came from, or its network
	AltNames    []string          `json:"alt_names,omitempty"`  // DNS:x, IP:y
	Extensions  map[string]string `json:"extensions,omitempty"` // trusted facts: short name or OID to value
	PEM         string            `json:"pem,omitempty"`        // in certificate.show
}

// RequestCleanRequest says which waiting requests to drop.
type RequestCleanRequest struct {
	From string `query:"from"` // those from this address (IPv6: from its /64 network); empty: all
}

// RequestCleanResponse counts them.
type RequestCleanResponse struct {
	Dropped int `json:"dropped"`
}

// JoinTokenRequest asks for a one-time password.
type JoinTokenRequest struct {
	Name    string `json:"name,omitempty"`    // the only certname it is good for; empty: any
	Seconds int64  `json:"seconds,omitempty"` // how long it is good; 0 means a day
}

// JoinToken is a one-time password; it is shown this once.
type JoinToken struct {
	Token         string    `json:"token"`
	Expires       time.Time `json:"expires"`
	CAFingerprint string    `json:"ca_fingerprint"` // SHA-256 of the CA's certificate, by which a node knows the right server
}
