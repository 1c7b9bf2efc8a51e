package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

// groupCode is a module whose parameters come from groups.
var groupCode = map[string]string{
	"manifests/site.pp": "file { \"${facts['scratch']}/tier\": content => \"${tier} in ${environment}\" }\n",
	"modules/motd/manifests/init.pp": "class motd(String $text = 'default', Integer $size = 1) {\n" +
		"  file { \"${facts['scratch']}/motd\": content => \"${text} ${size}\" }\n}\n",
}

const groupFile = `
groups:
  - name: Debian
    rule: facts.os.family = "Debian"
    classes: {motd: {text: hello}}
    variables: {tier: silver}
  - name: Web
    parent: Debian
    rule: name ~ '^groups-web' and facts.processors.count >= 1
    variables: {tier: gold}
    data: {motd: {size: 7}}
  - name: Canaries
    nodes: [groups-web.example.test]
    environment: canary
    environment_group: true
`

// A node gets classes, variables, data and its environment from groups, and is told
// what they disagree about.
func TestGroupsDecideWhatANodeGets(t *testing.T) {
	begin(t, 60)
	s := startServer(t, "--autosign", "all")
	dir := t.TempDir()
	for path, text := range groupCode {
		write(t, filepath.Join(dir, "code", path), text)
	}
	write(t, filepath.Join(dir, "groups.yaml"), groupFile)
	for _, environment := range []string{"production", "canary"} {
		s.tutti(t, "code", "deploy", environment, filepath.Join(dir, "code"))
	}
	s.tutti(t, "group", "apply", "-f", filepath.Join(dir, "groups.yaml"))
	web := newAgent(t, s, "groups-web.example.test")
	web.run(t, 2)
	same(t, "motd", "hello 7", web.read(t, "motd"))
	same(t, "tier", "gold in canary", web.read(t, "tier"))

	e := decode[api.GroupExplanation](t, s, "group", "explain", web.name, "-o", "json")
	var origins []string
	for _, o := range e.Origins {
		if o.Kind == "variable" {
			origins = append(origins, o.Group+" "+string(o.Value)+" "+o.State)
		}
	}
	same(t, "origins", "Debian \"silver\" overridden\nWeb \"gold\" used", strings.Join(origins, "\n"))

	s.tutti(t, "group", "edit", "Canaries", "--variable", "tier=tin")
	contains(t, web.run(t, 1), `groups disagree about groups-web.example.test: variable $tier is "tin" from group "Canaries" and "gold" from group "Web"`)
	s.tutti(t, "group", "edit", "Canaries", "--no-variable", "tier", "--environment", "nowhere")
	contains(t, web.run(t, 1), "groups give groups-web.example.test the environment nowhere, which has no code")
	s.tutti(t, "group", "create", "Others", "--pin", web.name, "--environment", "canary", "--environment-group")
	contains(t, web.run(t, 1), `the environment is "nowhere" from group "Canaries" and "canary" from group "Others"`)
	s.tutti(t, "group", "delete", "Canaries")
	web.run(t, 0)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
