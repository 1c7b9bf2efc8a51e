package e2e_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/sim"
)

// filteredNode is what a naive reader of a condition knows of a node. It shares no code with what judges conditions.
type filteredNode struct {
	name     string
	facts    map[string]any
	class    string // of its catalog, besides settings
	services []string
}

func (n filteredNode) fact(path string) any {
	var value any = n.facts
	for step := range strings.SplitSeq(path, ".") {
		value = value.(map[string]any)[step]
	}
	return value
}

// number is a fact that is a number, or a text of digits.
func (n filteredNode) number(path string) float64 {
	x, err := strconv.ParseFloat(fmt.Sprint(n.fact(path)), 64)
	if err != nil {
		panic(err)
	}
	return x
}

func (n filteredNode) runs(service string) bool { return slices.Contains(n.services, service) }

// filters are conditions as they are typed, each with what it means.
var filters = []struct {
	flags []string
	means func(n filteredNode) bool
}{
	{[]string{"-F", "os.family=Debian"}, func(n filteredNode) bool { return n.fact("os.family") == "Debian" }},
	{[]string{"-F", "os.family==Debian", "-F", "role!=web"}, func(n filteredNode) bool { return n.fact("os.family") == "Debian" && n.fact("role") != "web" }},
	{[]string{"-F", "processors.count>=4"}, func(n filteredNode) bool { return n.number("processors.count") >= 4 }},
	{[]string{"-F", "os.release.major<15"}, func(n filteredNode) bool { return n.number("os.release.major") < 15 }},
	{[]string{"-F", "processors.count>1", "-F", "os.release.major<=12"}, func(n filteredNode) bool {
		return n.number("processors.count") > 1 && n.number("os.release.major") <= 12
	}},
	{[]string{"-F", "networking.hostname=/^sim-00[0-4]/"}, func(n filteredNode) bool { return n.name < "sim-0050" }},
	{[]string{"-F", "role=~^(web|db)$"}, func(n filteredNode) bool { return n.fact("role") == "web" || n.fact("role") == "db" }},
	{[]string{"-F", "role!~e"}, func(n filteredNode) bool { return !strings.Contains(n.fact("role").(string), "e") }},
	{[]string{"-F", "no.such.fact!=1"}, func(filteredNode) bool { return false }},
	{[]string{"-C", "role::web"}, func(n filteredNode) bool { return n.class == "role::web" }},
	{[]string{"-C", "/^role::(cache|proxy)$/"}, func(n filteredNode) bool { return n.class == "role::cache" || n.class == "role::proxy" }},
	{[]string{"-C", "settings", "-C", "Role::DB"}, func(n filteredNode) bool { return n.class == "role::db" }},
	{[]string{"-A", "rpcutil", "-I", "/[02468][.]example/"}, func(n filteredNode) bool { return strings.ContainsRune("02468", rune(n.name[7])) }},
	{[]string{"-A", "/disk/"}, func(filteredNode) bool { return false }},
	{[]string{"-I", "sim-0007.example.test", "-I", "/^sim-019/"}, func(n filteredNode) bool {
		return strings.HasPrefix(n.name, "sim-0007") || strings.HasPrefix(n.name, "sim-019")
	}},
	{[]string{"-W", "os.family=RedHat role::worker"}, func(n filteredNode) bool { return n.fact("os.family") == "RedHat" && n.class == "role::worker" }},
	{[]string{"-S", `fact("os.family") == "Debian" and class("role::web") or fact("os.name") == "SLES"`}, func(n filteredNode) bool {
		return n.fact("os.family") == "Debian" && n.class == "role::web" || n.fact("os.name") == "SLES"
	}},
	{[]string{"-S", `not fact("role") in ["web", "db"] and not module("disk")`}, func(n filteredNode) bool {
		return n.fact("role") != "web" && n.fact("role") != "db"
	}},
	{[]string{"-S", `semver(facts.os.release.full, ">= 10.0.0") and name matches "1[.]example"`}, func(n filteredNode) bool {
		return n.number("os.release.major") >= 10 && n.name[7] == '1'
	}},
	// What only the nodes know is asked of them.
	{[]string{"-S", `service("nginx").status == "running"`}, func(n filteredNode) bool { return n.runs("nginx") }},
	{[]string{"-S", `fact("os.family") == "Debian" and service("nginx").status != "running"`}, func(n filteredNode) bool {
		return n.fact("os.family") == "Debian" && !n.runs("nginx")
	}},
	{[]string{"-S", `class("role::db") or service("nginx").status == "running" and service("cron").status == "running"`}, func(n filteredNode) bool {
		return n.class == "role::db" || n.runs("nginx") && n.runs("cron")
	}},
	{[]string{"-F", "os.family=Debian", "-C", "/web|proxy/", "-S", `not (service("cron").status == "running")`}, func(n filteredNode) bool {
		return n.fact("os.family") == "Debian" && (n.class == "role::web" || n.class == "role::proxy") && !n.runs("cron")
	}},
	// The expressions of mco -S.
	{[]string{"-S", `os.family=Debian and not role::web`}, func(n filteredNode) bool { return n.fact("os.family") == "Debian" && n.class != "role::web" }},
	{[]string{"-S", `service('nginx').status=running and (role::db or processors.count>=4)`}, func(n filteredNode) bool {
		return n.runs("nginx") && (n.class == "role::db" || n.number("processors.count") >= 4)
	}},
}

// readers are the commands that read a filter: mco has an expression language of its own behind -S.
func readers(flags []string) [][]string {
	run, find := []string{"action", "run", "rpcutil", "ping", "-o", "name", "-q"}, []string{"mco", "find"}
	at := slices.Index(flags, "-S")
	switch {
	case at < 0:
		return [][]string{run, find}
	case strings.Contains(flags[at+1], `"`):
		return [][]string{run}
	}
	return [][]string{find}
}

// Each kind of condition chooses among 200 nodes those that a naive reading of it means.
func TestEachKindOfFilterOnTwoHundredNodes(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "list", "--autosign-list", "*.example.test", "--compile-patience", "60s", "--max-load", "0", "--reuse-check", "0",
		"--verify-share", "off")
	names := sim.Names(200, "example.test")
	nodes := make([]filteredNode, len(names))
	services := map[string][]string{}
	var code strings.Builder
	for i, name := range names {
		n := filteredNode{name: name, facts: sim.Facts(name)}
		n.class = "role::" + n.facts["role"].(string)
		if i%3 == 0 {
			n.services = append(n.services, "nginx")
		}
		if i%4 != 0 {
			n.services = append(n.services, "cron")
		}
		nodes[i], services[name] = n, n.services
	}
	for _, role := range []string{"web", "db", "cache", "worker", "proxy"} {
		fmt.Fprintf(&code, "class role::%s {}\n", role)
	}
	code.WriteString("include \"role::${facts['role']}\"\n")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "manifests", "site.pp"), code.String())
	s.tutti(t, "code", "deploy", "production", dir)
	enroller, err := newEnroller(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(enroller.Close)
	fleet, err := startNodes(s, enroller, sim.Config{Names: names, Services: func(name string) []string { return services[name] }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fleet.close() })
	s.knowsModule(t, len(names), "rpcutil", "get_data")
	eventually(t, patience, "every node has a catalog", func() bool {
		out := s.try(t, "query", `resources[certname]{type = "Class" and title ~ "^Role::"}`, "-o", "json").out
		return strings.Count(out, `"certname"`) == len(names)
	})

	for _, f := range filters {
		var want []string
		for _, n := range nodes {
			if f.means(n) {
				want = append(want, n.name)
			}
		}
		t.Run(strings.Join(f.flags, " "), func(t *testing.T) {
			for _, command := range readers(f.flags) {
				r := s.try(t, append(command, f.flags...)...)
				got := strings.Fields(r.out)
				slices.Sort(got)
				if code := map[bool]int{true: 0, false: 1}[len(want) > 0]; !slices.Equal(got, want) || r.code != code {
					t.Errorf("tutti %s: exit code %d, %d nodes, want %d; %s\n%s", strings.Join(command, " "), r.code, len(got), len(want), firstOther(got, want), r.err)
				}
			}
		})
	}
	s.drawsNodes(t, names)
}

// firstOther is the first name in which two sorted lists differ.
func firstOther(got, want []string) string {
	for i := range max(len(got), len(want)) {
		a, b := slices.Concat(got, make([]string, len(want)))[i], slices.Concat(want, make([]string, len(got)))[i]
		if a != b {
			return fmt.Sprintf("%s instead of %s", cmp.Or(a, "nothing"), cmp.Or(b, "nothing"))
		}
	}
	return "the same nodes"
}

// drawsNodes holds limits, batches and chains to what they promise.
func (s *server) drawsNodes(t *testing.T, names []string) {
	t.Helper()
	ping := func(flags ...string) []string {
		t.Helper()
		got := strings.Fields(s.tutti(t, append([]string{"action", "run", "rpcutil", "ping", "-o", "name", "-q"}, flags...)...))
		slices.Sort(got)
		return got
	}
	if got := ping("--all", "--limit", "7"); !slices.Equal(got, names[:7]) {
		t.Errorf("--limit 7 is %v", got)
	}
	drawn := ping("--all", "--limit", "5%", "--limit-seed", "7")
	if again := ping("--all", "--limit", "5%", "--limit-seed", "7"); len(drawn) != 10 || !slices.Equal(drawn, again) || slices.Equal(drawn, names[:10]) {
		t.Errorf("5 %% of 200 by one seed are %v and %v", drawn, again)
	}
	if other := ping("--all", "--limit", "5%", "--limit-seed", "8"); slices.Equal(drawn, other) {
		t.Errorf("two seeds draw the same: %v", other)
	}
	if got := ping("--all", "--batch", "30"); !slices.Equal(got, names) {
		t.Errorf("in batches of 30, %d nodes answered", len(got))
	}
	r := s.try(t, "action", "run", "rpcutil", "ping", "--all", "--batch", "30", "--display", "none")
	if !regexp.MustCompile(`200 of 200 nodes answered ok`).MatchString(r.out + r.err) {
		t.Errorf("in batches:\n%s", r.text())
	}
}
