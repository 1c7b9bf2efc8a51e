package processes

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/tool"
)

func TestParseStat(t *testing.T) {
	t.Parallel()
	const rest = " 0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 8192 3 18446744073709551615"
	got, err := parseStat([]byte("42 (a) b (c)) S 7"+rest), 4096)
	if diff := cmp.Diff(Process{PID: 42, Parent: 7, State: "S", Name: "a) b (c)", VirtualSize: 8192, Resident: 3 * 4096}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
	for _, wrong := range []string{"", "42", "42 (a) S 7", "x (a) S 7" + rest, "42 (a) S x" + rest} {
		if _, err := parseStat([]byte(wrong), 4096); err == nil {
			t.Errorf("%q was read", wrong)
		}
	}
}

func FuzzParsers(f *testing.F) {
	f.Add("42 (a) b (c)) S 7 0 0 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 100 8192 3 18446744073709551615")
	f.Add("  1     0     0 root     Ss    168   4 /sbin/init splash\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := parseStat([]byte(text), 4096); err == nil && p.State == "" {
			t.Errorf("%q has no state", text)
		}
		for _, p := range parsePS(text) {
			if p.State == "" || p.User == "" {
				t.Errorf("%q: %+v", text, p)
			}
		}
		if commandLine([]byte(text), "x") == "" {
			t.Errorf("%q has no command line", text)
		}
	})
}

// start starts a program; its command line is shown by then.
func start(t *testing.T, name string, args ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for { // the kernel tells the parent before it has written the arguments
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(string(text), name) {
			return cmd.Process.Pid
		}
		<-time.After(time.Millisecond)
	}
}

// The processes of this machine, from /proc and by ps.
func TestProcessesOfThisMachine(t *testing.T) {
	t.Parallel()
	several := start(t, "tail", "-s", "1000", "-f", "/dev/null") // not this process: nobody bounds its arguments
	pids := map[int]bool{start(t, "sleep", "1000.0625"): true, start(t, "sleep", "1000.0625"): true, several: true}
	ours := func(all []Process) (some []Process) {
		for _, p := range all {
			if pids[p.PID] {
				some = append(some, p)
			}
		}
		return some
	}
	all, err := running(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	done, err := tool.Box{}.Run(t.Context(), tool.Command{Name: "ps", Args: psColumns()})
	if err != nil || done.Exit != 0 {
		t.Fatal(err, done.Why())
	}
	got := ours(pick(all, regexp.MustCompile(""), false).Processes)
	if diff := cmp.Diff(ours(parsePS(done.Stdout)), got, cmpopts.IgnoreFields(Process{}, "VirtualSize", "Resident", "Name", "State")); diff != "" ||
		len(got) != 3 {
		t.Errorf("(-ps +got):\n%s", diff)
	}
	text, why := builtintest.Ask(t, Module(), "list", `{"pattern":"^sleep 1000\\.0625$"}`)
	var l listing
	if err := json.Unmarshal([]byte(text), &l); err != nil || why != "" || l.Count != 2 || l.Cut || l.Processes[0].Name != "sleep" ||
		l.Processes[0].VirtualSize == 0 || !strings.ContainsAny(l.Processes[0].State, "SRD") {
		t.Errorf("%s, %s, %v", text, why, err)
	}
	if _, why := builtintest.Ask(t, Module(), "list", `{"pattern":"("}`); why != "field pattern: it must be a regular expression" {
		t.Error(why)
	}
	for query, want := range map[string]string{`^sleep 1000\.0625$`: `{"exists":true,"count":2}`, `^no such process$`: `{"exists":false,"count":0}`} {
		fields, err := Data()(t.Context(), query)
		if text, _ := json.Marshal(fields); string(text) != want || err != nil {
			t.Errorf("%s: %s, %v", query, text, err)
		}
	}
}

// A process that ended, and that its parent does not wait for.
func TestZombies(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	for {
		result, err := Module().Calls["list"](t.Context(), jsontext.Value(`{"just_zombies":true,"pattern":"^\\[true\\]$"}`))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range result.(listing).Processes {
			if p.PID == cmd.Process.Pid && p.State == "Z" && p.Parent == os.Getpid() {
				return
			}
		}
		if t.Context().Err() != nil {
			t.Fatal("no zombie")
		}
	}
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	all := make([]Process, 2*maxRows)
	for i := range all {
		all[i] = Process{PID: i, User: "u", State: "S", CommandLine: fmt.Sprintf("%d %s", i%2, strings.Repeat("ä", maxCommandLine))}
	}
	if l := pick(all, regexp.MustCompile(""), false); len(l.Processes) != maxRows || l.Count != 2*maxRows || !l.Cut ||
		len(l.Processes[0].CommandLine) > maxCommandLine+3 {
		t.Errorf("%d rows, %d count, cut %v", len(l.Processes), l.Count, l.Cut)
	}
	if l := pick(all, regexp.MustCompile("^1"), false); len(l.Processes) != maxRows || l.Count != maxRows || l.Cut {
		t.Errorf("%d rows, %d count, cut %v", len(l.Processes), l.Count, l.Cut)
	}
	if l := pick(all, regexp.MustCompile(""), true); l.Count != 0 || l.Processes == nil {
		t.Errorf("%+v", l)
	}
}
