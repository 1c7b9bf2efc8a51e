package rivals

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tutti-project/tutti/api"
	"github.com/tutti-project/tutti/bench/rivals/load"
	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// Tutti is this repository's own server, built for the run.
type Tutti struct {
	binary, dir string
	port        int
	args        []string
	proc        *process
	postgres    *Postgres // nil: the records are a file below dir
	pool        *x509.CertPool

	mu      sync.Mutex
	clients map[string]*tls.Config
}

// BuildTutti compiles the program of the repository we stand in, unless TUTTI_BINARY says where it is: where peers of another Debian run there is
// no Go.
func BuildTutti(ctx context.Context, dir string) (string, error) {
	if built := os.Getenv("TUTTI_BINARY"); built != "" {
		return built, nil
	}
	binary := filepath.Join(dir, "tutti")
	//nolint:gosec // our own paths
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-trimpath", "-o", binary, "github.com/tutti-project/tutti/cmd/tutti")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // as `make build` does: what it compiled is used again
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build tutti: %w\n%s", err, out)
	}
	return binary, nil
}

// StartTutti starts a server with a data directory below dir and waits until it
// runs. More arguments go to `tutti server` as they are.
func StartTutti(ctx context.Context, binary, dir string, args ...string) (*Tutti, error) {
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	t := &Tutti{binary: binary, dir: dir, port: port, args: args, clients: map[string]*tls.Config{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start tutti: %w", err)
	}
	if err := t.Restart(ctx); err != nil {
		return nil, err
	}
	if err := t.fetchCA(ctx); err != nil {
		return nil, errors.Join(err, t.Stop())
	}
	return t, nil
}

// StartTuttiOnPostgres is [StartTutti] with the records in a PostgreSQL below dir, started with settings such as "shared_buffers=1GB". It counts as a
// part of the server, as PuppetDB's does, and stops with it.
func StartTuttiOnPostgres(ctx context.Context, binary, dir string, settings []string, args ...string) (*Tutti, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil { //nolint:gosec // PostgreSQL's user must pass through
		return nil, fmt.Errorf("start tutti: %w", err)
	}
	postgres, err := StartPostgres(ctx, dir, settings...)
	if err != nil {
		return nil, err
	}
	if err := postgres.MakeDatabase(ctx, database); err != nil {
		return nil, errors.Join(err, postgres.Stop())
	}
	t, err := StartTutti(ctx, binary, dir, append([]string{"--database", postgres.URL(database)}, args...)...)
	if err != nil {
		return nil, errors.Join(err, postgres.Stop())
	}
	t.postgres = postgres
	return t, nil
}

// database is what the records' database is called.
const database = "tutti"

// Analyze gives the planner of PostgreSQL statistics of what was loaded at once.
func (t *Tutti) Analyze(ctx context.Context) error {
	if t.postgres == nil {
		return nil
	}
	return t.postgres.Analyze(ctx, database)
}

// Use has the next start get other arguments than the last one.
func (t *Tutti) Use(args ...string) { t.args = args }

// Restart starts the server on the data directory that is there, after Kill or
// Stop, and waits until it runs.
func (t *Tutti) Restart(ctx context.Context) error {
	args := append([]string{
		"server", "--data", t.dataDir(), "--listen", "127.0.0.1:" + strconv.Itoa(t.port),
		"--dns-alt-names", "localhost", "--autosign", "all",
	}, t.args...)
	proc, err := start(ctx, command{path: t.binary, args: args, dir: t.dir, log: filepath.Join(t.dir, "server.log")})
	if err != nil {
		return err
	}
	t.proc = proc
	if err := proc.waitFor(ctx, t.running); err != nil {
		return errors.Join(err, t.Stop())
	}
	return nil
}

func (t *Tutti) dataDir() string { return filepath.Join(t.dir, "data") }

// Port is where the server listens.
func (t *Tutti) Port() int { return t.port }

// CAPath is where the server's CA certificates lie.
func (t *Tutti) CAPath() string { return filepath.Join(t.dir, "ca.pem") }

// LocalhostURL is URL with the name that stands in the server's certificate.
func (t *Tutti) LocalhostURL() string { return "https://localhost:" + strconv.Itoa(t.port) }

// blind is for the first contact, when the CA is not known yet; what it fetches
// is verified by every later connection.
func blind() *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12} //nolint:gosec // as an agent's first contact
}

func (t *Tutti) running(ctx context.Context) bool {
	return getOK(ctx, t.URL()+"/status/v1/simple", blind(), "running")
}

func (t *Tutti) fetchCA(ctx context.Context) error {
	conn, err := load.NewConn(t.URL(), blind())
	if err != nil {
		return err
	}
	defer conn.Close()
	request := load.Request{Path: "/puppet-ca/v1/certificate/ca"}
	response, err := conn.Fetch(ctx, request)
	if err := load.Expect(request, response, err, http.StatusOK); err != nil {
		return err
	}
	t.pool = x509.NewCertPool()
	if !t.pool.AppendCertsFromPEM(response.Body) {
		return errors.New("the server's CA answer holds no certificate")
	}
	return os.WriteFile(t.CAPath(), response.Body, 0o600)
}

// Name implements [Target].
func (t *Tutti) Name() string { return "tutti" }

// Version implements [Target].
func (t *Tutti) Version(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, t.binary, "--version").Output() //nolint:gosec // our own binary
	if err != nil {
		return "development"
	}
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "tutti version ")
}

// URL implements [Target].
func (t *Tutti) URL() string { return "https://127.0.0.1:" + strconv.Itoa(t.port) }

// Client implements [Target]: it enrols the node as an agent does.
//
// The certificate of an unknown node has no rights but its own; see [Tutti.Trust].
func (t *Tutti) Client(ctx context.Context, certname string) (*tls.Config, error) {
	t.mu.Lock()
	known := t.clients[certname]
	t.mu.Unlock()
	if known != nil {
		return known, nil
	}
	pair, err := t.enrol(ctx, certname)
	if err != nil {
		return nil, fmt.Errorf("enrol %s: %w", certname, err)
	}
	config := clientConfig(t.pool, pair)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[certname] = config
	return config, nil
}

func (t *Tutti) enrol(ctx context.Context, certname string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: certname}}, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	conn, err := load.NewConn(t.URL(), t.Trust())
	if err != nil {
		return tls.Certificate{}, err
	}
	defer conn.Close()
	put := load.Request{
		Method: http.MethodPut, Path: "/puppet-ca/v1/certificate_request/" + certname,
		Header: http.Header{"Content-Type": {"text/plain"}},
		Body:   pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: csr}),
	}
	response, err := conn.Fetch(ctx, put)
	if err := load.Expect(put, response, err, http.StatusOK); err != nil {
		return tls.Certificate{}, err
	}
	get := load.Request{Path: "/puppet-ca/v1/certificate/" + certname}
	response, err = conn.Fetch(ctx, get)
	if err := load.Expect(get, response, err, http.StatusOK); err != nil {
		return tls.Certificate{}, err
	}
	block, _ := pem.Decode(response.Body)
	if block == nil {
		return tls.Certificate{}, errors.New("the server's answer holds no certificate")
	}
	return tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key}, nil
}

// Trust gives the TLS settings of a client without a certificate, for those that
// have a token.
func (t *Tutti) Trust() *tls.Config {
	return &tls.Config{RootCAs: t.pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
}

// Usage implements [Target].
func (t *Tutti) Usage() (measure.Usage, error) {
	usage, err := t.proc.usage()
	if err != nil || t.postgres == nil {
		return usage, err
	}
	records, err := t.postgres.Usage()
	return usage.And(records), err
}

// Stop implements [Target].
func (t *Tutti) Stop() error {
	err := t.proc.stop(syscall.SIGTERM)
	if t.postgres != nil {
		err = errors.Join(err, t.postgres.Stop())
	}
	return err
}

// Kill is kill -9 of the server alone; what it had started must find out.
func (t *Tutti) Kill() error {
	if err := t.proc.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-t.proc.done
	return nil
}

// Run calls the command line as its administrator and returns what it printed.
func (t *Tutti) Run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.binary, args...) //nolint:gosec // our own binary and arguments
	cmd.Env = append(os.Environ(),
		"TUTTI_SERVER="+t.LocalhostURL(),
		"TUTTI_TOKEN_FILE="+t.TokenPath(), "TUTTI_CA_FILE="+t.CAPath())
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("tutti %s: %w\n%s", strings.Join(args, " "), err, errs.String())
	}
	return out, nil
}

// TokenPath is where the administrator's token lies.
func (t *Tutti) TokenPath() string { return filepath.Join(t.dataDir(), "admin.token") }

// Deploy makes a version of a directory and gives it to an environment.
func (t *Tutti) Deploy(ctx context.Context, environment, dir, baseModulePath string) error {
	_, err := t.Run(ctx, "code", "deploy", "--no-check", environment, dir, "--base-module-path", baseModulePath)
	return err
}

// API asks as the administrator.
func (t *Tutti) API() (*api.Client, error) {
	token, err := os.ReadFile(t.TokenPath())
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(t.CAPath())
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.ClientConfig{Server: t.LocalhostURL(), Token: strings.TrimSpace(string(token)), CAPEM: ca})
}
