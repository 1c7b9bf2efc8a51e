package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/bench/rivals"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// boardName is whose certificate Puppetboard shows.
const boardName = "puppetboard.example.org"

// puppetboard shows the same nodes in Puppetboard, which asks this server's PuppetDB API.
func (b *bench) puppetboard(ctx context.Context) (measure.Row, error) {
	port, err := rivals.FreePort(ctx)
	if err != nil {
		return measure.Row{}, err
	}
	if err := b.boardSettings(); err != nil {
		return measure.Row{}, err
	}
	var log bytes.Buffer
	script := fmt.Sprintf("from puppetboard.app import app; app.run(port=%d, threaded=True)", port)
	cmd := exec.CommandContext(ctx, "/usr/bin/python3", "-c", script) //nolint:gosec // our own words
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.board, &log, &log
	cmd.Env = append(os.Environ(), "PUPPETBOARD_SETTINGS="+filepath.Join(b.dir, "board.py"), "PYTHONDONTWRITEBYTECODE=1")
	if err := cmd.Start(); err != nil {
		return measure.Row{}, err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it was told to end
	}()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	for begin := time.Now(); ; {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if time.Since(begin) > time.Minute {
			return measure.Row{}, fmt.Errorf("Puppetboard does not listen: %w\n%s", err, log.String()) //nolint:staticcheck // its name
		}
		if err := measure.Settle(ctx, 200*time.Millisecond); err != nil {
			return measure.Row{}, err
		}
	}
	figures, err := b.browse(ctx, "board", "TUTTI_BOARD=http://"+address+"/%2A/nodes")
	if err != nil {
		return measure.Row{}, fmt.Errorf("%w\n%s", err, log.String())
	}
	return measure.Row{Server: "puppetboard", Case: listCase(b.nodes) + ", Puppetboard", Figures: figures}, nil
}

// boardSettings writes what Puppetboard has to know, and a certificate for it.
func (b *bench) boardSettings() error {
	config, err := b.ca.Client(boardName)
	if err != nil {
		return err
	}
	pair := config.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf(`PUPPETDB_HOST, PUPPETDB_PORT = "localhost", %d
PUPPETDB_SSL_VERIFY = %q
PUPPETDB_CERT = %q
PUPPETDB_KEY = %q
PUPPETDB_TIMEOUT = 120
SECRET_KEY = "for a benchmark only"
DEFAULT_ENVIRONMENT = "*"
OFFLINE_MODE = True
LOGLEVEL = "warning"
`, b.tutti.Port(), b.tutti.CAPath(), filepath.Join(b.dir, "board.crt"), filepath.Join(b.dir, "board.key"))
	for name, text := range map[string][]byte{
		"board.py":  []byte(settings),
		"board.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
		"board.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(b.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
