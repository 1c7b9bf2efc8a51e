//go:build unix

package service_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/service"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// system is a root in which programs record how they are called.
type system struct {
	t    *testing.T
	root string
	cfg  service.Config
}

func newSystem(t *testing.T) *system {
	t.Helper()
	root := t.TempDir()
	s := &system{t, root, service.Config{Root: root, Tools: tool.Box{Dirs: []string{filepath.Join(root, "bin")}}}}
	s.dir("bin")
	s.dir("etc/init.d")
	return s
}

func (s *system) dir(path string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Join(s.root, path), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

// program writes a shell script that records its arguments first.
func (s *system) program(path, text string) {
	s.t.Helper()
	text = "#!/bin/sh\necho \"$(basename \"$0\") $*\" >> " + s.root + "/calls\n" + text + "\n"
	if err := os.WriteFile(filepath.Join(s.root, path), []byte(text), 0o755); err != nil {
		s.t.Fatal(err)
	}
}

func (s *system) calls() []string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.root, "calls"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(s.root, "calls"))
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// ask does an action: its results, or why it was aborted and its data.
func (s *system) ask(action, name string) (results, why string) {
	s.t.Helper()
	return ask(s.t, s.cfg, action, name)
}

func ask(tb testing.TB, cfg service.Config, action, name string) (results, why string) {
	tb.Helper()
	return builtintest.Ask(tb, service.Module(cfg), action, `{"service":"`+name+`"}`)
}

// A systemctl that has the services web (whose state is in a file), broken (which does not start) and no other.
const fakeSystemctl = `
state=$(cat $(dirname $0)/../state 2>/dev/null || echo inactive)
case "$*" in
show*web.service) printf 'LoadState=loaded\nActiveState=%s\nSubState=running\nUnitFileState=enabled\n' $state ;;
show*broken.service) printf 'LoadState=loaded\nActiveState=failed\nSubState=failed\nUnitFileState=enabled\n' ;;
show*@.service) echo "Failed to get properties: Unit name x@.service is neither a valid invocation ID nor unit name." >&2; exit 1 ;;
show*) printf 'LoadState=not-found\nActiveState=inactive\nSubState=dead\nUnitFileState=\n' ;;
*start*broken.service) printf 'Job for broken.service failed because the control process exited with error code.\nSee "journalctl -xeu broken.service" for details.\n' >&2; exit 1 ;;
*stop*) echo inactive > $(dirname $0)/../state ;;
*restart*|*start*) echo active > $(dirname $0)/../state ;;
esac`

func TestSystemd(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.dir("run/systemd/system")
	s.program("bin/systemctl", fakeSystemctl)
	const up, down = `{"status":"running","enabled":"enabled","state":"active (running)","provider":"systemd"}`,
		`{"status":"stopped","enabled":"enabled","state":"inactive (running)","provider":"systemd"}`
	const show = "systemctl show --no-pager -p LoadState,ActiveState,SubState,UnitFileState -- web.service"
	for _, step := range []struct{ action, want string }{
		{"status", down}, {"start", up}, {"status", up}, {"restart", up}, {"enable", up}, {"disable", up}, {"stop", down},
	} {
		if got, why := s.ask(step.action, "web"); got != step.want || why != "" {
			t.Errorf("%s: %s, %s", step.action, got, why)
		}
		want := []string{show}
		if step.action != "status" {
			want = []string{show, "systemctl --no-ask-password --no-pager " + step.action + " -- web.service", show}
		}
		if diff := cmp.Diff(want, s.calls()); diff != "" {
			t.Errorf("%s is done by (-want +got):\n%s", step.action, diff)
		}
	}
	data, why := s.ask("start", "broken")
	if data != `{"status":"stopped","enabled":"enabled","state":"failed (failed)","provider":"systemd"}` ||
		why != `start of the service broken failed: Job for broken.service failed because the control process exited with error code. See "journalctl -xeu broken.service" for details.` {
		t.Errorf("broken: %s, %s", data, why)
	}
	for _, action := range []string{"status", "start", "stop", "restart", "enable", "disable"} {
		s.calls()
		if _, why := s.ask(action, "nothing"); why != "this node has no service nothing" || len(s.calls()) != 1 {
			t.Errorf("%s of an unknown service: %s", action, why)
		}
	}
	if _, why := s.ask("status", "getty@"); !strings.HasPrefix(why, "systemctl cannot say how the service getty@ is: Failed to get properties") {
		t.Error(why)
	}
}

func TestInitScripts(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.program("etc/init.d/web", `f=$(dirname $0)/../state
case $1 in start|restart) [ -z "$HOME" ] && touch $f ;; stop) rm -f $f ;; status) [ -e $f ] || exit 3 ;; esac`)
	s.program("etc/init.d/odd", `echo "Usage: odd start|stop" >&2; exit 2`)
	s.program("etc/init.d/silent", `exit 4`)
	if err := os.WriteFile(filepath.Join(s.root, "etc/init.d/README"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.dir("etc/rc3.d")
	const up, down = `{"status":"running","enabled":"disabled","state":"runs","provider":"init"}`,
		`{"status":"stopped","enabled":"disabled","state":"does not run","provider":"init"}`
	for _, step := range []struct{ action, want, calls string }{
		{"status", down, "web status"},
		{"start", up, "web status,web start,web status"},
		{"restart", up, "web status,web restart,web status"},
		{"stop", down, "web status,web stop,web status"},
	} {
		if got, why := s.ask(step.action, "web"); got != step.want || why != "" {
			t.Errorf("%s: %s, %s", step.action, got, why)
		}
		if calls := strings.Join(s.calls(), ","); calls != step.calls {
			t.Errorf("%s is done by %s", step.action, calls)
		}
	}
	if data, why := s.ask("enable", "web"); data != down || why != "enable of the service web failed: this node has neither update-rc.d nor chkconfig" {
		t.Errorf("without a tool: %s, %s", data, why)
	}
	s.program("bin/update-rc.d",
		`[ $2 = disable ] || ln -sf ../init.d/$1 $(dirname $0)/../etc/rc3.d/S02$1; [ $2 != disable ] || rm -f $(dirname $0)/../etc/rc3.d/S02$1`)
	for _, step := range []struct{ action, want string }{{"enable", strings.Replace(down, "disabled", "enabled", 1)}, {"disable", down}} {
		if got, why := s.ask(step.action, "web"); got != step.want || why != "" {
			t.Errorf("%s: %s, %s", step.action, got, why)
		}
	}
	if _, why := s.ask("status", "silent"); !strings.HasSuffix(why, "silent does not say whether it runs: its exit code for status is 4 (it says nothing)") {
		t.Error(why)
	}
	for _, name := range []string{"README", "..", "nothing", "-x"} {
		if _, why := s.ask("status", name); why != "this node has no service "+name {
			t.Errorf("%s: %s", name, why)
		}
	}
}

func TestPuppetIsAskedLast(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.program("bin/puppet",
		`f=$(dirname $0)/../state; [ $3 = stuck ] || case $4 in ensure=*) echo ${4#ensure=} > $f; echo "Notice: /Service[$3]/ensure: ensure changed" ;; esac
[ $3 != wrong ] || { echo "Error: Could not run" >&2; exit 1; }
printf -- "---\nservice:\n  $3:\n    ensure: $(cat $f 2>/dev/null || echo stopped)\n    enable: 'true'\n    provider: openrc\n"`)
	s.cfg.Puppet = func() (string, error) { return filepath.Join(s.root, "bin/puppet"), nil }
	const up = `{"status":"running","enabled":"enabled","state":"running","provider":"openrc"}`
	if got, why := s.ask("restart", "web"); got != up || why != "" {
		t.Errorf("%s, %s", got, why)
	}
	want := []string{
		"puppet resource service web --to_yaml --color=false", "puppet resource service web ensure=stopped --to_yaml --color=false",
		"puppet resource service web ensure=running --to_yaml --color=false", "puppet resource service web --to_yaml --color=false",
	}
	if diff := cmp.Diff(want, s.calls()); diff != "" {
		t.Error(diff)
	}
	if data, why := s.ask("stop", "stuck"); data != up || !strings.HasPrefix(why, "stop of the service stuck failed: its ensure is running afterwards: ") {
		t.Errorf("%s, %s", data, why)
	}
	if _, why := s.ask("status", "wrong"); why != "puppet cannot say how the service wrong is: Error: Could not run" {
		t.Error(why)
	}
}

// The services of this machine, by the module and by the script itself.
func TestServicesOfThisMachine(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		for name, want := range map[string]string{"dbus": "", "nothing-of-that-name": "this node has no service nothing-of-that-name"} {
			if _, why := ask(t, service.Config{}, "status", name); why != want {
				t.Errorf("%s: %s", name, why)
			}
		}
		return
	}
	scripts, err := filepath.Glob("/etc/init.d/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		err := exec.CommandContext(t.Context(), script, "status").Run()
		exit, _ := errors.AsType[*exec.ExitError](err)
		code := 0
		if exit != nil {
			code = exit.ExitCode()
		}
		if code > 3 {
			continue
		}
		got, why := ask(t, service.Config{}, "status", filepath.Base(script))
		if strings.Contains(got, `"status":"running"`) != (code == 0) || why != "" {
			t.Errorf("%s ends with %d: %s, %s", script, code, got, why)
		}
	}
}

func TestData(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	s.program("etc/init.d/web", ``)
	s.program("bin/anything", ``)
	for name, want := range map[string]service.State{
		"web": {Status: "running", Enabled: "disabled", State: "runs", Provider: "init"}, "nothing": {Status: "absent"}, "../../bin/anything": {Status: "absent"},
	} {
		got, err := service.Data(s.cfg)(t.Context(), name)
		if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if calls := s.calls(); !slices.Equal(calls, []string{"web status"}) { // queries are not held to the schema of a service's name
		t.Errorf("started: %q", calls)
	}
}

// BenchmarkStatus is the status of one service by the module, beside the same by Puppet.
func BenchmarkStatus(b *testing.B) {
	b.Run("module", func(b *testing.B) {
		for b.Loop() {
			if _, why := ask(b, service.Config{}, "status", "dbus"); why != "" {
				b.Fatal(why)
			}
		}
	})
	b.Run("puppet", func(b *testing.B) {
		for b.Loop() {
			if err := exec.CommandContext(b.Context(), "puppet", "resource", "service", "dbus").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
