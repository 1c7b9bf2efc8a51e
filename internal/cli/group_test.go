package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/api"
)

const describedGroups = `
groups:
  - name: Web servers   # comments stay in the file
    rule: facts.os.family = "Debian" and
      name ~ '^web\d'
    nodes: [web-9.example.test]
    classes:
      apache: {port: 80, ratio: 1.0, tags: [a, 2024-01-01, "5", 0x10, yes, ~]}
      ntp:
    data: &shared {ssh: {p: 1}}
  - name: Other
    parent: Web servers
    environment: "007"
    rule: ["or", ["=", ["fact", "a", 0], "b"], ["=", "name", "c"]]
    data: *shared
`

func TestGroupFiles(t *testing.T) {
	t.Parallel()
	file, err := parseGroups([]byte(describedGroups))
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(file)
	want := `{"groups":[{"name":"Web servers","rule":"facts.os.family = \"Debian\" and name ~ '^web\\d'","nodes":["web-9.example.test"],` +
		`"classes":{"apache":{"port":80,"ratio":1.0,"tags":["a","2024-01-01","5",16,"yes",null]},"ntp":null},"data":{"ssh":{"p":1}}},` +
		`{"name":"Other","parent":"Web servers","environment":"007","rule":["or",["=",["fact","a",0],"b"],["=","name","c"]],"data":{"ssh":{"p":1}}}]}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroupFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.Repeat("*"+string(c-1)+",", 10) + "]\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":         {"", "the text is empty"},
		"no YAML":       {"groups: [", "line 1"},
		"unknown field": {"groups: [{name: a, clases: {}}]", `unknown field "clases"`},
		"twice":         {"groups:\n  - name: a\n    name: b\n", `line 3: the key "name" is there twice`},
		"key":           {"groups: [{name: a, classes: {[x]: {}}}]", "a key must be a plain name"},
		"not a number":  {"groups: [{name: a, variables: {x: .nan}}]", "has no place in JSON"},
		"loop":          {"groups: &g [{name: a, rule: [*g]}]", "nested more than"},
		"bomb":          {bomb, "unfolds to more than"},
	} {
		if _, err := parseGroups([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// What is exported is read back as it was, whatever texts there are.
func TestExportIsReadBack(t *testing.T) {
	t.Parallel()
	text := rapid.OneOf(rapid.String(),
		rapid.SampledFrom([]string{
			"yes", "1.0", "null", "~", "2024-01-01", "a: b", "- x", "\"", "'", "#", "a\nb\n", " ", "\u2028", "!!int 3", "&a", "*a", "0x1f", "<<", "=", "\x7f",
		}))
	rapid.Check(t, func(t *rapid.T) {
		quoted, _ := json.Marshal(text.Draw(t, "value"))
		value := rapid.SampledFrom([]string{"1.0", "1e3", "-0", "true", "null", "[]", "{}", `{"<<":[1,{"a":null}]}`, string(quoted)}).Draw(t, "json")
		file := groupFile{Groups: []api.GroupSpec{{
			Name: text.Draw(t, "name"), Description: text.Draw(t, "description"), Nodes: []string{"a", text.Draw(t, "node")}, Rule: quoted,
			Classes: map[string]map[string]json.RawMessage{"apache": {text.Draw(t, "key"): json.RawMessage(value)}, "ntp": {}},
		}}}
		want, _ := json.Marshal(file)
		out, err := formatGroups(file)
		if err != nil {
			t.Fatal(err)
		}
		back, err := parseGroups(out)
		if err != nil {
			t.Fatalf("%v:\n%s", err, out)
		}
		got, _ := json.Marshal(back)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s\n%s", diff, out)
		}
	})
}

func FuzzParseGroups(f *testing.F) {
	f.Add([]byte(describedGroups))
	f.Add([]byte(`{"groups":[{"name":"a","classes":{"b":{"c":[1.0,null]}}}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseGroups(text) })
}

func TestEditFlags(t *testing.T) {
	t.Parallel()
	var flags groupFlags
	cmd := &cobra.Command{}
	all := flagSet{FlagSet: cmd.Flags(), cmd: cmd}
	flags.add(all)
	flags.addRemovals(all)
	err := cmd.ParseFlags([]string{
		"--rule", `["=", "name", "a"]`, "--pin", "c,d", "--unpin", "a", "--class", "::x", "--no-class", "gone", "--param", "apache::mod::port=80",
		"--no-param", "apache::old", "--variable", "$site=north=south", "--variable", `list=[1, 2]`, "--data-value", "ssh::p={}",
	})
	if err != nil {
		t.Fatal(err)
	}
	raw := json.RawMessage("1")
	spec := api.GroupSpec{Name: "keep", Nodes: []string{"a", "b"}, Classes: map[string]map[string]json.RawMessage{"gone": {}, "apache": {"old": raw, "kept": raw}}}
	if err := flags.change(all.Changed, &spec); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(spec)
	want := `{"name":"keep","rule":["=","name","a"],"nodes":["b","c","d"],"classes":{"apache":{"kept":1},"apache::mod":{"port":80},"x":{}},` +
		`"variables":{"list":[1,2],"site":"north=south"},"data":{"ssh":{"p":{}}}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGroupUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("groups: [{nam: a}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"group apply":                      "which file? give -f FILE",
		"group apply -f " + bad:            `unknown field "nam"`,
		"group apply -f " + dir + "/none":  "cannot read",
		"group create a --param port=80":   `--param "port": CLASS::NAME is expected`,
		"group create a --variable port":   `--variable "port": NAME=VALUE is expected`,
		"group create a --data-value a::=": "CLASS::NAME is expected",
		"group frobnicate":                 "unknown command",
	} {
		var out, errOut bytes.Buffer
		code := Run(context.Background(), strings.Fields(line), System{In: strings.NewReader(""), Out: &out, Err: &errOut})
		if code == exitDone || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: %d, %q, want %q", line, code, errOut.String(), want)
		}
	}
}
