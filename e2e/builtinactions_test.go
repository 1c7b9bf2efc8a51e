package e2e_test

import (
	"crypto/md5"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tutti-project/tutti/internal/action"
	agentpkg "github.com/tutti-project/tutti/internal/agent"
	"github.com/tutti-project/tutti/internal/program/programtest"
	"github.com/tutti-project/tutti/internal/wire"
	"github.com/tutti-project/tutti/internal/wire/pxp"
)

// tried is an action of a built-in module on a real node. @ in input and want is the directory of the node's harmless things.
type tried struct {
	action string // module.action
	input  string
	want   string // a pattern of its results; of code and reason if it is aborted
	how    string // why it harms nothing, if it changes something or does not come about
}

// Every action of every built-in module, in the order in which they are asked for.
var everyAction = []tried{
	{"rpcutil.ping", `{}`, `"pong":1[0-9]{9}`, ""},
	{"rpcutil.inventory", `{}`, `"agents":\[.*"rpcutil".*"data_plugins":\["agent","fact"`, ""},
	{"rpcutil.agent_inventory", `{}`, `"agent":"filemgr"`, ""},
	{"rpcutil.collective_info", `{}`, `"main_collective":"mcollective"`, ""},
	{"rpcutil.daemon_stats", `{}`, `"pid":[0-9]+`, ""},
	{"rpcutil.get_fact", `{"fact":"no_such_fact"}`, `"fact":"no_such_fact"`, ""},
	{"rpcutil.get_facts", `{"facts":"kernel,no_such_fact"}`, `"values":\{`, ""},
	{"rpcutil.get_data", `{"source":"agent","query":"filemgr"}`, `"version"`, ""},
	{"rpcutil.get_data", `{"source":"fstat","query":"@/nothing"}`, `"present":0`, ""},
	{"rpcutil.get_data", `{"source":"package","query":"base"}`, `"installed":true`, ""},
	{"rpcutil.get_data", `{"source":"service","query":"lamp"}`, `"status":"stopped"`, ""},
	{"rpcutil.get_data", `{"source":"puppet"}`, `"enabled":true`, ""},

	{"process.list", `{"pattern":"lamp-burns"}`, `"count":0`, ""},
	{"service.status", `{"service":"lamp"}`, `"status":"stopped","enabled":"disabled".*"provider":"init"`, ""},
	{"service.start", `{"service":"lamp"}`, `"status":"running"`, "a script in the node's own /etc/init.d starts a process that sleeps"},
	{"process.list", `{"pattern":"lamp-burns"}`, `"count":1`, ""},
	{"service.restart", `{"service":"lamp"}`, `"status":"running"`, "the same"},
	{"service.enable", `{"service":"lamp"}`, `"enabled":"enabled"`, "the system's update-rc.d makes links in the node's own /etc/rc?.d"},
	{"service.disable", `{"service":"lamp"}`, `"enabled":"disabled"`, "the same"},
	{"service.stop", `{"service":"lamp"}`, `"status":"stopped"`, "ends the process that was started"},

	{"package.apt_update", `{}`, `"exitcode":0`, "the system's apt-get fetches the list of a repository of files into the node's own directory"},
	{"package.status", `{"package":"tiny"}`, `"ensure":"purged","provider":"apt"`, ""},
	{"package.install", `{"package":"tiny","version":"1.0"}`, `"ensure":"1.0"`, "the system's apt-get and dpkg install below a root of the node's own"},
	{"package.checkupdates", `{}`, `"package_manager":"apt","outdated_packages":\[\{"package":"tiny","version":"2.0".*"installed":"1.0"`, ""},
	{"package.apt_checkupdates", `{}`, `"package":"tiny"`, ""},
	{"package.update", `{"package":"tiny"}`, `"ensure":"2.0"`, "below the same root"},
	{"package.count", `{}`, `"output":2`, ""},
	{"package.md5", `{}`, `"output":"` + fmt.Sprintf("%x", md5.Sum([]byte("base 1\ntiny 2.0\n"))) + `"`, ""},
	{"package.uninstall", `{"package":"tiny"}`, `"ensure":"purged"`, "below the same root"},
	{"package.purge", `{"package":"tiny"}`, `"ensure":"purged"`, "below the same root"},
	{"package.yum_checkupdates", `{}`, `^1 this node's package manager is apt, not dnf or yum$`, "the system has no dnf; the module's own test has a made up one"},
	{"package.yum_clean", `{}`, `^1 this node's package manager is apt, not dnf or yum$`, "the system has no dnf; the module's own test has a made up one"},

	{"filemgr.touch", `{"file":"@/touched"}`, `"output":"the file was made"`, "a file of the test's own"},
	{"filemgr.status", `{"file":"@/touched"}`, `"type":"file","size":0`, ""},
	{"filemgr.list", `{"file":"@"}`, `"touched"`, ""},
	{"filemgr.read", `{"file":"@/said"}`, `"text":"hello\\n"`, ""},
	{"filemgr.checksum", `{"file":"@/said","type":"sha256"}`, fmt.Sprintf("%x", sha256.Sum256([]byte("hello\n"))), ""},
	{"filemgr.remove", `{"file":"@/touched"}`, `"output":"it was removed"`, "a file of the test's own"},

	{"puppet.disable", `{"message":"the test"}`, `"enabled":false`, "the lock of the node's own Puppet directories"},
	{"puppet.status", `{}`, `"enabled":false.*"disable_message":"the test"`, ""},
	{"puppet.enable", `{}`, `"enabled":true`, "the same lock"},
	{"puppet.runonce", `{"noop":true}`, `"summary":"Puppet ran in the environment production: `, "with noop, in the node's own Puppet directories"},
	{"puppet.last_run_summary", `{}`, `"total_resources":[1-9]`, ""},
	{"puppet.resource", `{"type":"file","name":"@/applied","ensure":"file"}`, `"changed":true`, "a file of the test's own, of the one type that the node allows"},
	{"resource.apply", `{"type":"file","name":"@/applied","ensure":"absent"}`, `"changed":true`, "the same file"},
	{"resource.find", `{"type":"file","title":"@/said"}`, `"ensure":"file"`, ""},
	{"resource.list", `{"type":"group"}`, `"title":"root"`, ""},
	{"puppetral.find", `{"type":"file","title":"@/said"}`, `"ensure":"file"`, ""},
	{"puppetral.search", `{"type":"group"}`, `"title":"root"`, ""},
}

// An action that a built-in module describes and that nobody tries is a gap; one that is tried and not there is a mistake. Whoever changes
// something says why it harms nothing.
func TestEveryActionIsTried(t *testing.T) {
	t.Parallel()
	for name, a := range builtInActions(t) {
		i := slices.IndexFunc(everyAction, func(try tried) bool { return try.action == name })
		switch {
		case i < 0:
			t.Errorf("no test tries %s", name)
		case !a.ReadOnly && everyAction[i].how == "":
			t.Errorf("%s changes something: say how it harms nothing", name)
		}
	}
}

// builtInActions are those of all built-in modules, as module.action.
func builtInActions(t *testing.T) map[string]action.Action {
	t.Helper()
	modules, err := agentpkg.BuiltIns()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]action.Action{}
	for _, m := range modules {
		for _, a := range m.Actions {
			all[m.Name+"."+a.Name] = a
		}
	}
	return all
}

// A controller asks a real node for every action of its built-in modules. The node runs in a mount namespace with services of its own, and with
// packages below a root of its own; the programs are the system's.
func TestEveryActionOfTheBuiltInModules(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all", "--broker-controllers", "ctl", "--compile-patience", "60s")
	s.deploy(t, "production")
	things := t.TempDir()
	write(t, filepath.Join(things, "said"), "hello\n")
	// filemgr read gives what all may read.
	for path, mode := range map[string]os.FileMode{filepath.Dir(things): 0o711, things: 0o755, filepath.Join(things, "said"): 0o644} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	a := newAgent(t, s, "web-1", "story=basic")
	if r := a.puppet(t, "ssl", "bootstrap"); r.code != 0 {
		t.Fatalf("puppet ssl bootstrap: %s", r.text())
	}
	dir := t.TempDir()
	s.tutti(t, "agent", "join", s.url, "--dir", dir, "--use-puppet-certificates", "--puppet-ssldir", filepath.Join(a.home, "ssldir"), "--certname", a.name)
	write(t, filepath.Join(dir, "policy.yaml"), "extra_actions: [filemgr touch, filemgr remove]\n")
	d := newDaemon(t, a.name, dir, "--puppet", a.wrapper(t, dir), "--resource-types-allowed", "file")
	d.program, d.env = ownServices(t, s.program), ownPackages(t)
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	ctl := enrol(t, s, "ctl").pcp(t, "", "/pcp2/controller", wire.V2).associate()

	known := builtInActions(t)
	for _, try := range everyAction {
		a, ok := known[try.action]
		if !ok {
			t.Errorf("there is no action %s", try.action)
			continue
		}
		module, name, _ := strings.Cut(try.action, ".")
		got := ctl.tries(d.uri(), module, name, strings.ReplaceAll(try.input, "@", things), a.ReadOnly)
		if !regexp.MustCompile(strings.ReplaceAll(try.want, "@", regexp.QuoteMeta(things))).MatchString(got) {
			t.Errorf("%s %s gives %s, want %s", try.action, try.input, got, try.want)
		}
	}
}

// tries asks for an action: its results, or the code and the reason of its failure.
func (p *pcp) tries(to wire.URI, module, name, input string, reads bool) string {
	p.t.Helper()
	if transaction := newUUID(); reads {
		p.send(wire.Message{Type: wire.BlockingRequest, Target: to, Data: pxp.Data(pxp.Request{
			Transaction: transaction, Module: module, Action: name, Params: jsontext.Value(input),
		})})
	} else {
		p.order(to, module, name, input)
	}
	m := p.receive()
	if m.Type == wire.RPCError {
		f, err := pxp.ParseFailure(m.Data)
		if err != nil {
			p.t.Fatal(err)
		}
		return fmt.Sprintf("%d %s", f.Code, f.Description)
	}
	r, err := pxp.ParseResponse(m.Data)
	if err != nil {
		p.t.Fatalf("%s %s: %s %s: %v", module, name, m.Type, m.Data, err)
	}
	return string(r.Results)
}

// lamp is a service: a process that sleeps.
const lamp = `#!/bin/sh
### BEGIN INIT INFO
# Provides: lamp
# Required-Start:
# Required-Stop:
# Default-Start: 2 3 4 5
# Default-Stop: 0 1 6
### END INIT INFO
pid=%s/pid
burns() { [ -s $pid ] && case "$(cut -d ' ' -f 3 "/proc/$(cat $pid)/stat")" in ''|Z) return 1 ;; esac; }
stop() { burns && kill -s KILL -- -"$(cat $pid)"; for i in 1 2 3 4 5 6 7 8 9; do burns && sleep 0.1; done; }
exec 2> /dev/null
case $1 in
status) burns || exit 3 ;;
stop) stop; rm -f $pid ;;
start|restart) stop; setsid sh -c 'sleep 3600; :' lamp-burns > /dev/null < /dev/null & echo $! > $pid ;;
esac
`

// ownServices is a program that starts another where init has services of its own, and systemd is not.
func ownServices(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	script := filepath.Join(dir, "etc/init.d/lamp")
	for _, level := range []string{"0", "1", "2", "3", "4", "5", "6", "S"} {
		if err := os.MkdirAll(filepath.Join(dir, "etc/rc"+level+".d"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, script, fmt.Sprintf(lamp, dir))
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command(script, "stop").Run() })
	return programtest.Write(t, filepath.Join(dir, "there"), fmt.Sprintf(`#!/bin/sh
[ "$(id -u)" = 0 ] || user="--user --map-root-user" # root needs none; one would keep it from what belongs to other users
exec unshare $user --mount sh -e -c '
for dir in init.d rc0.d rc1.d rc2.d rc3.d rc4.d rc5.d rc6.d rcS.d; do mount --bind %[1]s/etc/$dir /etc/$dir; done
[ ! -d /run/systemd ] || mount -t tmpfs none /run/systemd
exec "$0" "$@"' %[2]s "$@"
`, dir, program))
}

// ownPackages is the environment of apt-get and dpkg that know one package, in two versions, and a root of their own.
func ownPackages(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"root/var/lib/dpkg/info", "root/var/lib/dpkg/updates", "lists/partial", "cache/archives/partial", "repository"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const control = "Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: small\n"
	var index strings.Builder
	for _, version := range []string{"1.0", "2.0"} {
		tiny, file := fmt.Sprintf(control, "tiny", version), "tiny-"+version+".deb"
		write(t, filepath.Join(dir, version, "DEBIAN/control"), tiny)
		build := exec.Command("dpkg-deb", "--root-owner-group", "-b", filepath.Join(dir, version), filepath.Join(dir, "repository", file))
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("dpkg-deb: %v\n%s", err, out)
		}
		content, err := os.ReadFile(filepath.Join(dir, "repository", file))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&index, "%sFilename: ./%s\nSize: %d\nSHA256: %x\n\n", tiny, file, len(content), sha256.Sum256(content))
	}
	write(t, filepath.Join(dir, "repository/Packages"), index.String())
	write(t, filepath.Join(dir, "sources.list"), "deb [trusted=yes] file:"+dir+"/repository ./\n")
	write(t, filepath.Join(dir, "root/var/lib/dpkg/status"), fmt.Sprintf(control, "base", "1")+"Status: install ok installed\n\n")
	write(t, filepath.Join(dir, "apt.conf"), strings.ReplaceAll(`#clear APT::Update::Post-Invoke;
Dir::State "{}"; Dir::State::status "{}/root/var/lib/dpkg/status"; Dir::Cache "{}/cache"; Dir::Log "{}";
Dir::Etc::sourcelist "{}/sources.list"; Dir::Etc::sourceparts "/dev/null"; APT::Sandbox::User "";
DPkg::Options { "--root={}/root"; "--force-not-root"; "--force-script-chrootless"; "--force-bad-path"; "--log={}/dpkg.log"; };
`, "{}", dir))
	return []string{"APT_CONFIG=" + filepath.Join(dir, "apt.conf"), "DPKG_ADMINDIR=" + filepath.Join(dir, "root/var/lib/dpkg")}
}
