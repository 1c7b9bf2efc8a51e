package packages_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/packages"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

// ask does an action: its results, or why it was aborted and its data.
func ask(t *testing.T, cfg packages.Config, action, input string) (results map[string]any, why string) {
	t.Helper()
	return builtintest.Fields(t, packages.Module(cfg), action, input)
}

func run(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", line).Output()
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return strings.TrimSpace(string(out))
}

// node has a file system of its own with a dpkg, and programs that are made up.
type node struct {
	root string
	cfg  packages.Config
}

func newNode(t *testing.T) *node {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"bin", "var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return &node{root, packages.Config{Root: root, Tools: tool.Box{Dirs: []string{filepath.Join(root, "bin")}}}}
}

// program writes a shell script that records its arguments first.
func (n *node) program(t *testing.T, name, text string) {
	t.Helper()
	text = "#!/bin/sh\nR=" + n.root + "\necho \"" + name + " $*\" >> $R/calls\n" + text + "\n"
	if err := os.WriteFile(filepath.Join(n.root, "bin", name), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// called is how a program was called last.
func (n *node) called(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(n.root, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+" ") {
			last = strings.TrimSpace(line)
		}
	}
	return last
}

// The system's own dpkg installs real packages below a root; only apt-get, which would fetch them, is made up.
func TestAptWithARealDpkg(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if err := os.WriteFile(filepath.Join(n.root, "var/lib/dpkg/status"),
		[]byte("Package: base\nStatus: install ok installed\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: base\n\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"1:1.0-1", "1:2.0-1"} {
		dir := filepath.Join(t.TempDir(), "tiny")
		for path, text := range map[string]string{
			"DEBIAN/control":   "Package: tiny\nVersion: " + version + "\nArchitecture: all\nMaintainer: nobody <nobody@example.org>\nDescription: tiny\n",
			"DEBIAN/conffiles": "/etc/tiny.conf\n", "etc/tiny.conf": "x\n",
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		run(t, fmt.Sprintf("dpkg-deb --root-owner-group -b %s %s/tiny-%s.deb", dir, n.root, version[2:]))
	}
	n.program(t, "dpkg-query", `exec /usr/bin/dpkg-query --admindir=$R/var/lib/dpkg "$@"`)
	n.program(t, "apt-cache", `[ "$4" != tiny ] || echo "Package: tiny"; [ "$4" != tin.y ] || echo "Package: tiny"`)
	n.program(t, "apt-get", `[ "$DEBIAN_FRONTEND" = noninteractive ] || exit 9
d="/usr/bin/dpkg --root=$R --force-not-root --force-script-chrootless --force-bad-path --log=$R/log"
case "$*" in
*tiny=1:1.0-1) $d -i $R/tiny-1.0-1.deb ;;
*tiny=*) exit 0 ;;
*install*tiny) $d -i $R/tiny-2.0-1.deb ;;
*remove*) $d -r tiny ;;
*purge*) $d -P tiny ;;
*update) echo Hit:1; exit ${UPDATE:-0} ;;
esac`)
	const options = "apt-get -q -y -o DPkg::Options::=--force-confold -o DPkg::Lock::Timeout=60 "
	for _, step := range []struct{ action, input, ensure, why, called string }{
		{"status", `{"package":"tiny"}`, "purged", "", ""},
		{"update", `{"package":"tiny"}`, "purged", "the package tiny is not installed, so it is not updated; install it", ""},
		{"uninstall", `{"package":"tiny"}`, "purged", "", ""},
		{"install", `{"package":"tin.y"}`, "", "the package tin.y cannot be installed: apt knows no package of that name; apt_update fetches its lists anew", ""},
		{"install", `{"package":"tiny","version":"1:1.0-1"}`, "1:1.0-1", "", options + "install --allow-downgrades -- tiny=1:1.0-1"},
		{"status", `{"package":"tiny"}`, "1:1.0-1", "", ""},
		{"install", `{"package":"tiny","version":"1.0-1"}`, "1:1.0-1", "", options + "install --allow-downgrades -- tiny=1:1.0-1"},
		{"install", `{"package":"tiny","version":"3"}`, "1:1.0-1", "install of the package tiny failed: the version is 1:1.0-1 afterwards", options +
			"install --allow-downgrades -- tiny=3"},
		{"update", `{"package":"tiny"}`, "1:2.0-1", "", options + "install --only-upgrade -- tiny"},
		{"uninstall", `{"package":"tiny"}`, "absent", "", options + "remove -- tiny"},
		{"install", `{"package":"tiny"}`, "1:2.0-1", "", options + "install -- tiny"},
		{"purge", `{"package":"tiny"}`, "purged", "", options + "purge -- tiny"},
		{"purge", `{"package":"tiny"}`, "purged", "", options + "purge -- tiny"},
	} {
		got, why := ask(t, n.cfg, step.action, step.input)
		if ensure, _ := got["ensure"].(string); ensure != step.ensure || why != step.why {
			t.Errorf("%s %s: %v, %s", step.action, step.input, got, why)
		}
		if called := n.called(t, "apt-get"); step.called != "" && called != step.called {
			t.Errorf("%s %s calls %s", step.action, step.input, called)
		}
	}
	if got, why := ask(t, n.cfg, "apt_update", `{}`); why != "" || got["output"] != "Hit:1\n" || got["exitcode"] != 0.0 {
		t.Errorf("%v, %s", got, why)
	}
	n.program(t, "apt-get", `echo "E: Unable to fetch" >&2; exit 100`)
	if got, why := ask(t, n.cfg, "apt_update", `{}`); got["exitcode"] != 100.0 || why != "apt-get failed, the exit code is 100: E: Unable to fetch" {
		t.Errorf("%v, %s", got, why)
	}
	if _, why := ask(t, n.cfg, "yum_clean", `{}`); why != "this node's package manager is apt, not dnf or yum" {
		t.Error(why)
	}
}

// The packages of this machine, by the module and by dpkg.
func TestPackagesOfThisMachine(t *testing.T) {
	t.Parallel()
	for name := range strings.FieldsSeq(run(t, "dpkg-query -W -f '${Package} ' | tr ' ' '\\n' | head -400 | shuf -n 5; echo dpkg perl-base")) {
		got, why := ask(t, packages.Config{}, "status", `{"package":"`+name+`"}`)
		if want := run(t, "dpkg -s -- "+name+" | sed -n 's/^Version: //p' | head -1"); got["ensure"] != want || why != "" {
			t.Errorf("%s is %s: %v %s", name, want, got, why)
		}
	}
	if got, _ := ask(t, packages.Config{}, "count", `{}`); fmt.Sprint(got["output"]) != run(t, "dpkg -l | grep -c '^.i'") {
		t.Error(got)
	}
	if got, _ := ask(t, packages.Config{}, "md5", `{}`); got["output"] != run(t,
		`dpkg-query -W -f '${db:Status-Abbrev}${binary:Package} ${Version}\n' | sed -n 's/^.i //p' | LC_ALL=C sort | md5sum | cut -c1-32`) {
		t.Error(got)
	}
	got, why := ask(t, packages.Config{}, "checkupdates", `{}`)
	outdated, _ := got["outdated_packages"].([]any)
	if want := len(regexp.MustCompile(`(?m)^Inst \S+ \[`).FindAllString(got["output"].(string), -1)); len(outdated) != want ||
		got["package_manager"] != "apt" || why != "" {
		t.Errorf("%d outdated packages, apt-get prints %d; %s", len(outdated), want, why)
	}
	data, err := packages.Data(packages.Config{})(t.Context(), "dpkg")
	if text, _ := json.Marshal(data); err != nil || !strings.Contains(string(text), `"installed":true`) {
		t.Errorf("%s, %v", text, err)
	}
}

const fakeRPM = `case "$*" in
-qa) printf 'b-1-1.noarch\na-1-1.noarch\n' ;;
-e*) rm -f $R/tiny ;;
-q*) if [ -e $R/tiny ]; then cat $R/tiny; else echo "package tiny is not installed"; exit 1; fi ;;
esac`

const fakeInstall = `case "$*" in
*clean*) echo cleaned ;;
*check-update*) printf 'curl.x86_64 8-1 baseos\n'; exit 100 ;;
*list-updates*) echo "<stream><update-status><update-list><update kind='package' name='curl' edition='8-1' edition-old='7-1'><source alias='SLES'/></update></update-list></update-status></stream>"; exit 100 ;;
*erase*|*remove*) rm -f $R/tiny ;;
*1.0*) printf 'tiny\t(none)\t1.0\t1\tnoarch\n' > $R/tiny; exit $FINE ;;
*install*|*update*) printf 'tiny\t(none)\t2.0\t1\tnoarch\n' > $R/tiny ;;
esac`

func TestRPM(t *testing.T) {
	t.Parallel()
	for manager, calls := range map[string][]string{
		"dnf": {"dnf -y install -- tiny-1.0", "dnf -y update -- tiny", "rpm -e -- tiny", "dnf -y install -- tiny", "dnf -y erase -- tiny"},
		"yum": {"yum -y install -- tiny-1.0", "yum -y update -- tiny", "rpm -e -- tiny", "yum -y install -- tiny", "yum -y erase -- tiny"},
		"zypper": {
			"zypper --non-interactive install --auto-agree-with-licenses --oldpackage -- tiny=1.0",
			"zypper --non-interactive update --auto-agree-with-licenses -- tiny",
			"rpm -e -- tiny",
			"zypper --non-interactive install --auto-agree-with-licenses -- tiny",
			"zypper --non-interactive remove -- tiny",
		},
	} {
		n := newNode(t)
		n.program(t, "rpm", fakeRPM)
		fine := map[string]string{"zypper": "102"}[manager]
		n.program(t, manager, "FINE="+fine+"\n"+fakeInstall)
		for i, step := range []struct{ action, input, ensure string }{
			{"install", `{"package":"tiny","version":"1.0"}`, "1.0-1"},
			{"update", `{"package":"tiny"}`, "2.0-1"},
			{"uninstall", `{"package":"tiny"}`, "absent"},
			{"install", `{"package":"tiny"}`, "2.0-1"},
			{"purge", `{"package":"tiny"}`, "absent"},
		} {
			got, why := ask(t, n.cfg, step.action, step.input)
			if got["ensure"] != step.ensure || got["provider"] != manager || why != "" {
				t.Errorf("%s %s: %v, %s", manager, step.action, got, why)
			}
			if called := n.called(t, strings.Fields(calls[i])[0]); called != calls[i] && step.action != "uninstall" {
				t.Errorf("%s %s calls %s", manager, step.action, called)
			}
		}
		if got, why := ask(t, n.cfg, "status", `{"package":"tiny"}`); got["ensure"] != "absent" || why != "" {
			t.Errorf("%v, %s", got, why)
		}
		got, why := ask(t, n.cfg, "checkupdates", `{}`)
		row := got["outdated_packages"].([]any)[0].(map[string]any)["version"]
		if row != "8-1" || got["exitcode"] != 100.0 || got["package_manager"] != manager || why != "" {
			t.Errorf("%v, %s", got, why)
		}
		_, why = ask(t, n.cfg, "yum_checkupdates", `{}`)
		_, cleaning := ask(t, n.cfg, "yum_clean", `{"mode":"metadata"}`)
		if refused := "this node's package manager is zypper, not dnf or yum"; manager == "zypper" && (why != refused || cleaning != refused) ||
			manager != "zypper" && (why != "" || cleaning != "" || n.called(t, manager) != manager+" clean metadata") {
			t.Errorf("%s: %s, %s", manager, why, cleaning)
		}
		count, _ := ask(t, n.cfg, "count", `{}`)
		sum, _ := ask(t, n.cfg, "md5", `{}`)
		if diff := cmp.Diff([]any{2.0, run(t, `printf 'a-1-1.noarch\nb-1-1.noarch\n' | md5sum | cut -c1-32`)}, []any{count["output"], sum["output"]}); diff != "" {
			t.Error(diff)
		}
	}
	for _, name := range []string{"nano-", "-y", "a*", "a/b", "@core", "a b", ""} { // what package managers read as something else
		if _, why := ask(t, newNode(t).cfg, "install", `{"package":"`+name+`"}`); !strings.HasPrefix(why, "field package: it ") {
			t.Errorf("%q: %s", name, why)
		}
	}
	if _, why := ask(t, newNode(t).cfg, "status", `{"package":"tiny"}`); why != "this node has none of the package managers apt, dnf, yum and zypper" {
		t.Error(why)
	}
}

// Half of the updates would look like all of them.
func TestUpdatesThatCannotAllBeRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ manager, program, line string }{
		{"apt", "apt-get", "Inst tiny [1] (2 Debian [all])"}, {"dnf", "dnf", "tiny.noarch  2-1  updates"},
	} {
		n := newNode(t)
		if c.manager == "apt" {
			n.program(t, "dpkg-query", "")
			if err := os.WriteFile(filepath.Join(n.root, "var/lib/dpkg/status"), []byte("Package: base\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		n.program(t, "rpm", "")
		n.program(t, c.program, fmt.Sprintf("yes '%s' | head -c %d", c.line, tool.MaxOutputBytes+1))
		if _, why := ask(t, n.cfg, "checkupdates", "{}"); why != c.manager+" lists more updates than can be read" {
			t.Errorf("%s: %s", c.manager, why)
		}
	}
}
