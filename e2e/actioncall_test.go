package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Somebody asks actions of two real nodes: answers are put together, conditions narrow by what the inventory and only the nodes know, what changes
// something is a job, and what is wrong is said before any node is asked.
func TestActionsOnRealNodes(t *testing.T) {
	begin(t, 20)
	s := startRaced(t)
	a, b := joinNode(t, s, "web-1"), joinNode(t, s, "web-2")
	for _, d := range []*daemon{a, b} {
		d.start(t)
		d.connectedTo(t, "localhost:"+s.port())
	}
	mark := filepath.Join(a.dir, "marked")
	if err := os.WriteFile(mark, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.knowsModule(t, 2, "rpcutil", "get_data")

	says := func(code int, want string, args ...string) {
		t.Helper()
		r := s.try(t, append([]string{"action", "run"}, args...)...)
		if r.code != code || !regexp.MustCompile(want).MatchString(r.out+r.err) {
			t.Errorf("tutti action run %s: exit code %d, want %d and %q\n%s", strings.Join(args, " "), r.code, code, want, r.text())
		}
	}
	says(0, `(?s)same on 2 nodes: web-1, web-2\n.*Present: 1\n.*2 of 2 nodes answered ok`, "filemgr", "status", "file=/etc", "--all", "--display", "all")
	says(0, `^web-1\nweb-2\n$`, "rpcutil", "ping", "-n", "web-1,web-2", "-o", "name", "-q")
	says(0, `^web-1\n$`, "rpcutil", "ping", "--name", "/-1$/", "-o", "name", "-q")
	says(0, `^web-1\n$`, "rpcutil", "ping", "--all", "--one", "-o", "name", "-q")
	says(0, `^web-1\n$`, "rpcutil", "ping", "--select", `file("`+mark+`").size == 1 and module("rpcutil") and name == "web-1"`, "-o", "name", "-q")
	says(1, `no node is meant`, "rpcutil", "ping", "--select", `file("`+mark+`").present == false`)
	says(0, `(?s)web-1: yes\n.*size is 1.*1 of 1 node would be asked`, "rpcutil", "ping", "-n", "web-1", "--select", `file("`+mark+`").size == 1`, "--dry-run")
	says(0, `(?s)web-1: yes\nweb-2: no\n +no +limit 1: other nodes.*1 of 2 nodes would be asked`, "rpcutil", "ping", "--all", "--one", "--dry-run")
	says(4, `(?s)same on 2 nodes: web-1, web-2 +aborted\n  this node has no service nothing-here`, "service", "status", "service=nothing-here", "--all")

	says(2, `service: it is missing`, "service", "status", "--all")
	says(2, `service: it must be the name of a service`, "service", "status", "service=a;b", "--all")
	says(2, `unit: the action takes no such field`, "service", "status", "service=a", "unit=b", "--all")
	says(1, `has no action "statsu".*did you mean status\?`, "service", "statsu", "--all")
	says(1, `no node has told of a module "servise"`, "servise", "status", "--all")
	says(2, `"x", character 2: an operator is expected`, "rpcutil", "ping", "--fact", "x")
	says(2, `which nodes\?`, "rpcutil", "ping")

	// What changes something is a job, and each node's outcome stays.
	says(5, `(?s)web-1.*filemgr touch is off`, "filemgr", "touch", "file="+mark, "--all", "--yes")
	var jobs struct {
		Items []struct{ Kind, Title string }
	}
	if err := json.Unmarshal([]byte(s.tutti(t, "job", "list", "-o", "json")), &jobs); err != nil || len(jobs.Items) != 1 ||
		jobs.Items[0].Kind != "action" || jobs.Items[0].Title != "filemgr touch" {
		t.Errorf("%+v, %v", jobs, err)
	}

	// Each call is recorded in short, without answers; what changed something is there as a job.
	if out := s.tutti(t, "action", "status", "-o", "csv", "--columns", "action,state,nodes,answers",
		"--limit", "2"); !regexp.MustCompile(`(?s)^action,.*\nfilemgr touch,failed,2,2 refused\nservice status,ended,2,2 aborted\n$`).MatchString(out) {
		t.Errorf("status of actions:\n%s", out)
	}

	// A node that leaves is told as offline; the other answers.
	b.kill()
	eventually(t, time.Minute, "one agent", func() bool { return connected(t, s) == 1 })
	says(6, `(?s)1 of 2 nodes answered ok; offline: 1`, "rpcutil", "ping", "-n", "web-1,web-2")
}
