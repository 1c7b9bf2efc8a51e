package e2e_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostDirs are what a puppet agent that forgets one of its private directories writes to.
var hostDirs = []string{"/etc/puppet", "/etc/puppetlabs", "/var/lib/puppet", "/var/cache/puppet", "/var/log/puppet", "/opt/puppetlabs"}

// `tutti demo` is the first thing a newcomer sees: a server, two real agents that each
// make at least 20 resources, a second run without changes, what the server knows, orders to
// both nodes and to 200 simulated ones, and nothing left behind.
func TestDemo(t *testing.T) {
	begin(t, 140)
	scratch, home := t.TempDir(), t.TempDir()
	before := hostState(t)
	agents <- struct{}{} // its agents run one after the other
	r := execute(t, append(cleanEnv(), "TMPDIR="+scratch, "HOME="+home, "PATH="+shims+":"+os.Getenv("PATH")), 10*time.Minute, binary, "demo")
	<-agents
	if r.code != 0 {
		t.Fatalf("exit code %d\n%s", r.code, r.text())
	}
	summaries := regexp.MustCompile(`(?m)^(\S+\.demo\.test) (changed|unchanged): (\d+) resources, (\d+) changed, (\d+) failed`).FindAllStringSubmatch(r.out, -1)
	if len(summaries) != 4 {
		t.Fatalf("%d runs are summed up, want 4:\n%s", len(summaries), r.out)
	}
	for i, run := range summaries {
		resources, _ := strconv.Atoi(run[3])
		changed, _ := strconv.Atoi(run[4])
		want := map[bool]string{true: "changed", false: "unchanged"}[i < 2]
		if run[2] != want || run[5] != "0" || resources < 20 || i < 2 && changed < 20 || i >= 2 && changed != 0 {
			t.Errorf("run %d: %s", i+1, run[0])
		}
	}
	contains(t, r.out, "$ tutti node list", "$ tutti report show", "web-1.demo.test", "db-1.demo.test")
	contains(t, r.out, "$ tutti agent run", "200 simulated nodes are connected",
		"Job 1: Puppet run on 2 nodes", "web-1.demo.test: unchanged", "db-1.demo.test: unchanged", "Job 1 finished after", // live
		"Job 2: task disk::usage on 2 nodes", "used_percent: ", "Job 2 finished after", "Job 3: command uname -s on 2 nodes",
		"same on 200 nodes: sim-0001.demo.test", "(192 more): succeeded\n  Linux\n  root\n")
	contains(t, r.out, "$ tutti compile queue\n", "Nothing is to be compiled.", "workers = 6", "    live: ")
	if counts := regexp.MustCompile(`(?m)^(\d+) of 202 nodes were compiled; (\d+) nodes have the role web$`).FindStringSubmatch(r.out); counts == nil || counts[1] != counts[2] || counts[1] == "0" {
		t.Errorf("not exactly the nodes of the role were compiled: %q", counts)
	}
	if jobs := regexp.MustCompile(`(?m)^([1-4]) +finished +(.+?)  +(2|200) +(2|200) `).FindAllStringSubmatch(r.out, -1); len(jobs) != 4 || jobs[0][4] != "200" || jobs[3][4] != "2" {
		t.Errorf("the list of jobs does not show four that succeeded on all of their nodes: %q", jobs)
	}
	for _, file := range regexp.MustCompile(`/(?:File|Concat_file|Ini_setting)\[(/[^\]]+)\]`).FindAllStringSubmatch(r.out, -1) {
		if !strings.HasPrefix(file[1], scratch) {
			t.Errorf("the demo manages %s, outside its scratch directory", file[1])
		}
	}
	for _, dir := range []string{scratch, home} {
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("the demo left %s in %s", left[0].Name(), dir)
		}
	}
	same(t, "host files", before, hostState(t))
	for _, p := range processes() {
		if strings.Contains(p.command, scratch) {
			t.Errorf("the demo left process %d: %s", p.pid, p.command)
		}
	}
}

// hostState is the size and age of every file below hostDirs that tells of the demo: of its
// nodes, or of the agent's configuration. Other tests may run puppet at the same time.
func hostState(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, root := range hostDirs {
		_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && (strings.Contains(path, "demo.test") || strings.HasPrefix(path, "/etc/")) {
				if info, err := entry.Info(); err == nil {
					state[path] = info.ModTime().String() + " " + strconv.FormatInt(info.Size(), 10)
				}
			}
			return nil // what is not there is not changed
		})
	}
	return state
}
