package e2e_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// Somebody who knows MCollective types its commands at a fleet of one real node: layouts and exit codes are MCollective's, and standard error
// has what the command is in Tutti's words.
func TestMCollectivesCommands(t *testing.T) {
	begin(t, 20)
	s := startServer(t)
	if r := s.try(t, "mco", "ping", "-t", "1"); r.code != 4 || !strings.Contains(r.out, "No responses received") {
		t.Errorf("ping of nobody: %s", r.text())
	}
	if r := s.try(t, "mco", "find"); r.code != 1 || r.out != "" {
		t.Errorf("find of nobody: %s", r.text())
	}
	d := joinNode(t, s, "web-1")
	d.start(t)
	d.connectedTo(t, "localhost:"+s.port())
	s.knowsModule(t, 1, "rpcutil", "get_data")

	says := func(code int, out, said string, args ...string) {
		t.Helper()
		r := s.try(t, append([]string{"mco"}, args...)...)
		if r.code != code || !regexp.MustCompile(out).MatchString(r.out) || !regexp.MustCompile(said).MatchString(r.err) {
			t.Errorf("tutti mco %s: exit code %d, want %d, %q, and %q on standard error\n%s", strings.Join(args, " "), r.code, code, out, said, r.text())
		}
	}
	says(0, `^web-1 {36}time=[0-9.]+ ms\n\n\n---- ping statistics ----\n1 replies max: `, `In tutti: tutti ping\n`, "ping")
	says(0, `^web-1\n$`, `In tutti: tutti ping -o name --module rpcutil`, "find", "--wa", "rpcutil", "--dm", "mc")
	names := filepath.Join(t.TempDir(), "names")
	write(t, names, "web-1\n")
	says(0, `^web-1\n$`, `In tutti: tutti ping -o name --targets @`+names+`\n$`, "find", "--nodes", names)
	says(0, `^web-1 {36}time=`, ``, "ping", "--dm", "flatfile", "--do", "file="+names)
	says(2, `^$`, `cannot read the list of nodes: /nowhere: no such file`, "find", "--nodes", "/nowhere")
	chained := execute(t, append(cleanEnv(), "TUTTI_DATA="+s.data), patience, "sh",
		"-c", `"$0" mco rpc rpcutil ping -j -q | "$0" mco rpc rpcutil collective_info --dm stdin`, binary)
	if chained.code != 0 || !strings.Contains(chained.out, "\n   All Collectives: [\"mcollective\"]\n   Main Collective: mcollective\n") ||
		!strings.Contains(chained.err, "In tutti: tutti action run rpcutil collective_info --targets -\n") || strings.Contains(chained.err, "mean nothing") {
		t.Errorf("the nodes of an earlier call: exit code %d\n%s", chained.code, chained.text())
	}
	says(0, `(?s)^Module +service\n.*restart`, `In tutti: tutti action show service\n`, "plugin", "doc", "agent/service")
	says(0, `(?m)^rpcutil +`, `In tutti: tutti action list\n`, "plugin", "doc")
	says(2, `^$`, `there is doc alone`, "plugin", "package", ".")
	says(0, `tutti mco rpc AGENT ACTION`, ``, "help", "rpc")
	says(2, `^$`, `did you mean rpc\?`, "help", "rcp")
	says(0, `^web-1\n$`, `^$`, "find", "-q", "-I", "/^web/", "-1")
	says(1, `^$`, `--select`, "find", "-S", "not web-1 and no_such_fact=1")
	says(2, `^$`, `select|expression`, "find", "-S", "a=")

	says(0, `(?s)^\nweb-1 {36}\n   Time: [0-9]+\n\n\n\nFinished processing 1 / 1 hosts in `, `In tutti: tutti action run rpcutil ping --all`,
		"rpc", "rpcutil", "ping")
	says(0, `"agent": "rpcutil",\n +"action": "ping",\n +"sender": "web-1",\n +"statuscode": 0`, ``, "rpc", "rpcutil", "ping", "-j")
	says(2, `(?s)web-1 +Request Aborted\n   this node has no service nothing-here`, ``, "rpc", "service", "status", "service=nothing-here")
	says(1, `^$`, `No request sent, we did not discover any nodes\.`, "rpc", "rpcutil", "ping", "-I", "nobody.test")
	says(2, `(?s)web-1 +Request Aborted\n   .*filemgr touch is off`, `tutti action run filemgr touch file=/tmp/x`, "rpc", "filemgr", "touch", "file=/tmp/x", "-y")
	says(0, `---- rpcutil#ping call stats ----\n +Nodes: 1 / 1\n`, ``, "rpc", "rpcutil", "ping", "-v")

	says(0, `^No values found for fact no_such_fact\n`, ``, "facts", "no_such_fact")
	says(0, `(?s)^Inventory for web-1:\n.*Agents:\n.*rpcutil`, ``, "inventory", "web-1")
	says(2, `web-1: this node has no service nothing-here`, ``, "service", "status", "nothing-here")
	says(0, `^\n   web-1: bash-[0-9]`, ``, "package", "status", "bash")
	says(0, `^Total Puppet nodes: 1\n`, ``, "puppet", "count")
	says(2, `^$`, `neither "ssh" nor "halt" is an action`, "service", "ssh", "halt")
	says(2, `^$`, `choose status`, "puppet", "statsu")
	says(2, `^$`, `how many nodes run at a time`, "puppet", "runall", "zero")

	// An agent that stands still is connected, and answers nothing.
	if err := d.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) })
	says(3, ``, `tutti action run rpcutil ping --all --timeout 1s`, "rpc", "rpcutil", "ping", "-t", "1")
	says(4, `No responses received`, ``, "ping", "-t", "1")
	if err := d.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "the agent answers again", func() bool { return s.try(t, "mco", "rpc", "rpcutil", "ping", "-t", "2").code == 0 })
}
