package resource_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/agent/builtin"
	"github.com/tutti-project/tutti/internal/agent/builtin/builtintest"
	"github.com/tutti-project/tutti/internal/agent/builtin/resource"
	"github.com/tutti-project/tutti/internal/agent/orders"
	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/program/programtest"
)

// node is a machine whose Puppet, the one that is installed, has directories of its own.
type node struct {
	t      *testing.T
	dir    string
	puppet string
	config resource.Config
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, dir: t.TempDir()}
	n.puppet = programtest.Puppet(t, n.dir)
	n.config = resource.Config{
		Puppet: func() (string, error) { return n.puppet, nil }, Dir: filepath.Join(n.dir, "ruby"), NSSwitch: filepath.Join(n.dir, "nsswitch.conf"),
	}
	return n
}

func (n *node) write(name, text string) {
	n.t.Helper()
	path := filepath.Join(n.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

func (n *node) action(module, name string) orders.Action {
	n.t.Helper()
	made, err := builtin.Orders([]builtin.Module{resource.Module(n.config), resource.Puppetral(n.config)}, []string{"/tutti"})
	if err != nil {
		n.t.Fatal(err)
	}
	for _, m := range made {
		if a, ok := m.Actions[name]; ok && m.Name == module {
			return a
		}
	}
	n.t.Fatalf("there is no %s %s", module, name)
	return orders.Action{}
}

func (n *node) ask(module, name, input string) (map[string]any, error) {
	n.t.Helper()
	return builtintest.ReadFields(n.t, n.action(module, name), input)
}

// apply does what the agent's watcher does.
func (n *node) apply(input string) (string, error) {
	n.t.Helper()
	a := n.action("resource", "apply")
	if err := a.Check(jsontext.Value(input)); err != nil {
		return "", err
	}
	c, err := a.Prepare(n.t.Context(), orders.Order{Params: jsontext.Value(input)})
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(n.t.Context(), c.Path, c.Args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = bytes.NewReader(c.Input), &out, &errs, append(os.Environ(), c.Env...)
	exit := 0
	if err := cmd.Run(); err != nil {
		exit = cmd.ProcessState.ExitCode()
	}
	results, err := a.Results(orders.Output{Exit: &exit, Stdout: out.Bytes(), Stderr: errs.Bytes()})
	if aborted, ok := errors.AsType[*orders.Aborted](err); ok {
		results = aborted.Data
	}
	return string(results), err
}

// puppets are the parameters that `puppet resource` knows of a resource, as text.
func (n *node) puppets(kind, title string) map[string]string {
	n.t.Helper()
	out, err := exec.CommandContext(n.t.Context(), n.puppet, "resource", "--to_yaml", kind, title).Output()
	if err != nil {
		n.t.Fatalf("puppet resource %s %s: %v: %s", kind, title, err, out)
	}
	var all map[string]map[string]map[string]any
	if err := yaml.Unmarshal(out, &all); err != nil {
		n.t.Fatalf("%v: %s", err, out)
	}
	return texts(all[kind][title])
}

func texts[V any](values map[string]V) map[string]string {
	all := map[string]string{}
	for name, value := range values {
		all[name] = fmt.Sprint(value)
	}
	return all
}

func parametersOf(results map[string]any) map[string]string {
	values, _ := results["parameters"].(map[string]any)
	return texts(values)
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	for _, m := range []builtin.Module{resource.Module(resource.Config{}), resource.Puppetral(resource.Config{})} {
		parsed, err := action.Parse(m.Name, m.Metadata)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range parsed.Actions {
			_, program := m.Programs[a.Name]
			if (m.Calls[a.Name] == nil) == !program || a.ReadOnly == program {
				t.Errorf("%s %s is read, or a program, not both", m.Name, a.Name)
			}
		}
	}
}

// A resource is what puppet resource shows of it, but for what is secret.
func TestResourcesAreThoseOfPuppet(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("var/state/resources.txt", "group[root]\nfile[/etc/hosts]\n")
	n.write("some file", "content")
	for _, c := range []struct {
		kind, title string
		managed     bool
	}{
		{"group", "root", true}, {"user", "root", false}, {"service", "ssh", false}, {"host", "localhost", false}, {"file", filepath.Join(n.dir, "some file"), false},
	} {
		want := n.puppets(c.kind, c.title)
		if _, secret := want["password"]; secret {
			want["password"] = "[redacted]"
		}
		found, err := n.ask("puppetral", "find", fmt.Sprintf(`{"type":%q,"title":%q}`, strings.ToUpper(c.kind[:1])+c.kind[1:], c.title))
		if err != nil {
			t.Errorf("%s: %v", c.kind, err)
			continue
		}
		got := parametersOf(found)
		if c.kind == "file" || c.kind == "service" || c.kind == "host" || c.kind == "group" || c.kind == "user" {
			delete(want, "provider") // which of them answers is Puppet's business
			delete(got, "provider")
		}
		delete(want, "target")
		delete(got, "target")
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("%s (-puppet +got):\n%s", c.kind, diff)
		}
		if found["title"] != c.title || !strings.EqualFold(fmt.Sprint(found["type"]), c.kind) || found["managed"] != c.managed || found["exported"] != false {
			t.Errorf("%s: %v", c.kind, found)
		}
	}
	version, err := exec.CommandContext(t.Context(), "dpkg-query", "-W", "-f", "${Version}", "bash").Output()
	if err != nil {
		t.Fatal(err)
	}
	found, err := n.ask("resource", "find", `{"type":"package","title":"bash"}`)
	if err != nil || parametersOf(found)["ensure"] != string(version) {
		t.Errorf("package bash: %v, %v, want version %s", found, err, version)
	}
	if _, err := n.ask("resource", "find", `{"type":"nosuchtype","title":"x"}`); err == nil || err.Error() != "Puppet has no type nosuchtype" {
		t.Errorf("an unknown type: %v", err)
	}
}

// A list is all that getent knows.
func TestList(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	out, err := exec.CommandContext(t.Context(), "getent", "group").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(line, ":")
		want[name] = true
	}
	found, err := n.ask("puppetral", "search", `{"type":"group"}`)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	rows, _ := found["result"].([]any)
	for _, row := range rows {
		r, _ := row.(map[string]any)
		got[fmt.Sprint(r["title"])] = true
	}
	if diff := cmp.Diff(want, got); diff != "" || found["cut"] != false || found["total"] != float64(len(want)) {
		t.Errorf("(-getent +got):\n%s%v %v", diff, found["cut"], found["total"])
	}
}

// A list that has no room for all says so; a provider that cannot list hides nothing of the others.
func TestListsThatAreCut(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.write("lib/puppet/type/lamp.rb", "Puppet::Type.newtype(:lamp) { ensurable; newparam(:name, :namevar => true) }\n")
	n.write("lib/puppet/provider/lamp/dead.rb", "Puppet::Type.type(:lamp).provide(:dead) { def self.instances; raise 'no current'; end }\n")
	n.write("lib/puppet/provider/lamp/led.rb", "Puppet::Type.type(:lamp).provide(:led) { def self.instances; (1..5001).map { |i| new(:name => format('l%05d', i), :ensure => :present) }; end; mk_resource_methods; def exists?; true; end }\n")
	installed := n.puppet
	n.puppet = programtest.Write(t, filepath.Join(n.dir, "with-lamps"), "#!/bin/sh\nexec "+installed+" \"$@\" --libdir "+n.dir+"/lib\n")
	found, err := n.ask("resource", "list", `{"type":"lamp"}`)
	if err != nil {
		t.Fatal(err)
	}
	rows, _ := found["result"].([]any)
	if len(rows) != resource.MaxRows || found["cut"] != true || found["total"] != 5001.0 {
		t.Errorf("%d rows, %v %v", len(rows), found["cut"], found["total"])
	}
	if diff := cmp.Diff([]any{"dead: no current"}, found["problems"]); diff != "" {
		t.Error(diff)
	}
}

func TestListsThatCost(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	n.puppet = programtest.Write(t, filepath.Join(n.dir, "none"), "#!/bin/sh\ncat > /dev/null\necho '{\"results\":{\"result\":[],\"total\":0,\"cut\":false}}'\n")
	const flag = "; give expensive=true to list them all the same, or find one by its title"
	for _, c := range []struct{ nsswitch, kind, want string }{
		{"", "user", ""},
		{"passwd: files systemd # sss\ngroup: files\n", "user", ""},
		{"passwd: files sss\ngroup: files\n", "user", "resources of the type user are not listed: this machine asks sss for them, which may have very many" + flag},
		{"passwd: files sss\ngroup: files\n", "group", ""},
		{"passwd: files\ngroup:\tldap [NOTFOUND=return] files\n", "Group", "resources of the type group are not listed: this machine asks ldap for them, which may have very many" + flag},
		{"passwd: sss\n", "service", ""},
		{"", "exec", "resources of the type exec are not listed: Puppet cannot enumerate them" + flag},
		{"", "file", "resources of the type file are not listed: Puppet cannot enumerate them" + flag},
	} {
		n.write("nsswitch.conf", c.nsswitch)
		_, err := n.ask("resource", "list", `{"type":"`+c.kind+`"}`)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q %s: %q, want %q", c.nsswitch, c.kind, got, c.want)
		}
		if _, err := n.ask("resource", "list", `{"type":"`+c.kind+`","expensive":true}`); err != nil {
			t.Errorf("%q %s: %v", c.nsswitch, c.kind, err)
		}
	}
}

// What Puppet's program does wrong is said, and a program that hangs is ended with all that it started.
func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for body, want := range map[string]string{
		"echo Error: no good >&2; exit 3":   "puppet tutti_resource: exit status 3: Error: no good",
		"echo nonsense; echo why >&2":       "puppet tutti_resource gave no answer - stderr: \nwhy\n",
		`echo '{"results":{"type":"a"}}'`:   "what resource find gives does not fit its schema: field exported: it is missing; field managed: it is missing; field parameters: it is missing; field tags: it is missing; field title: it is missing",
		`echo '{"aborted":"not so"}'`:       "not so",
		`echo '{}'`:                         "puppet tutti_resource gave no results - stderr: (empty)",
		`echo '{"results":null}'`:           "puppet tutti_resource gave no results - stderr: (empty)",
		"yes x | head -c 20000000":          "puppet tutti_resource gave no answer - stderr: (empty)",
		`echo "{\"aborted\":\"$RUBYLIB\"}"`: filepath.Join(n.dir, "ruby"),
	} {
		n.puppet = programtest.Write(t, filepath.Join(n.dir, "none"), "#!/bin/sh\n"+body+"\n")
		_, err := n.ask("resource", "find", `{"type":"a","title":"b"}`)
		got := fault.Detail(err)
		if got == "" && err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
	n.config.Puppet = func() (string, error) { return "", fault.New(fault.NotFound, "puppet is not installed") }
	if _, err := n.ask("resource", "find", `{"type":"a","title":"b"}`); fault.Of(err) != fault.NotFound {
		t.Error(err)
	}
}

func TestWhatMayBeApplied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config resource.Config
		input  string
		want   string // why not
	}{
		{resource.Config{}, `{"type":"file","name":"/x"}`, "the owner of this node does not allow resources to be changed; resource_types_allowed in agent.yaml names types that may be"},
		{resource.Config{
			TypesAllowed: []string{"Service"},
		}, `{"type":"file","name":"/x"}`, "the owner of this node does not allow resources of the type file to be changed"},
		{resource.Config{TypesAllowed: []string{"File"}}, `{"type":"FILE","name":"/x"}`, ""},
		{resource.Config{
			TypesDenied: []string{"exec"},
		}, `{"type":"Exec","name":"/x"}`, "the owner of this node does not allow resources of the type exec to be changed"},
		{resource.Config{TypesDenied: []string{"exec"}}, `{"type":"file","name":"/x"}`, ""},
		{resource.Config{TypesDenied: []string{
			"exec",
		}}, `{"type":"::exec","name":"/x"}`, "field type: it must match the regular expression ^[A-Za-z][A-Za-z0-9_]*(::[A-Za-z][A-Za-z0-9_]*)*$"},
		{resource.Config{TypesDenied: []string{"exec"}}, `{"type":"file"}`, "field name: it is missing"},
	} {
		c.config.Puppet, c.config.Dir = func() (string, error) { return "/bin/true", nil }, t.TempDir()
		made, err := builtin.Orders([]builtin.Module{resource.Module(c.config)}, []string{"/tutti"})
		if err != nil {
			t.Fatal(err)
		}
		a := made[0].Actions["apply"]
		if err = a.Check(jsontext.Value(c.input)); err == nil {
			_, err = a.Prepare(t.Context(), orders.Order{Params: jsontext.Value(c.input)})
		}
		got := fault.Detail(err)
		if got == "" && err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.input, got, c.want)
		}
	}
	for want, c := range map[string]resource.Config{
		"":                            {TypesAllowed: []string{"a"}, NamesAllowed: []string{"a[x]"}, NamesDenied: []string{"b[x]"}},
		"only one of them may be set": {TypesAllowed: []string{"a"}, TypesDenied: []string{"b"}},
		"only one of them may name resources of the type a": {NamesAllowed: []string{"A[x]"}, NamesDenied: []string{"a[y]"}},
		`"a" is not of the form type[name]`:                 {NamesDenied: []string{"a"}},
	} {
		if err := c.Check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// One resource is made by the real Puppet, and what it says of it has no secrets.
func TestApply(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	file, managed, denied := filepath.Join(n.dir, "made"), filepath.Join(n.dir, "managed"), filepath.Join(n.dir, "denied")
	n.config.TypesAllowed, n.config.NamesDenied = []string{"file", "user"}, []string{"file[" + denied + "]"}
	n.write("var/state/resources.txt", "file["+strings.ToLower(managed)+"]\n")
	for _, c := range []struct {
		input, results, errs string
	}{
		{`{"type":"file","name":"` + file + `","ensure":"file","content":"hello","mode":"0640"}`, `"changed":true`, ""},
		{`{"type":"file","name":"` + file + `","ensure":"file","content":"hello","mode":"0640"}`, `{"result":"no output produced","changed":false}`, ""},
		{`{"type":"file","name":"` + managed + `","ensure":"file"}`, "", "Puppet manages File[" + managed + "] on this node: change it in the code of its catalog"},
		{`{"type":"file","name":"` + n.dir + `//managed","ensure":"file"}`, "", "Puppet manages File[" + n.dir + "//managed] on this node"},
		{`{"type":"file","name":"` + n.dir + `//denied","ensure":"file"}`, "", "the owner of this node does not allow file[" + denied + "] to be changed"},
		{`{"type":"file","name":"x","path":"` + denied + `","ensure":"file"}`, "", "the parameter path would name the resource a second time; leave it out"},
		{`{"type":"file","name":"` + file + `","ensure":"nonsense/","mode":"x"}`, "", "Parameter"},
		{`{"type":"file","name":"/nowhere/at/all","ensure":"file"}`, `"changed":false`, "File[/nowhere/at/all] could not be applied: "},
		{`{"type":"user","name":"nobody","password":"se:cret"}`, "", "Parameter password failed on User[nobody]"},
	} {
		results, err := n.apply(c.input)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(results, c.results) || !strings.HasPrefix(text, c.errs) || (c.errs == "") != (err == nil) || strings.Contains(text+results, "se:cret") {
			t.Errorf("%s: %s, %q", c.input, results, text)
		}
	}
	made, err := os.ReadFile(file)
	info, statErr := os.Stat(file)
	if err != nil || statErr != nil || string(made) != "hello" || info.Mode().Perm() != 0o640 {
		t.Errorf("%q, %v, %v", made, err, info.Mode())
	}
	for _, path := range []string{managed, denied} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was made", path)
		}
	}
	n.config.AllowManaged = true
	if results, err := n.apply(`{"type":"file","name":"` + managed + `","ensure":"file"}`); err != nil || !strings.Contains(results, `"changed":true`) {
		t.Errorf("managed, and allowed: %s, %v", results, err)
	}
}
