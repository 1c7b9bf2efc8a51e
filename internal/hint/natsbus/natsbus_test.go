package natsbus_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/hint/bus"
	"github.com/tutti-project/tutti/internal/hint/bus/bustest"
	"github.com/tutti-project/tutti/internal/hint/natsbus"
	"github.com/tutti-project/tutti/internal/hint/natsbus/natsbustest"
)

func TestNATS(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) bustest.World {
		t.Helper()
		return natsbustest.Start(t, "")
	})
}

// said is what a log says.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), what)
}

func open(t *testing.T, config natsbus.Config, log *said) *natsbus.Bus {
	t.Helper()
	b, err := natsbus.Open(config, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A server starts without NATS, says so once, and is connected when NATS is there.
func TestNATSIsNotThereAtTheStart(t *testing.T) {
	t.Parallel()
	server, log := natsbustest.Start(t, ""), &said{}
	server.Kill()
	began := time.Now()
	b := open(t, server.Config(), log)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it was waited for %s", took)
	}
	if s := b.State(); s.Up || s.Problem == "" {
		t.Errorf("%+v", s)
	}
	heard := make(chan string, 1)
	if _, err := b.Subscribe(bus.Subscriber{Subject: "t", Take: func(_ context.Context, _ string, data []byte) ([]byte, error) {
		select {
		case heard <- string(data):
		default:
		}
		return nil, nil
	}}); err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "it was tried again", func() bool { return time.Since(began) > 2*time.Second })
	server.Again()
	other := open(t, server.Config(), &said{})
	bustest.Until(t, "both are up", func() bool { return b.State().Up && other.State().Up })
	bustest.Until(t, "a message comes", func() bool {
		_ = other.Publish("t", []byte("there"))
		return len(heard) > 0
	})
	if down, up := log.count("no connection with NATS"), log.count("connected with NATS"); down != 1 || up != 1 {
		t.Errorf("said %d times that it is away and %d times that it is there: %s", down, up, log.text.String())
	}
}

// NATS is frozen, or a network is cut without a word: nobody who sends waits, and it is noticed within seconds.
func TestNATSIsSilent(t *testing.T) {
	t.Parallel()
	server := natsbustest.Start(t, "")
	b := open(t, server.Config(), &said{})
	bustest.Until(t, "it is up", func() bool { return b.State().Up })
	server.Freeze(true)
	defer server.Freeze(false)
	frozen, longest := time.Now(), time.Duration(0)
	large := make([]byte, bus.MaxBytes)
	bustest.Until(t, "it is noticed", func() bool {
		began := time.Now()
		_ = b.Publish("t", large) // fills what the system buffers
		longest = max(longest, time.Since(began))
		return !b.State().Up
	})
	t.Logf("noticed after %s; the longest message took %s", time.Since(frozen), longest)
	if longest > time.Second {
		t.Errorf("who published waited for %s", longest)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := b.Request(ctx, "t", nil); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v", err)
	}
}

// NATS takes who shows a certificate that it maps to a user, and who has a user's password; nobody else.
func TestWhoMay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := newCA(t, dir)
	certFile, keyFile := ca.issue(t, "nats.example.test")
	ours, oursKey := ca.issue(t, "tutti-1.example.test")
	theirs, theirsKey := ca.issue(t, "node.example.test")
	server := natsbustest.Start(t, fmt.Sprintf(`
tls { cert_file: %q, key_file: %q, ca_file: %q, verify_and_map: true }
authorization { users: [ {user: "tutti-1.example.test", permissions: {publish: "tutti.>", subscribe: "tutti.>"}} ] }`, certFile, keyFile, ca.file))
	config := natsbus.Config{URL: "tls://" + server.Address, Name: "test", Prefix: "tutti", CAFile: ca.file, CertFile: ours, KeyFile: oursKey}
	a, b := open(t, config, &said{}), open(t, config, &said{})
	bustest.Until(t, "both are up", func() bool { return a.State().Up && b.State().Up })
	if _, err := b.Subscribe(bus.Subscriber{
		Subject: "tutti.srv.b.*", Take: func(context.Context, string, []byte) ([]byte, error) { return []byte("yes"), nil },
	}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Request(t.Context(), "tutti.srv.b.deliver", nil); err != nil || string(got) != "yes" { // its answer comes below the prefix, too
		t.Errorf("%q, %v", got, err)
	}
	config.CertFile, config.KeyFile = theirs, theirsKey
	log := &said{}
	stranger := open(t, config, log)
	bustest.Until(t, "it is refused", func() bool { return strings.Contains(strings.ToLower(stranger.State().Problem), "authorization") })
	if log.count("no connection with NATS") != 1 {
		t.Errorf("it is not said once: %s", log.text.String())
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	server := natsbustest.Start(t, `authorization { user: tutti, password: "right" }`)
	file := filepath.Join(t.TempDir(), "credentials")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("tutti:wrong\n")
	config := server.Config()
	config.Credentials = file
	b := open(t, config, &said{})
	bustest.Until(t, "it is refused", func() bool { return strings.Contains(strings.ToLower(b.State().Problem), "authorization") })
	write("tutti:right\n") // it is read again
	bustest.Until(t, "it is up", func() bool { return b.State().Up })
}

// What a look at NATS finds, before a server starts.
func TestProbe(t *testing.T) {
	t.Parallel()
	server := natsbustest.Start(t, "max_payload: 1000")
	if got, err := natsbus.Probe(server.Config()); err != nil || got.MaxPayload != 1000 || got.Enough() || got.Place != server.Address {
		t.Errorf("%+v, %v", got, err)
	}
	server.Kill()
	if got, err := natsbus.Probe(server.Config()); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestWhatCannotBe(t *testing.T) {
	t.Parallel()
	good := natsbus.Config{URL: "nats://a:4222,tls://b", Prefix: "tutti.one"}
	if key, err := good.Check(); err != nil {
		t.Errorf("%s: %v", key, err)
	}
	if good.Encrypted() {
		t.Error("nats:// is not encrypted")
	}
	for want, change := range map[string]func(*natsbus.Config){
		"nats_url: it is not": func(c *natsbus.Config) { c.URL = "http://a" },
		"nats_url: it has":    func(c *natsbus.Config) { c.URL = "nats://me:secret@a" },
		"nats_prefix:":        func(c *natsbus.Config) { c.Prefix = "tutti.>" },
		"nats_tls_cert:":      func(c *natsbus.Config) { c.CertFile = "/cert" },
	} {
		c := good
		change(&c)
		key, err := c.Check()
		if err == nil || !strings.HasPrefix(key+": "+err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %s, %v", want, key, err)
		}
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := os.WriteFile(open, []byte("a:b"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]natsbus.Config{
		"cannot be read":              {URL: "nats://127.0.0.1:1", Credentials: "/nowhere"},
		"everybody on this machine":   {URL: "nats://127.0.0.1:1", Credentials: open},
		"error loading client":        {URL: "nats://127.0.0.1:1", CertFile: "/nowhere", KeyFile: "/nowhere"},
		"error loading or parsing ro": {URL: "nats://127.0.0.1:1", CAFile: "/nowhere"},
	} {
		if b, err := natsbus.Open(c, slog.New(slog.DiscardHandler)); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", want, b, err)
		}
	}
}

// authority issues certificates for tests.
type authority struct {
	dir, file string
	cert      *x509.Certificate
	key       *ecdsa.PrivateKey
	last      int64
}

func newCA(t *testing.T, dir string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &authority{dir: dir, key: key, last: 1, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "CA"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}}
	ca.file = ca.write(t, "ca.pem", "CERTIFICATE", ca.sign(t, ca.cert, key))
	return ca
}

func (ca *authority) sign(t *testing.T, cert *x509.Certificate, key *ecdsa.PrivateKey) []byte {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, ca.cert, &key.PublicKey, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func (ca *authority) write(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(ca.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (ca *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca.last++
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(ca.last), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return ca.write(t, name+".pem", "CERTIFICATE", ca.sign(t, cert, key)), ca.write(t, name+".key", "EC PRIVATE KEY", der)
}

// A server ends while NATS is frozen and much waits: it is not held up for long.
func TestTheEndWhileNATSIsSilent(t *testing.T) {
	t.Parallel()
	server := natsbustest.Start(t, "")
	b, err := natsbus.Open(server.Config(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	bustest.Until(t, "it is up", func() bool { return b.State().Up })
	server.Freeze(true)
	defer server.Freeze(false)
	large := make([]byte, bus.MaxBytes)
	for range 200 { // more than the system buffers
		if err := b.Publish("t", large); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	took := time.Since(began)
	t.Logf("it took %s", took)
	if took > 10*time.Second {
		t.Error("it was held up")
	}
}
