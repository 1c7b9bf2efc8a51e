package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// manifests are resources as nodes tell them, and the code for them.
var manifests = []struct{ kind, title, parameters, want string }{
	{"Service", "nginx", `{"enable":"true","ensure":"running","provider":"systemd"}`, `service { 'nginx':
  ensure   => 'running',
  enable   => 'true',
  provider => 'systemd',
}
`},
	{"File", `C:\it's`, `{"ensure":"file","content":"{sha256}98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4","ctime":"x","mtime":"y","type":"file","mode":"0644","owner":0}`, `file { 'C:\\it\'s':
  ensure => 'file',
  mode   => '0644',
  owner  => 0,
  # content: only the checksum is known: {sha256}98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4
}
`},
	{
		"User", "ann", `{"groups":["a","b"],"password":"[redacted]","comment":"$x \"${y}\" \\ 'z'","shell":"a\nb$c\"\\\u001b[31m\u202e","x":null,"uid":-1}`,
		`user { 'ann':
  comment => '$x "${y}" \\ \'z\'',
  groups  => ['a', 'b'],
  shell   => "a\nb\$c\"\\\u{1B}[31m\u{202E}",
  uid     => -1,
  # password: secret, the node does not show it
}
`,
	},
	{"Apache::Vhost", "v", `{"a":{"k'":[true,{}],"b":[]},"n":1e+20,"f":1.5,"big":99999999999999999999,"bad } exec { 'rm':\n":"x"}`, `apache::vhost { 'v':
  a   => { 'b' => [], 'k\'' => [true, {}] },
  big => '99999999999999999999',
  f   => 1.5,
  n   => 1e20,
  # bad } exec { 'rm':\n: no name of a parameter
}
`},
	{"Host", "nothing", `{}`, "host { 'nothing':\n}\n"},
}

func TestAResourceAsCode(t *testing.T) {
	t.Parallel()
	for _, c := range manifests {
		got, err := manifest(c.kind, c.title, json.RawMessage(c.parameters))
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s %s: %v (-want +got):\n%s", c.kind, c.title, err, diff)
		}
	}
	if _, err := manifest("File", "x", json.RawMessage(`[]`)); err == nil {
		t.Error("an array was read as parameters")
	}
}

// Puppet itself reads the code, and has the values that were meant.
func TestPuppetReadsTheCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	puppet := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "puppet", append(args, "--confdir", dir, "--vardir", dir+"/var", "--color", "false")...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("puppet %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	var code strings.Builder
	for _, c := range manifests {
		text, err := manifest(c.kind, c.title, json.RawMessage(c.parameters))
		if err != nil {
			t.Fatal(err)
		}
		code.WriteString(text)
	}
	path := filepath.Join(dir, "all.pp")
	if err := os.WriteFile(path, []byte(code.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	puppet("parser", "validate", path)

	const meant = "a\tb\nc\r \x1b$x ${y} \"q\" 'p' \\ \\n é \u202e"
	values := filepath.Join(dir, "value.pp")
	manifest := "file { '" + dir + "/plain': content => " + inPuppetQuotes(meant) + ", }\n" +
		"file { '" + dir + "/single': content => " + inPuppetQuotes(`\'$x ${y} "\\n`) + ", }\n"
	if err := os.WriteFile(values, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	puppet("apply", values)
	for name, want := range map[string]string{"plain": meant, "single": `\'$x ${y} "\\n`} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want || err != nil {
			t.Errorf("%s: Puppet read %q, meant was %q; %v", name, got, want, err)
		}
	}
}
