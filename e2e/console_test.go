package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/api"
	fleetpkg "github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/rbac"
	"github.com/tutti-project/tutti/internal/release"
	"github.com/tutti-project/tutti/internal/sim"
)

// consoleCode makes a file, and a service that needs it.
const consoleCode = `class app {
  file { '/srv/app.conf':
    content => "workers = 4\n",
    mode    => $trusted['certname'] ? { /^red/ => '0600', default => '0644' },
  }
  service { 'app':
    ensure  => running,
    require => File['/srv/app.conf'],
  }
}
node default {
  include app
}
`

// consoleTask is a task of the code: its form has one field of each kind.
const consoleTask = `{
  "description": "Restarts the web server, or has it read its configuration again",
  "supports_noop": true,
  "parameters": {
    "action": {"type": "Enum[restart, reload]", "description": "What to do"},
    "wait": {"type": "Optional[Integer[0, 60]]", "description": "Seconds before it is done"},
    "force": {"type": "Optional[Boolean]"},
    "note": {"type": "Optional[String]", "description": "For the log of the web server"},
    "vhosts": {"type": "Optional[Array[String]]"},
    "password": {"type": "Optional[String[8]]", "sensitive": true}
  }
}
`

// nextConsoleCode changes the file, drops the service, adds a user, warns of something, and does not compile for one node.
const nextConsoleCode = `class app {
  file { '/srv/app.conf':
    content => "workers = 8\nlisten = 8080\n",
    mode    => $trusted['certname'] ? { /^red/ => '0600', default => '0644' },
  }
  user { 'app':
    ensure => present,
  }
}
node 'sim-0003.example.test' {
  notice($unheard_of)
  fail('app is not for this node')
}
node default {
  warning('app is to be replaced')
  include app
}
`

// consoleWorld is a server whose console has something to show.
type consoleWorld struct {
	*server
	red   string // the node whose run failed
	nodes int
}

// startConsole starts it: simulated nodes that run Puppet, and one that failed.
func startConsole(t *testing.T, names []string) *consoleWorld {
	t.Helper()
	s := startServer(t, "--autosign", "list", "--autosign-list", "*.example.test", "--console-listen", "127.0.0.1:0", "--console-plain")
	code, next, broken := filepath.Join(t.TempDir(), "code"), filepath.Join(t.TempDir(), "next"), filepath.Join(t.TempDir(), "broken")
	write(t, filepath.Join(code, "manifests", "site.pp"), consoleCode)
	write(t, filepath.Join(code, "modules", "web", "tasks", "restart.json"), consoleTask)
	write(t, filepath.Join(code, "modules", "web", "tasks", "restart.sh"), "#!/bin/sh\ncat\n")
	write(t, filepath.Join(code, "modules", "web", "tasks", "status.sh"), "#!/bin/sh\nsystemctl is-active nginx\n")
	write(t, filepath.Join(next, "manifests", "site.pp"), nextConsoleCode)
	write(t, filepath.Join(broken, "manifests", "app.pp"), "class app {\n  file { '/srv/app.conf'\n}\n")
	s.tutti(t, "code", "deploy", "--no-check", "production", code)
	w := &consoleWorld{server: s, red: "red-1.example.test", nodes: len(names) + 1}
	failing := enrol(t, s, w.red)
	if given, err := failing.catalog("production", nil); err != nil || given.status != http.StatusOK {
		t.Fatalf("no catalog: %v %+v", err, given)
	}
	for _, report := range [][]byte{
		reportJSON(w.red, newUUID()), failedReport(t, w.red, strings.TrimSpace(s.tutti(t, "code", "versions", "production", "-o", "name"))),
	} {
		failing.must(t, http.MethodPut, "/puppet/v3/report/"+w.red+"?environment=production", "application/json", report)
	}
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(enroller.Close)
	f, err := startNodes(s, enroller, sim.Config{Names: names, Catalogs: "https://localhost:" + s.port()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close() })
	s.tutti(t, "run", names[0], names[1], "--yes")
	w.tutti(t, "code", "deploy", "--force", "staging", broken)
	w.changes(t, next)
	w.waits(t, "new-1.waits.test")
	return w
}

// changes previews code, and has its release wait after a first wave.
func (w *consoleWorld) changes(t *testing.T, code string) {
	t.Helper()
	w.tutti(t, "catalog", "mode", "--group", "All Nodes", "released")
	eventually(t, patience, "every node has a catalog to compare with", func() bool {
		return decode[api.CodeStatus](t, w.server, "code", "status", "production").Current == w.nodes
	})
	w.try(t, "preview", "create", "production", "--ref", code, "--description", "eight workers")
	w.tutti(t, "preview", "ack", "1", "1", "--text", "as in ticket 81")
	w.tutti(t, "release", "create", "--preview", "1", "--where", `certname ~ "^sim-"`, "--wave", "3", "--wave", "rest", "--promote", "manual",
		"--description", "eight workers", "--yes", "--no-wait")
	eventually(t, patience, "the release waits after its first wave", func() bool {
		return decode[api.ReleaseReport](t, w.server, "release", "show", "1").Hold == string(release.ForPromoter)
	})
}

// waits sends a request for a certificate that somebody has to sign.
func (w *consoleWorld) waits(t *testing.T, name string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := newRequest(key, name)
	if err != nil {
		t.Fatal(err)
	}
	anonymous(t, w.server).must(t, http.MethodPut, "/puppet-ca/v1/certificate_request/"+name, "text/plain", request)
}

// failedReport is the report of a run of a version in which a file failed, and what needs it was skipped.
func failedReport(t *testing.T, name, version string) []byte {
	t.Helper()
	var report map[string]any
	if err := json.Unmarshal(reportJSON(name, newUUID()), &report); err != nil {
		t.Fatal(err)
	}
	now := time.Now().Format(time.RFC3339Nano)
	status := func(resource, kind, title string, line int, more map[string]any) map[string]any {
		made := map[string]any{
			"title": title, "resource": resource, "resource_type": kind, "containment_path": []string{"Stage[main]", "App", resource},
			"file": "/etc/puppetlabs/code/environments/production/manifests/site.pp", "line": line, "evaluation_time": 0.1, "tags": []string{"app"},
			"time": now, "failed": false, "changed": false, "out_of_sync": false, "skipped": false, "change_count": 0, "out_of_sync_count": 0,
			"corrective_change": false, "failed_to_restart": false, "events": []any{},
		}
		maps.Copy(made, more)
		return made
	}
	report["status"], report["configuration_version"] = "failed", version
	report["resource_statuses"] = map[string]any{
		"File[/srv/app.conf]": status("File[/srv/app.conf]", "File", "/srv/app.conf", 2, map[string]any{
			"failed": true, "out_of_sync": true, "events": []any{map[string]any{
				"audited": false, "property": "content", "previous_value": "{sha256}1", "desired_value": "{sha256}2", "name": "content_changed",
				"message": "could not be written: no space left on device", "status": "failure", "time": now, "corrective_change": false,
			}},
		}),
		"Service[app]": status("Service[app]", "Service", "app", 6, map[string]any{"skipped": true}),
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// viewer is somebody who may only look; the API takes the password.
func (w *consoleWorld) viewer(t *testing.T, name, password string) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(w.data, api.TokenFile))
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(api.UserCreateRequest{Name: name, Roles: []string{"viewer"}, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	made, err := anonymous(t, w.server).doHeaders(http.MethodPost, api.Prefix+"/users", map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer " + strings.TrimSpace(string(token)),
	}, body)
	if err != nil || made.status != http.StatusOK {
		t.Fatalf("no user: %v %+v", err, made)
	}
}

// servesBrowsers holds that the console shows the server's certificate, asks for none, and speaks HTTP/2.
func servesBrowsers(t *testing.T, s *server) {
	t.Helper()
	link := decode[api.LoginLink](t, s, "console", "open").URL
	asked := false
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{
		RootCAs: s.roots(t), MinVersion: tls.VersionTLS12, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			asked = true
			return &tls.Certificate{}, nil
		},
	}}
	t.Cleanup(transport.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
	if err != nil {
		t.Fatal(err)
	}
	page, err := (&http.Client{Timeout: agentTimeout, Transport: transport}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(page.Body)
	if err = errors.Join(err, page.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if page.StatusCode != http.StatusOK || page.Proto != "HTTP/2.0" || asked || !strings.Contains(string(text), "<title>Tutti") {
		t.Errorf("%s: %s %s, asked for a certificate: %t\n%s", link, page.Proto, page.Status, asked, text)
	}
}

// browse runs a script of console/e2e in Debian's Chromium, and returns what it said.
func (w *consoleWorld) browse(t *testing.T, script string, more ...string) string {
	t.Helper()
	link := decode[api.LoginLink](t, w.server, "console", "open").URL
	address, _, _ := strings.Cut(link, "/login#")
	cmd := exec.CommandContext(t.Context(), "node", script)
	cmd.Dir = filepath.Join("..", "console", "e2e")
	cmd.Env = slices.Concat(os.Environ(), more, []string{
		"TUTTI_CONSOLE=" + address, "TUTTI_CONSOLE_LINK=" + link, "TUTTI_RED=" + w.red, "TUTTI_NODES=" + strconv.Itoa(w.nodes),
	})
	var out bytes.Buffer
	said := io.MultiWriter(&out, t.Output()) // while it is said
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v (`make console-deps` installs what it needs)", script, err)
	}
	return out.String()
}

// runs holds that the command lines which pages showed are of use: a shell reads them, and each does what it says. One that follows is
// asked for its help, which it gives only with flags that it has. At least so many were shown.
func (w *consoleWorld) runs(t *testing.T, said string, least int) {
	t.Helper()
	ran := 0
	for line := range strings.Lines(said) {
		command, is := strings.CutPrefix(strings.TrimSpace(line), "command: ")
		if !is {
			continue
		}
		ran++
		if strings.HasPrefix(command, "tutti event tail") {
			command += " --help"
		}
		env := append(slices.Clone(w.env), "TUTTI_DATA="+w.data, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
		// Of a preview the exit code says that the code does not compile for some.
		if r := execute(t, env, time.Minute, "sh", "-c", command); r.code != 0 && (r.code != 4 || command != "tutti preview show 1") {
			t.Errorf("%s: exit code %d\n%s", command, r.code, r.text())
		}
	}
	if ran < least {
		t.Errorf("only %d command lines were shown", ran)
	}
}

// People see and order in a browser what the command line shows and does. The script is console/e2e/journeys.mjs: each page is
// looked at by axe in both themes, and the browser may say nothing under the page's strict policy.
func TestConsole(t *testing.T) {
	begin(t, 90)
	w := startConsole(t, sim.Names(30, "example.test"))
	w.viewer(t, "vera", "look-but-do-not-touch")
	w.runs(t, w.browse(t, "journeys.mjs", "TUTTI_VIEWER=vera", "TUTTI_VIEWER_PASSWORD=look-but-do-not-touch", "TUTTI_ACTS="+w.actsBeyond(t, "viewer")), 12)
}

// actsBeyond is every act of the API that a built-in role does not allow, on things that are there, as JSON.
func (w *consoleWorld) actsBeyond(t *testing.T, role string) string {
	t.Helper()
	roles := rbac.BuiltIn()
	at := slices.IndexFunc(roles, func(r rbac.Role) bool { return r.Name == role })
	there := strings.NewReplacer("{name}", w.red, "{environment}", "production", "{group}", "All%20Nodes", "{path.group}", "All%20Nodes",
		"{user}", "admin", "{role}", "viewer",
		"{module}", "service", "{action}", "status", "{policy}", "services-stay", "{freeze}", "nights", "{saved}", "webs", "{job}", "1",
		"{release}", "1", "{preview}", "1", "{rule}", "none", "{task}", "web::restart")
	type act struct{ Name, Method, Path string }
	var acts []act
	for _, op := range api.Operations() {
		allowed := slices.ContainsFunc(roles[at].Grants, func(g fleetpkg.Grant) bool { return g.Permission == op.Permission })
		if op.Kind != api.Act || allowed || !slices.Contains(fleetpkg.Permissions(), op.Permission) {
			continue // what is nobody's permission is about who asks: their own sessions and tokens
		}
		path := there.Replace(op.Path)
		if strings.Contains(path, "{") {
			t.Fatalf("what stands for the names in %s?", path)
		}
		acts = append(acts, act{op.Name, op.Method, api.Prefix + path})
	}
	if len(acts) < 50 {
		t.Errorf("only %d acts are beyond a %s", len(acts), role)
	}
	text, err := json.Marshal(acts)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
