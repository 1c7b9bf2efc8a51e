package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tutti-project/tutti/internal/program/programtest"
)

// Somebody looks at resources of two real nodes as Puppet sees them now: what is the same, what differs, as Puppet code, and what a node does not say.
func TestResourcesAsTheyAreNow(t *testing.T) {
	begin(t, 30)
	s := startRaced(t)
	installed, err := exec.LookPath("puppet")
	if err != nil {
		t.Fatal("no puppet here: make test-deps")
	}
	agents := map[string]*daemon{}
	for name, color := range map[string]string{"web-1": "red", "web-2": "green"} {
		dir := t.TempDir()
		for _, sub := range []string{"type", "provider/lamp"} {
			if err := os.MkdirAll(filepath.Join(dir, "lib/puppet", sub), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(dir, "lib/puppet/type/lamp.rb"),
			"Puppet::Type.newtype(:lamp) { ensurable; newparam(:name, :namevar => true); newproperty(:color); newproperty(:watts) }\n")
		write(t, filepath.Join(dir, "lib/puppet/provider/lamp/led.rb"),
			"Puppet::Type.type(:lamp).provide(:led) { def self.instances; [new(:name => 'hall', :ensure => :present, :color => '"+color+
				"', :watts => 7)]; end; mk_resource_methods; def exists?; true; end }\n")
		wrapper := programtest.Write(t, filepath.Join(dir, "puppet"),
			fmt.Sprintf("#!/bin/sh\nexec %[2]s \"$@\" --confdir %[1]s --vardir %[1]s/var --rundir %[1]s/run "+
				"--publicdir %[1]s/public --libdir %[1]s/lib --color false\n",
				dir, installed))
		d := joinNode(t, s, name, "--puppet", wrapper)
		d.start(t)
		d.connectedTo(t, "localhost:"+s.port())
		agents[name] = d
	}
	s.knowsModule(t, 2, "resource", "find")
	file := filepath.Join(t.TempDir(), "motd")
	write(t, file, "hi\n")

	says := func(code int, want string, args ...string) string {
		t.Helper()
		r := s.try(t, append([]string{"resource", "live"}, args...)...)
		if r.code != code || !regexp.MustCompile(want).MatchString(r.out+r.err) {
			t.Errorf("tutti resource live %s: exit code %d, want %d and %q\n%s", strings.Join(args, " "), r.code, code, want, r.text())
		}
		return r.out
	}
	says(0, `(?s)NODES +COLOR +FOR EXAMPLE\n1 +green +web-2\n1 +red +web-1\n.*2 variants, which differ in color.*2 of 2 nodes answered ok`,
		"lamp", "hall", "--all")
	says(0, `(?s)^title,variants,nodes,differing\nhall,2,2,color\n`, "lamp", "--all", "-o", "csv")
	says(0, `(?s)NODES +FOR EXAMPLE\n2 +web-1 web-2\n.*the same everywhere`, "file", file, "--all")
	says(0, `drift,last_report\n1,green,web-2,,no report on 1 node\n`, "lamp", "hall", "--all", "--with-catalog", "--with-report", "-o", "csv")
	says(4, `(?s)same on 2 nodes: web-1, web-2 +aborted\n.*give expensive=true.*`, "file", "--all")

	// The code is what Puppet reads, and holds on this machine.
	code := filepath.Join(t.TempDir(), "motd.pp")
	write(t, code, says(0, `mode +=> '06`, "file", file, "--all", "--as-manifest"))
	if out, err := exec.Command(installed, "parser", "validate", code).CombinedOutput(); err != nil {
		t.Errorf("puppet parser validate: %v\n%s", err, out)
	}

	agents["web-2"].kill()
	eventually(t, time.Minute, "one agent", func() bool { return connected(t, s) == 1 })
	says(6, `(?s)"color": "red".*web-2: offline.*1 of 2 nodes answered ok; offline: 1`, "lamp", "hall", "-n", "web-1,web-2", "-o", "json")
}
