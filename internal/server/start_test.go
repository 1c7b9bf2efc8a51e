package server

import (
	"bytes"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// A server that cannot start says all that is broken at once; nothing was made.
func TestAStartSaysAllThatIsBroken(t *testing.T) {
	t.Parallel()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = socket.Close() }()
	config := settings.Default()
	config.Data, config.Listen = t.TempDir(), socket.Addr().String()
	if err := os.Chmod(config.Data, 0o755); err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), config, Options{Out: io.Discard, Err: io.Discard})
	if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), "2 checks found something broken") ||
		!strings.Contains(fault.Detail(err), "chmod 700") || !strings.Contains(fault.Detail(err), "--listen") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(config.Data); len(entries) != 0 {
		t.Errorf("the start made %v", entries)
	}
}

// The first start after an import does not say that it made a certificate authority.
func TestTheFirstStartSaysWhatItMade(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, want := range []string{
		"a certificate authority, a database and an administrator's token were made", "the certificate authority is the one that was here before",
	} {
		data, err := datadir.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		config := settings.Default()
		config.Data, config.Listen = dir, "127.0.0.1:0"
		if err := data.Close(); err != nil {
			t.Fatal(err)
		}
		p, err := open(t.Context(), config, newLogger(config, io.Discard)) // as an import does: it makes no token
		if err != nil {
			t.Fatal(err)
		}
		welcome(&out, p.data, p.ca, "https://localhost:1", 0)
		if err := p.close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "First start: ") || !strings.Contains(out.String(), want) {
			t.Errorf("%q does not say %q", out.String(), want)
		}
	}
}
