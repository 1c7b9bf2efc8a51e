package agent

import (
	"context"
	"encoding/pem"
	"net/url"

	"github.com/tutti-project/tutti/internal/fault"
)

// FetchCA asks a server for its CA's certificates, and returns them in PEM, with the fingerprint of the first, if the fingerprint that
// the caller has proves them: Denied if it does not. Without a fingerprint it is Invalid, and says which one the server has.
func FetchCA(ctx context.Context, server *url.URL, sum string) (bundle []byte, first string, err error) {
	var wanted []byte
	if sum != "" {
		if wanted, err = parseFingerprint(sum); err != nil {
			return nil, "", err
		}
	}
	text, err := unproven(server).bundle(ctx)
	if err != nil {
		return nil, "", err
	}
	certificates, err := parseCertificates(text)
	if err != nil {
		return nil, "", fault.New(fault.Invalid, "the CA's certificates: %s", fault.Detail(err))
	}
	if sum == "" {
		return nil, "", fault.New(fault.Invalid, "nothing proves that %s is your server. Its CA has the fingerprint\n  %s\n"+
			"Compare that with what `tutti ca token` prints on the server, and give it with --ca-fingerprint; or give the CA's certificate with --ca-file", server.Host,
			fingerprint(certificates[0]))
	}
	if err := proven(certificates, wanted); err != nil {
		return nil, "", err
	}
	for _, c := range certificates {
		bundle = append(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return bundle, fingerprint(certificates[0]), nil
}
