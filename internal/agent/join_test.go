package agent

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// newCA is a server that signs requests, or refuses all. Its own certificate is the CA's, too.
func newCA(t *testing.T, refuses bool) Join {
	t.Helper()
	var mu sync.Mutex
	var signed []byte
	key, _, err := newKey()
	must(t, err)
	var own []byte
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPut && refuses:
			http.Error(w, "the join token is unknown", http.StatusForbidden)
		case r.Method == http.MethodPut:
			text, _ := io.ReadAll(r.Body)
			block, _ := pem.Decode(text)
			request, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil {
				t.Error(err)
				return
			}
			leaf := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: request.Subject, NotAfter: time.Now().Add(time.Hour)}
			der, err := x509.CreateCertificate(rand.Reader, leaf, leaf, request.PublicKey, key)
			if err != nil {
				t.Error(err)
			}
			signed = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		case strings.HasSuffix(r.URL.Path, "/certificate/ca"):
			_, _ = w.Write(own)
		case strings.HasSuffix(r.URL.Path, "/certificate_revocation_list/ca"):
		case signed != nil:
			_, _ = w.Write(signed)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	own = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	server, err := ParseServer(s.URL)
	must(t, err)
	return Join{Server: server, Name: "web-1", Token: "t", Dir: t.TempDir(), CA: own, Say: func(string, ...any) {}}
}

// A join that was refused leaves nothing behind; and what one left that nobody answered does not keep the node from joining another fleet.
func TestAfterAJoinInVain(t *testing.T) {
	t.Parallel()
	first, second := newCA(t, true), newCA(t, false)
	if _, err := first.Run(t.Context()); !fault.Is(err, fault.Conflict) {
		t.Fatalf("a token that is none: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(first.Dir, "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	other, _, err := newKey()
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, other.Public(), other)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(second.Dir, caName), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	kept := second
	kept.CA, kept.Fingerprint = nil, strings.Repeat("AB:", 31)+"AB"
	if _, err := kept.Run(t.Context()); !fault.Is(err, fault.Denied) || !fileIs(filepath.Join(second.Dir, caName)) {
		t.Errorf("with a fingerprint that is nobody's it keeps no CA: %v", err)
	}
	if _, err := second.Run(t.Context()); err != nil {
		t.Errorf("with the CA of a join in vain: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(second.Dir, caName), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	if _, err := second.Run(t.Context()); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "has joined another fleet") {
		t.Errorf("with the CA of a certificate: %v", err)
	}
}

// Puppet's `config set` fails where the directory of its configuration file is missing; by then the token would be used up.
func TestAJoinMakesPuppetsConfdir(t *testing.T) {
	t.Parallel()
	j, p := newCA(t, false), newStubPuppet(t, "web-1")
	conf := p.path("confdir", "puppet.conf")
	p.settings["config"] = conf
	var text strings.Builder
	text.WriteString("#!/bin/sh\nif [ \"$2\" = set ]; then echo \"$3 = $4\" >> '" + conf + "' || exit 1; exit 0; fi\n")
	for name, value := range p.settings {
		text.WriteString("echo '" + name + " = " + value + "'\n")
	}
	text.WriteString("cat '" + conf + "' 2> /dev/null || true\n")
	j.Puppet = programtest.Write(t, p.path("puppet"), text.String())
	if _, err := j.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{conf, filepath.Join(j.Dir, ConfigFile)} {
		if !fileIs(path) {
			t.Errorf("there is no %s", path)
		}
	}
}

func fileIs(path string) bool {
	there, err := exists(path)
	return there && err == nil
}

// Puppet paints its errors also where nobody sees colours.
func TestPuppetsErrorsHaveNoColours(t *testing.T) {
	t.Parallel()
	path := programtest.Write(t, filepath.Join(t.TempDir(), "puppet"), "#!/bin/sh\nprintf '\\033[1;31mError: no such directory\\033[0m\\n' >&2\nexit 1\n")
	if _, err := puppetSays(t.Context(), path, "config", "set"); err == nil || !strings.HasSuffix(fault.Detail(err), "config set: Error: no such directory") {
		t.Errorf("got %q", fault.Detail(err))
	}
}

// Who looks for an agent in a directory of its own is told to start that one.
func TestAnAgentThatIsAwayIsNamedWithItsDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for dir, want := range map[string]string{dir: "`tutti agent run --dir " + dir + "`", Default().Dir: "`tutti agent run`"} {
		c := Config{Dir: dir, Data: t.TempDir()}
		if _, err := AskStatus(t.Context(), c); !fault.Is(err, fault.NotFound) || !strings.HasSuffix(fault.Detail(err), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		if f := (Doctor{Config: c}).agent(t.Context()); !strings.HasSuffix(f.Found, want) {
			t.Errorf("the doctor says %q", f.Found)
		}
	}
}

// Words of a directory that cannot be written name only flags that each command has.
func TestWordsForWhatCannotBeWritten(t *testing.T) {
	t.Parallel()
	if text := fault.Detail(unwritable("/x", os.ErrPermission)); !strings.HasSuffix(text, "run it as root, or name a directory of your own with --dir") {
		t.Error(text)
	}
}
