package pki_test

import (
	"context"
	"crypto/x509/pkix"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// No way of signing gives a node a name by which it could pose as the server or as the CA.
func TestNamesOfTheServerAreNobodyElses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	cfg, store := pki.Config{Dir: t.TempDir(), AllowSubjectAltNames: true, AllowRenewal: true, CAName: "ca.example"}, pkitest.NewMemory()
	first := open(t, cfg, store)
	early := pkitest.NewKey(t) // the name was a node's before it was the server's
	submit(t, first, pkitest.CSR{Name: "late.example", Key: early})
	_, err := first.Requests.Sign(ctx, "late.example", 0)
	must(t, err)
	was := certificate(t, first, "late.example")
	_, err = first.Server.Certificate(ctx, []string{"old.example", "old-alias.example"})
	must(t, err)
	names := []fleet.Certname{"tutti.example", "alias.example", "late.example", "localhost", "ca", "ca.example", "old.example", "old-alias.example"}
	for _, name := range names { // requests that wait from before, in whatever way they came in
		if name != "late.example" {
			head := pki.RequestHead{Certname: name, ReceivedAt: time.Now()}
			must(t, store.SaveRequest(ctx, pki.Request{RequestHead: head, PEM: pkitest.CSR{Name: string(name)}.PEM(t)}))
		}
	}
	yes := func(context.Context, fleet.Certname, []byte) (bool, error) { return true, nil }
	for way, policy := range map[string]pki.AutosignPolicy{
		"all": {All: true}, "list": {Names: []string{"*", "localhost", "*.example"}}, "policy": {Decide: yes}, "token": {},
	} {
		t.Run(way, func(t *testing.T) {
			ctx, cfg := t.Context(), cfg
			cfg.Autosign = policy
			a := open(t, cfg, store) // the names of old certificates are known after a restart
			_, err := a.Server.Certificate(ctx, []string{"tutti.example", "alias.example", "late.example", "192.0.2.7"})
			must(t, err)
			for _, name := range names {
				request := pkitest.CSR{Name: string(name)}
				if way == "token" {
					request.Challenge, err = a.Requests.NewJoinToken(ctx, name, time.Hour)
					must(t, err)
				}
				_, err := a.Requests.Submit(ctx, name, request.PEM(t), "")
				wantKind(t, err, fault.Denied)
				if name != "late.example" {
					_, err = a.Requests.Sign(ctx, name, 0)
					wantKind(t, err, fault.Denied)
				}
			}
			for _, alt := range []string{"Tutti.Example", "ALIAS.example.", "localhost", "old-alias.example"} {
				_, err := a.Requests.Submit(ctx, "web1", pkitest.CSR{Name: "web1", Extensions: []pkix.Extension{pkitest.AltNames(t, alt)}}.PEM(t), "")
				wantKind(t, err, fault.Denied)
			}
			_, err = a.Renew(ctx, was)
			wantKind(t, err, fault.Denied)
			submit(t, a, pkitest.CSR{Name: "web-" + way + ".example", Extensions: []pkix.Extension{pkitest.AltNames(t, "www.example")}})
		})
	}
}

// The server's numbers are the store's, too: a node's can never be the same.
func TestSerialNumbersAreRandom(t *testing.T) {
	t.Parallel()
	store := pkitest.NewMemory()
	a := open(t, pki.Config{Autosign: allowEvery}, store)
	server, err := a.Server.Certificate(t.Context(), []string{"tutti.example"})
	must(t, err)
	seen := map[string]bool{server.Leaf.SerialNumber.String(): true}
	for _, name := range []string{"web1", "web2", "web3", "web4"} {
		submit(t, a, pkitest.CSR{Name: name})
		n := certificate(t, a, fleet.Certname(name)).SerialNumber
		if n.BitLen() != 129 || seen[n.String()] {
			t.Errorf("serial number %X", n)
		}
		seen[n.String()] = true
	}
	rows, err := store.ServerCertificates(t.Context())
	must(t, err)
	if len(rows) != 1 || rows[0].Serial.Cmp(server.Leaf.SerialNumber) != 0 {
		t.Errorf("the store knows of the server's certificates %v", rows)
	}
}
