package rivals

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/tutti-project/tutti/bench/rivals/measure"
)

// Nginx serves one directory over TLS.
type Nginx struct {
	ca   *CA
	proc *process
	port int
}

// nginxConfig is Debian's with what a static file server is commonly given:
// a cache of open files is left out, since nobody else may have one either. The
// cipher is the one that Go's server picks, so that both encrypt alike, and a
// connection is kept for as many requests as the client likes.
const nginxConfig = `@USER@
worker_processes auto;
daemon off;
pid @DIR@/nginx.pid;
error_log @DIR@/error.log;
events { worker_connections 1024; }
http {
  sendfile on;
  tcp_nopush on;
  default_type application/octet-stream;
  access_log @DIR@/access.log;
  client_body_temp_path @DIR@/body;
  proxy_temp_path @DIR@/proxy;
  fastcgi_temp_path @DIR@/fastcgi;
  uwsgi_temp_path @DIR@/uwsgi;
  scgi_temp_path @DIR@/scgi;
  keepalive_requests 100000000;
  server {
    listen 127.0.0.1:@PORT@ ssl;
    server_name localhost;
    ssl_protocols TLSv1.2 TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_certificate @CERT@;
    ssl_certificate_key @KEY@;
    ssl_client_certificate @CA@;
    ssl_crl @CRL@;
    ssl_verify_client on;
    location @PREFIX@ { alias @ROOT@; }
    location = /ready { return 200 "running"; }
  }
}
`

// StartNginx serves the directory root below the URL path prefix; both end in a slash.
func StartNginx(ctx context.Context, dir, prefix, root string) (*Nginx, error) {
	binary, err := need("nginx", "nginx-light")
	if err != nil {
		return nil, err
	}
	port, err := FreePort(ctx)
	if err != nil {
		return nil, err
	}
	ca, err := NewCA(dir)
	if err != nil {
		return nil, err
	}
	cert, key, err := ca.IssueFiles(dir, "localhost")
	if err != nil {
		return nil, err
	}
	asUser := ""
	if os.Getuid() == 0 { // otherwise workers become www-data, which may not read our files
		asUser = "user root root;"
	}
	fill := strings.NewReplacer("@USER@", asUser, "@DIR@", dir, "@PORT@", strconv.Itoa(port), "@PREFIX@", prefix, "@ROOT@", root,
		"@CERT@", cert, "@KEY@", key, "@CA@", ca.CertPath, "@CRL@", ca.CRLPath)
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, []byte(fill.Replace(nginxConfig)), 0o600); err != nil {
		return nil, fmt.Errorf("configure nginx: %w", err)
	}
	proc, err := start(ctx, command{
		path: binary, dir: dir, log: filepath.Join(dir, "nginx.log"),
		args: []string{"-p", dir, "-e", filepath.Join(dir, "error.log"), "-c", config},
	})
	if err != nil {
		return nil, err
	}
	n := &Nginx{ca: ca, proc: proc, port: port}
	if err := proc.waitFor(ctx, n.running); err != nil {
		return nil, errors.Join(err, n.Stop())
	}
	return n, nil
}

func (n *Nginx) running(ctx context.Context) bool {
	config, err := n.ca.Client("bench-probe")
	return err == nil && getOK(ctx, n.URL()+"/ready", config, "running")
}

// Name implements [Target].
func (n *Nginx) Name() string { return "nginx" }

// Version implements [Target].
func (n *Nginx) Version(ctx context.Context) string { return packageVersion(ctx, "nginx-light") }

// URL implements [Target].
func (n *Nginx) URL() string { return "https://127.0.0.1:" + strconv.Itoa(n.port) }

// Client implements [Target].
func (n *Nginx) Client(_ context.Context, certname string) (*tls.Config, error) {
	return n.ca.Client(certname)
}

// Usage implements [Target].
func (n *Nginx) Usage() (measure.Usage, error) { return n.proc.usage() }

// Stop implements [Target].
func (n *Nginx) Stop() error { return n.proc.stop(syscall.SIGTERM) }
