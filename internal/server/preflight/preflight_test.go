package preflight

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault/checkup"
	"github.com/tutti-project/tutti/internal/server/datadir"
	"github.com/tutti-project/tutti/internal/server/settings"
)

// found is the finding of a check.
func found(t *testing.T, all []checkup.Finding, check string) checkup.Finding {
	t.Helper()
	for _, f := range all {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("there is no check %q in %+v", check, all)
	return checkup.Finding{}
}

// What keeps a server from its start is found without starting it, and each says how it is mended.
func TestPreflight(t *testing.T) {
	t.Parallel()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() }) // the cases run after this function
	name, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	process := strings.TrimSpace(string(name)) + " (process " + strconv.Itoa(os.Getpid()) + ") uses the port"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"open", "others", "held"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "open"), 0o755); err != nil {
		t.Fatal(err)
	}
	held, err := datadir.Open(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	for title, c := range map[string]struct {
		change func(*settings.Config)
		check  string
		state  checkup.Verdict
		found  string
		mend   string
	}{
		"no directory yet": {func(c *settings.Config) { c.Data = filepath.Join(dir, "none", "yet") }, "data", checkup.Good, "is not there yet", ""},
		"others can read it": {
			func(c *settings.Config) { c.Data = filepath.Join(dir, "open") }, "data", checkup.Broken, "mode 0755, so others can read its keys",
			"chmod 700 " + filepath.Join(dir, "open"),
		},
		"a file": {func(c *settings.Config) { c.Data = filepath.Join(dir, "file") }, "data", checkup.Broken, "is not a directory", "--data"},
		"a server runs": {
			func(c *settings.Config) { c.Data = filepath.Join(dir, "held") }, "data", checkup.Good,
			"is used by the server that runs (process " + strconv.Itoa(os.Getpid()) + ")", "",
		},
		"its port, too": {
			func(c *settings.Config) { c.Data, c.Listen = filepath.Join(dir, "held"), socket.Addr().String() }, "port", checkup.Good,
			"is used by the server that runs", "",
		},
		"a port that is used": {
			func(c *settings.Config) { c.Listen = socket.Addr().String() }, "port", checkup.Broken, process, "stop it, or give another with --listen",
		},
		"the other port":       {func(c *settings.Config) { c.BrokerListen = socket.Addr().String() }, "broker port", checkup.Broken, process, "--broker-listen"},
		"the port of RBAC":     {func(c *settings.Config) { c.RBACListen = socket.Addr().String() }, "RBAC port", checkup.Broken, process, "--rbac-listen"},
		"an address of others": {func(c *settings.Config) { c.Listen = "192.0.2.1:0" }, "port", checkup.Broken, "this machine does not have the address", "ip addr"},
		"no Ruby": {
			func(c *settings.Config) { c.Ruby = "/nowhere/ruby" }, "engine ruby", checkup.Broken, "there is no Ruby at /nowhere/ruby", "apt-get install puppet-agent",
		},
		"a Ruby without Puppet": {
			func(c *settings.Config) { c.Ruby = "/bin/false" }, "engine ruby", checkup.Broken, "does not say which Puppet it has", "apt-get install puppet-agent",
		},
		"another engine": {
			func(c *settings.Config) { c.Engines = []string{"new:/nowhere/ruby"} }, "engine new", checkup.Warning, "there is no Ruby", "take it out of engines",
		},
		"files": {
			func(c *settings.Config) { c.MaxConnections = 1 << 40 }, "open files", checkup.Warning, "too few for max_connections",
			"LimitNOFILE=" + strconv.Itoa(1<<40+1024),
		},
		"a name of its own": {func(c *settings.Config) { c.DNSAltNames = []string{"tutti.example.test"} }, "names", "", "tutti.example.test", ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			config := settings.Default()
			config.Data, config.Listen, config.CompileIsolation = filepath.Join(dir, "others"), "127.0.0.1:0", "off"
			c.change(&config)
			f := found(t, Check(t.Context(), config), c.check)
			if c.state != "" && f.State != c.state || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Mend, c.mend) {
				t.Errorf("%+v; want %s, %q, %q", f, c.state, c.found, c.mend)
			}
		})
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "others")); err != nil || len(entries) != 0 {
		t.Errorf("looking made %v, %v", entries, err)
	}
}

// Who checks settings is told what cells lack; a strict server that cannot have them is refused.
func TestTheCheckOfCells(t *testing.T) {
	t.Parallel()
	c := settings.Default()
	if f := cellCheck(t.Context(), c); f.State == checkup.Broken || !strings.Contains(f.Found, "in cells") {
		t.Errorf("%+v", f)
	}
	c.CompileIsolation = "off"
	if f := cellCheck(t.Context(), c); f.State != checkup.Warning || !strings.Contains(f.Found, "may do whatever the server may") || f.Mend == "" {
		t.Errorf("off: %+v", f)
	}
	c.CompileIsolation, c.CompileUser = "strict", "no-such-user"
	if f := cellCheck(t.Context(), c); f.State != checkup.Broken || !strings.Contains(f.Found, "compile_user") {
		t.Errorf("strict: %+v", f)
	}
}

func TestSocketsThatListen(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"  0: 0100007F:1FCC 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 x 100 0 0 10 0": "4242",
		"  0: 0100007F:1FCC 0100007F:1234 01 00000000:00000000 00:00000000 00000000     0        0 4242 1 x 100 0 0 10 0": "", // connected
		"  0: 0100007F:1FCD 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 x 100 0 0 10 0": "", // another port
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode":                "",
	} {
		if got := listener(line, 0x1FCC); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}
