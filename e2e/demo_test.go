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
// both nodes and to 200 simulated ones, actions that ask them all and look at a resource, a change on its way to the fleet and back, and nothing left behind.
func TestDemo(t *testing.T) {
	begin(t, 200)
	scratch, home := t.TempDir(), t.TempDir()
	before := hostState(t)
	agents <- struct{}{} // its agents run one after the other
	r := execute(t, append(cleanEnv(), "TMPDIR="+scratch, "HOME="+home, "PATH="+shims+":"+os.Getenv("PATH")), 25*time.Minute, binary, "demo")
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
	link := regexp.MustCompile(`(?m)^\$ tutti console open\nhttp://localhost:\d+/login#code=\S+\nThe link logs in once, within a minute\. Another one: TUTTI_DATA=\S+ \S+ console open$`)
	if !link.MatchString(r.out) {
		t.Errorf("no link into the console is told:\n%s", r.out[:min(len(r.out), 3000)])
	}
	contains(t, r.out, "$ tutti node list", "$ tutti report show", "web-1.demo.test", "db-1.demo.test")
	contains(t, r.out, "$ tutti agent run", "200 simulated nodes are connected after",
		"Job 1: Puppet run on 2 nodes", "web-1.demo.test: unchanged", "db-1.demo.test: unchanged", "Job 1 finished after", // live
		"$ tutti command run 'uname; whoami' --where 'facts.simulated = true' --yes --quiet\n", "Job 2: task disk::usage on 2 nodes", "used_percent: ",
		"Job 2 finished after", "Job 3: command uname -s on 2 nodes", "same on 200 nodes: sim-0001.demo.test", "(192 more): succeeded\n  Linux\n  root\n")
	tellsOfActions(t, r.out)
	contains(t, r.out, "$ tutti compile queue\n", "Nothing is to be compiled.", "workers = 6", "    live: ")
	if counts := regexp.MustCompile(`(?m)^compiled for (\d+) of 202 nodes; the role web is on (\d+) nodes$`).FindStringSubmatch(r.out); counts == nil ||
		counts[1] != counts[2] || counts[1] == "0" {
		t.Errorf("not exactly the nodes of the role were compiled: %q", counts)
	}
	if jobs := regexp.MustCompile(`(?m)^([1-4]) +finished +(.+?)  +(2|200) +(2|200) `).FindAllStringSubmatch(r.out, -1); len(jobs) != 4 ||
		jobs[0][4] != "200" || jobs[3][4] != "2" {
		t.Errorf("the list of jobs does not show four that succeeded on all of their nodes: %q", jobs)
	}
	tellsOfAChange(t, r.out[strings.Index(r.out, "== Change control"):])
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

// tellsOfActions reads what two actions say: one of all nodes, where the simulated ones say the same and are told together, and one of
// the real ones, which are on one machine and see the same.
func tellsOfActions(t *testing.T, told string) {
	t.Helper()
	_, told, _ = strings.Cut(told, "$ tutti action run service status service=puppet --all\n")
	asked, told, _ := strings.Cut(told, "$ tutti action run resource find type=user title=root --targets web-1.demo.test,db-1.demo.test\n")
	found, _, _ := strings.Cut(told, "\n== ")
	contains(t, asked, "same on 200 nodes: sim-0001.demo.test, ", "(190 more)\n                  Status: running\n", "Provider: simulated\n",
		"same on 2 nodes: db-1.demo.test, web-1.demo.test\n", "Summary of Status:\n", "\n202 of 202 nodes answered ok in ")
	contains(t, found, "same on 2 nodes: db-1.demo.test, web-1.demo.test\n", `"password":"[redacted]"`, `"uid":0`, "Managed: false\n",
		"\n2 of 2 nodes answered ok in ")
}

// tellsOfAChange reads the end of the demo. The numbers of one step have to agree with those of the others.
func tellsOfAChange(t *testing.T, told string) {
	t.Helper()
	var at int // each thing is told behind the one before
	find := func(what, pattern string) (numbers []int) {
		t.Helper()
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatchIndex(told[at:])
		if m == nil {
			t.Fatalf("%s is not told: %s\n%s", what, pattern, tail(told, 12000))
		}
		for i := 2; i < len(m); i += 2 {
			n, _ := strconv.Atoi(told[at+m[i] : at+m[i+1]])
			numbers = append(numbers, n)
		}
		at += m[1]
		return numbers
	}

	seen := find("the first preview", `^Preview 1  production [0-9a-f]{12}  ready  202 nodes: (\d+) change, (\d+) stay as they are$`)
	web, others := seen[0], seen[1]
	if web < 20 || web+others != 202 {
		t.Errorf("the preview says %d and %d nodes", web, others)
	}
	group := find("the largest change", `^ +1  ~ File\[/srv/demo/etc/sites.d/blog.example.test.conf\] content +(\d+) nodes$`)
	same(t, "simulated web servers", web-1, group[0])
	find("its difference", `^ +\+  keepalive 65$`)

	find("a wave of one node", `^  wave 1 \(@canary\): 1 node: web-1\.demo\.test$`)
	rest := find("the rest", `^  wave 2 \(rest\): (\d+) nodes$`)
	same(t, "the rest", web-1, rest[0])
	find("live", `^    live: .*web-1.demo.test  begin  run begins for job 5 `)
	find("live", `^    live: .*web-1.demo.test  success  File\[.*blog.example.test.conf\]/content: content changed `)
	find("the end of the first wave", `^wave 1 has ended$`)
	done := find("the first release", `^Release 1: preview 1, done; wave 2 of 2; (\d+) nodes: (\d+) changed$`)
	same(t, "released", []int{web, web}, done)
	find("the file", `^  keepalive 65$`)

	find("the second preview", `^Preview 2  production [0-9a-f]{12}  ready  202 nodes: `+strconv.Itoa(web)+` change, `+strconv.Itoa(others)+` stay as they are$`)
	find("the bad change", `^ +\+  bind 8081$`)
	find("its canary", `^web-1.demo.test: changed$`)
	find("its second wave", `^wave 2 \(10\) begins: 10 nodes$`)
	find("a failure", `^sim-\d+.demo.test(?:, sim-\d+.demo.test)?: failed: `) // in a line, if both have failed since the last look
	find("a pause", `^paused: 2 nodes failed, and 1 may$`)
	stopped := find("the stop",
		`^Release 2: preview 2, paused: 2 nodes failed, and 1 may; wave 2 of 3; (\d+) nodes: (\d+) changed, 2 failed, (\d+) skipped, (\d+) waiting$`)
	same(t, "the second release", []int{web, 3, 6, web - 11}, stopped)
	same(t, "not touched", []int{web - 11}, find("who was not touched", `^  not touched: (\d+) nodes, in waves that have not begun$`))
	find("who was not run", `^  not run: 6 nodes of wave 2, which got back what they had$`)
	find("the failed nodes", `^sim-\d+.demo.test +2 +failed +3 `)
	find("a wave that did not begin", `^  wave 3 \(rest\): `+strconv.Itoa(web-11)+` nodes, waiting$`)
	find("the canary's file", `^  bind 8081$`)

	find("the way back", `^Release 3: back from release 2, done; wave 2 of 2; 5 nodes: 5 changed$`) // those that were run
	find("the canary's file", `^  listen 8081$`)
	find("the releases", `^2 +preview 2 +production +aborted +2/3 +`+strconv.Itoa(web)+` +3 +2 `)
	now := regexp.MustCompile(`(?m)^(\d) +(?:\(applied\))? +([0-9a-f]{12}) +production`).FindAllStringSubmatch(told[at:], -1)
	if len(now) != 4 || now[0][1] != "4" || now[0][2] != now[2][2] || now[0][2] == now[1][2] {
		t.Errorf("the canary's generations are %q: the newest is not the catalog of release 1", now)
	}
	find("all green", `^202 nodes, 202 of them in released mode: 202 current, 0 behind, 0 foreign, 0 unknown; 0 nodes failed in the last run$`)
	same(t, "as before", []int{web, web}, find("what nodes have", `^(\d+) of (\d+) web servers: exactly the catalog that release 1 gave$`))
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
