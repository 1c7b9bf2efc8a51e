package ruby

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fault"
)

// hieraCode has a hierarchy of several layers, a module with data of its own, and data that eyaml encrypts.
var hieraCode = map[string]string{
	"environment.conf": "modulepath = modules\n",
	"hiera.yaml": `version: 5
defaults:
  datadir: data
  data_hash: yaml_data
hierarchy:
  - name: each node
    path: "nodes/%{trusted.certname}.yaml"
  - name: systems
    paths:
      - "os/%{facts.os.name}-%{facts.os.release.major}.yaml"
      - "os/%{facts.os.family}.yaml"
  - name: several
    glob: "more/*.yaml"
  - name: roles of manifests
    path: "role/%{::role}.yaml"
  - name: secrets
    lookup_key: eyaml_lookup_key
    path: secrets.eyaml
    options:
      pkcs7_private_key: ROOT/keys/private.pem
      pkcs7_public_key: ROOT/keys/public.pem
  - name: common
    path: common.yaml
`,
	"data/nodes/web-1.example.org.yaml": "greeting: hello from the node\npackages: [vim]\napp::settings:\n  port: 8080\n  tls: {cert: node}\nknock: ['--b', c]\n",
	"data/os/Debian.yaml":               "family: \"%{facts.os.family}\"\npackages: [apt, vim]\n",
	"data/more/a.yaml":                  "globbed: a\napp::settings:\n  tls: {key: a}\n",
	"data/more/b.yaml":                  "globbed: b\n",
	"data/role/web.yaml":                "of_role: from the role\n",
	"data/common.yaml": `lookup_options:
  packages:
    merge: unique
  app::settings:
    merge:
      strategy: deep
  '^app::.*_secret$':
    convert_to: Sensitive
  counted:
    convert_to: Integer
packages: [curl]
knock: [a, b]
app::settings: {port: 80, host: "%{lookup('host')}"}
app::plain_secret: correct-horse
host: "%{facts.networking.hostname}.example"
aliased: "%{alias('packages')}"
literal: "%{literal('%')}{x}"
counted: '42'
nothing: ~
of: {the: {tree: leaf}}
greeting: hello
secret_copy: "before %{lookup('password')} after"
`,
	"manifests/site.pp": "$role = 'web'\nnotify { 'x': }\n",
	"modules/app/hiera.yaml": `version: 5
hierarchy:
  - name: of the module
    path: app.yaml
`,
	"modules/app/data/app.yaml":      "app::own: from the module\napp::settings: {depth: 3}\n",
	"modules/app/manifests/init.pp":  "class app($own) {}\n",
	"modules/app/functions/empty.pp": "function app::empty() { 1 }\n",
}

// hieraTree writes hieraCode, and what eyaml encrypts.
func hieraTree(t *testing.T) string {
	t.Helper()
	root := tree(t, hieraCode)
	run := func(name string, args ...string) string {
		t.Helper()
		text, err := exec.CommandContext(t.Context(), name, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v (apt-get install hiera-eyaml)", name, err)
		}
		return strings.TrimSpace(string(text))
	}
	private, public := filepath.Join(root, "keys", "private.pem"), filepath.Join(root, "keys", "public.pem")
	run("eyaml", "createkeys", "--pkcs7-private-key="+private, "--pkcs7-public-key="+public)
	encrypted := run("eyaml", "encrypt", "-q", "-o", "string", "-s", "geheim", "--pkcs7-private-key="+private, "--pkcs7-public-key="+public)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("data/secrets.eyaml", "password: "+encrypted+"\nconnection: {user: app, url: 'db://app:"+encrypted+"@db'}\nopen: not encrypted\n")
	write("hiera.yaml", strings.ReplaceAll(hieraCode["hiera.yaml"], "ROOT", root))
	for _, key := range []string{private, public} {
		if err := os.Chmod(key, 0o644); err != nil { // they are read in a cell
			t.Fatal(err)
		}
	}
	return root
}

// stockLookups is what `puppet lookup` prints, for each list of arguments.
func stockLookups(t *testing.T, root string, o compile.Order, lists ...[]string) (printed []string) {
	t.Helper()
	scratch := t.TempDir()
	environments := filepath.Join(scratch, "environments")
	if err := errors.Join(os.Mkdir(environments, 0o755), os.Symlink(root, filepath.Join(environments, "production")),
		os.WriteFile(filepath.Join(scratch, "facts.json"), o.Facts, 0o644)); err != nil {
		t.Fatal(err)
	}
	for i := range lists {
		lists[i] = append([]string{
			"lookup", "--node", string(o.Node), "--facts", filepath.Join(scratch, "facts.json"), "--environment", "production", "--environmentpath", environments,
			"--confdir", filepath.Join(scratch, "conf"), "--vardir", filepath.Join(scratch, "var"), "--hiera_config", filepath.Join(scratch, "conf", "hiera.yaml"),
		}, lists[i]...)
	}
	asked, err := json.Marshal(lists)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ruby", "testdata/lookups.rb")
	cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "HOME="+scratch)
	cmd.Stdin = bytes.NewReader(asked)
	text, err := cmd.Output()
	var answers [][2]string
	if err := errors.Join(err, json.Unmarshal(text, &answers)); err != nil {
		t.Fatalf("puppet lookup: %v\n%s", err, text)
	}
	for _, answer := range answers {
		for here, there := range map[string]string{
			filepath.Join(environments, "production"): "/etc/puppetlabs/code/environments/production", root: "/etc/puppetlabs/code/environments/production",
			filepath.Join(scratch, "conf"): "/etc/puppetlabs/puppet",
		} {
			answer[0] = strings.ReplaceAll(answer[0], here, there)
		}
		t.Log(strings.TrimSpace(answer[1]))
		printed = append(printed, answer[0])
	}
	return printed
}

// Values and explanations are those of `puppet lookup`, word for word.
func TestLookupsAreThoseOfPuppetLookup(t *testing.T) {
	t.Parallel()
	root := hieraTree(t)
	pool := running(t, Config{Workers: 2}, directories{version("hiera"): root})
	o := order(t, "production", "hiera", "web-1.example.org")
	type question struct {
		lookup compile.Lookup
		args   []string
	}
	questions := map[string]question{
		"first of two layers":             {compile.Lookup{Keys: []string{"greeting"}}, nil},
		"a variable in data":              {compile.Lookup{Keys: []string{"family"}}, nil},
		"unique by lookup_options":        {compile.Lookup{Keys: []string{"packages"}}, nil},
		"first in spite of them":          {compile.Lookup{Keys: []string{"packages"}, Merge: &compile.Merge{Strategy: "first"}}, []string{"--merge", "first"}},
		"deep, a module, a lookup within": {compile.Lookup{Keys: []string{"app::settings"}}, nil},
		"hash":                            {compile.Lookup{Keys: []string{"app::settings"}, Merge: &compile.Merge{Strategy: "hash"}}, []string{"--merge", "hash"}},
		"knock-out": {
			compile.Lookup{Keys: []string{"knock"}, Merge: &compile.Merge{Strategy: "deep", KnockoutPrefix: "--", SortMergedArrays: true}},
			[]string{"--merge", "deep", "--knock-out-prefix=--", "--sort-merged-arrays"},
		},
		"a glob":                     {compile.Lookup{Keys: []string{"globbed"}}, nil},
		"data of a module":           {compile.Lookup{Keys: []string{"app::own"}}, nil},
		"an alias":                   {compile.Lookup{Keys: []string{"aliased"}}, nil},
		"a literal":                  {compile.Lookup{Keys: []string{"literal"}}, nil},
		"converted":                  {compile.Lookup{Keys: []string{"counted"}}, nil},
		"nil":                        {compile.Lookup{Keys: []string{"nothing"}}, nil},
		"a key within":               {compile.Lookup{Keys: []string{"of.the.tree"}}, nil},
		"the second key":             {compile.Lookup{Keys: []string{"missing", "greeting"}}, nil},
		"not found":                  {compile.Lookup{Keys: []string{"missing"}}, nil},
		"none found":                 {compile.Lookup{Keys: []string{"missing", "absent"}}, nil},
		"a default":                  {compile.Lookup{Keys: []string{"missing"}, Default: new("otherwise")}, []string{"--default", "otherwise"}},
		"beside what eyaml encrypts": {compile.Lookup{Keys: []string{"open"}}, nil},
		"a variable of a manifest":   {compile.Lookup{Keys: []string{"of_role"}}, nil},
		"the same, compiled":         {compile.Lookup{Keys: []string{"of_role"}, Compile: true}, []string{"--compile"}},
	}
	names := slices.Sorted(maps.Keys(questions))
	var lists [][]string
	for _, name := range names {
		q := questions[name]
		for _, how := range [][]string{{"--render-as", "json"}, {"--explain"}} {
			lists = append(lists, slices.Concat(how, q.args, q.lookup.Keys))
		}
	}
	stock := stockLookups(t, root, o, lists...)
	for i, name := range names {
		lookup, value, explanation := questions[name].lookup, stock[2*i], stock[2*i+1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plain, err := pool.Lookup(t.Context(), o, lookup)
			if err != nil {
				t.Fatal(err)
			}
			if found := value != ""; plain.Found != found {
				t.Fatalf("found is %v; puppet lookup says %q", plain.Found, value)
			}
			if diff := cmp.Diff(decoded(t, value), decoded(t, string(plain.Value))); diff != "" {
				t.Errorf("value (-want +got):\n%s", diff)
			}
			lookup.Explain = true
			explained, err := pool.Lookup(t.Context(), o, lookup)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimRight(explanation, "\n"), strings.TrimRight(explained.Explanation, "\n")); diff != "" || len(explanation) < 100 {
				t.Errorf("explanation (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(string(plain.Value), string(explained.Value)); diff != "" || explained.Found != plain.Found || explained.Hidden {
				t.Errorf("the value beside an explanation (-want +got):\n%s", diff)
			}
		})
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return text // puppet lookup renders a bare value as it is
	}
	return value
}

// What is Sensitive, and what eyaml decrypted, is in no answer; that it was found is.
func TestLookupsHideSecrets(t *testing.T) {
	t.Parallel()
	root := hieraTree(t)
	pool := running(t, Config{Workers: 1}, directories{version("hiera"): root})
	o := order(t, "production", "hiera", "web-1.example.org")
	secrets := map[string]string{
		"app::plain_secret": `"[value redacted: it is Sensitive]"`,
		"password":          `"[value redacted: it is decrypted by eyaml]"`,
		"connection":        `{"user":"app","url":"[value redacted: it is decrypted by eyaml]"}`,
		"secret_copy":       `"[value redacted: it is decrypted by eyaml]"`,
	}
	keys := slices.Sorted(maps.Keys(secrets))
	var lists [][]string
	for _, key := range keys {
		lists = append(lists, []string{"--explain", key})
	}
	stock := stockLookups(t, root, o, lists...)
	for i, key := range keys {
		want := secrets[key]
		looked, err := pool.Lookup(t.Context(), o, compile.Lookup{Keys: []string{key}, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		if !looked.Found || !looked.Hidden || string(looked.Value) != want {
			t.Errorf("%s: found %v, hidden %v, %s", key, looked.Found, looked.Hidden, looked.Value)
		}
		for _, secret := range []string{"geheim", "correct-horse"} {
			if strings.Contains(looked.Explanation, secret) {
				t.Errorf("the explanation of %s has the secret:\n%s", key, looked.Explanation)
			}
		}
		if !strings.Contains(looked.Explanation, `Found key: "`+key+`"`) {
			t.Errorf("the explanation of %s:\n%s", key, looked.Explanation)
		}
		// They are secrets indeed: plain Puppet has them.
		if plain := stock[i]; !strings.Contains(plain, "geheim") && !strings.Contains(plain, "correct-horse") {
			t.Errorf("puppet lookup %s: %s", key, plain)
		}
	}
}

// A lookup leaves nothing behind: catalogs are as before, and a main manifest that cannot be parsed keeps nobody from asking.
func TestLookupsBesideCatalogs(t *testing.T) {
	t.Parallel()
	broken := map[string]string{
		"environment.conf": "", "hiera.yaml": hieraCode["hiera.yaml"], "data/common.yaml": "greeting: hello\n", "manifests/site.pp": "node {",
	}
	wrong := map[string]string{
		"environment.conf": "", "hiera.yaml": "version: 5\nhierarchy:\n  - name: x\n    paht: common.yaml\n", "manifests/site.pp": "notify { 'x': }\n",
	}
	slow := map[string]string{
		"environment.conf": "modulepath = modules\n", "hiera.yaml": "version: 5\nhierarchy:\n  - name: slow\n    lookup_key: slow::key\n",
		"manifests/site.pp": "notify { 'x': }\n",
		"modules/slow/lib/puppet/functions/slow/key.rb": "Puppet::Functions.create_function(:'slow::key') do\n  dispatch(:key) do\n    param 'String', :key\n    param 'Hash', :options\n    param 'Puppet::LookupContext', :context\n  end\n" +
			"  def key(key, options, context)\n    return context.not_found if key != 'slow'\n    sleep 60\n  end\nend\n",
	}
	pool := running(t, Config{Workers: 1, Timeout: 5 * time.Second}, directories{
		version("hiera"): hieraTree(t), version("broken"): tree(t, broken), version("wrong"): tree(t, wrong), version("slow"): tree(t, slow),
	})
	ask := func(ver string, l compile.Lookup) (compile.Looked, error) {
		t.Helper()
		return pool.Lookup(t.Context(), order(t, "production", ver, "web-1.example.org"), l)
	}
	before := mustCompile(t, pool, order(t, "production", "hiera", "web-1.example.org"))
	if _, err := ask("hiera", compile.Lookup{Keys: []string{"greeting"}}); err != nil {
		t.Fatal(err)
	}
	after := mustCompile(t, pool, order(t, "production", "hiera", "web-1.example.org"))
	if diff := cmp.Diff(before.Resources, after.Resources); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}

	if looked, err := ask("broken", compile.Lookup{Keys: []string{"greeting"}}); err != nil || string(looked.Value) != `"hello"` {
		t.Errorf("beside a manifest that cannot be parsed: %s, %v", looked.Value, err)
	}
	_, err := ask("broken", compile.Lookup{Keys: []string{"greeting"}, Compile: true})
	if e, ok := errors.AsType[*compile.Error](err); !ok || e.File != "manifests/site.pp" || e.Line != 1 {
		t.Errorf("compiled: %+v", err)
	}
	for _, explain := range []bool{false, true} {
		_, err = ask("wrong", compile.Lookup{Keys: []string{"greeting"}, Explain: explain})
		if e, ok := errors.AsType[*compile.Error](err); !ok || e.Cause != compile.CauseCode || !strings.Contains(e.Message, "unrecognized key 'paht'") ||
			!strings.Contains(e.Message, "/production/hiera.yaml") {
			t.Errorf("a wrong hiera.yaml: %+v", err)
		}
	}
	_, err = ask("slow", compile.Lookup{Keys: []string{"slow"}})
	if e, ok := errors.AsType[*compile.Error](err); !ok || e.Cause != compile.CauseTimeout || !strings.Contains(e.Message, "the lookup took longer than 5s") {
		t.Errorf("data that never comes: %+v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := pool.Lookup(ctx, order(t, "production", "hiera", "web-1.example.org"), compile.Lookup{Keys: []string{"greeting"}}); !errors.Is(err,
		context.Canceled) {
		t.Errorf("who went away: %v", err)
	}
	if _, err := ask("nowhere", compile.Lookup{Keys: []string{"greeting"}}); fault.Of(err) != fault.NotFound {
		t.Errorf("a version that is not there: %v", err)
	}
}
