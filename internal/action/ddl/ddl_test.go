package ddl_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
	"github.com/tutti-project/tutti/internal/action/ddl"
	"github.com/tutti-project/tutti/internal/fault"
)

const disk = `{"$schema": "https://choria.example.test/ddl.json",
 "metadata": {"name": "disk", "description": "Disk checks", "author": "ops", "license": "Apache-2.0", "version": "1.0.0", "url": "", "timeout": 20, "provider": "external"},
 "actions": [{
   "action": "usage", "description": "Used space", "display": "always", "read_only": true,
   "input": {
     "mount": {"prompt": "Mount", "description": "Mount point", "type": "string", "optional": false, "validation": "^/", "maxlength": 200},
     "address": {"prompt": "Address", "type": "string", "optional": true, "validation": "ipaddress", "maxlength": 0},
     "limit": {"type": "integer", "optional": false, "default": 90},
     "unit": {"type": "list", "list": ["B", "MB"], "optional": true},
     "more": {"type": "hash", "optional": true}},
   "output": {
     "percent": {"description": "Used", "display_as": "Used %", "type": "integer", "default": 0},
     "state": {"description": "", "display_as": "state"},
     "full": {"type": "boolean"}},
   "aggregate": [
     {"function": "average", "args": ["percent", {"format": "mean %.1f"}]},
     {"function": "chart", "args": ["percent"]},
     {"function": "summary", "args": ["state"], "format": "%5s is %d"},
     {"function": "boolean_summary", "args": ["full", {"true": "full", "false": "free"}]}]
 }]}`

const diskModule = `{"name": "disk", "description": "Disk checks", "author": "ops", "license": "Apache-2.0", "version": "1.0.0", "actions": [{
  "name": "usage", "description": "Used space", "display": "always", "read_only": true, "timeout": 20,
  "input": {"type": "object", "additionalProperties": false, "required": ["mount"], "properties": {
     "mount": {"title": "Mount", "description": "Mount point", "type": "string", "pattern": "^/", "maxLength": 200, "x-order": 1},
     "address": {"title": "Address", "type": "string", "format": "ipaddress", "x-order": 2},
     "limit": {"type": "integer", "default": 90, "x-order": 3},
     "unit": {"type": "string", "enum": ["B", "MB"], "x-order": 4},
     "more": {"type": "object", "x-order": 5}}},
  "results": {"type": "object", "properties": {
     "percent": {"title": "Used %", "description": "Used", "type": "integer", "default": 0, "x-order": 1},
     "state": {"x-order": 2},
     "full": {"type": "boolean", "x-order": 3}}},
  "aggregates": [
     {"function": "average", "field": "percent", "format": "mean %.1f"},
     {"function": "distribution", "field": "percent"},
     {"function": "summary", "field": "state", "format": "%5v is %v"},
     {"function": "boolean_summary", "field": "full", "labels": {"true": "full", "false": "free"}}]}]}`

func module(t *testing.T, name, text string) string {
	t.Helper()
	m, err := action.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(m.Text()), ",", ",\n")
}

func shown(translated ddl.Translated) string {
	return strings.ReplaceAll(string(translated.Module.Text()), ",", ",\n")
}

func TestJSON(t *testing.T) {
	t.Parallel()
	translated, err := ddl.JSON("disk", []byte(disk))
	if err != nil || len(translated.Warnings) > 0 {
		t.Fatal(err, translated.Warnings)
	}
	if diff := cmp.Diff(module(t, "disk", diskModule), shown(translated)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What the two parsers and MCollective itself make of a file: MCollective executes it and prints what it has understood as JSON.
const asked = `require "mcollective"
require "json"
class Regexp
  def to_json(*all) = (options & IGNORECASE == 0 ? source : "(?i)#{source}").to_json(*all)
end
ddl = MCollective::DDL::AgentDDL.new("x", :agent, false)
def ddl.is_function?(_) = true
ddl.instance_eval(File.read(ARGV[0]), ARGV[0], 1)
aggregates = proc { |a| {function: a[:function], args: a[:args], format: a[:format]} }
ddl.entities.each_value { |e| e.delete(:display) if e[:display] == :failed } # the usual one
puts JSON.dump({metadata: ddl.meta, actions: ddl.entities.values.map { |e| e.merge(aggregate: (e[:aggregate] || []).map(&aggregates)) }})
`

func TestRubyIsReadAsMCollectiveReadsIt(t *testing.T) {
	t.Parallel()
	for name, warnings := range map[string]int{"testdata/valve.ddl": 2, "/usr/lib/ruby/vendor_ruby/mcollective/agent/rpcutil.ddl": 0} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		module := strings.TrimSuffix(filepath.Base(name), ".ddl")
		got, err := ddl.Ruby(module, text)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Warnings) != warnings {
			t.Errorf("%s: warnings %v", name, got.Warnings)
		}
		said, err := exec.CommandContext(t.Context(), "ruby", "-e", asked, name).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, err := ddl.JSON(module, said)
		if err != nil || len(want.Warnings) > 0 {
			t.Fatalf("%s: %v, %v\n%s", name, err, want.Warnings, said)
		}
		if diff := cmp.Diff(shown(want), shown(got)); diff != "" {
			t.Errorf("%s (-as MCollective +as here):\n%s", name, diff)
		}
	}
}

// All DDLs of Debian's MCollective: the one of an agent becomes a module, the others are refused with a reason.
func TestTheDDLsOfMCollective(t *testing.T) {
	t.Parallel()
	kinds := map[string]int{}
	err := filepath.WalkDir("/usr/lib/ruby/vendor_ruby/mcollective", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".ddl" {
			return err
		}
		kind := filepath.Base(filepath.Dir(path))
		kinds[kind]++
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		_, err = ddl.Ruby(strings.TrimSuffix(entry.Name(), ".ddl"), text)
		want := map[string]string{"agent": "", "data": "the DDL of a data plugin", "discovery": "the DDL of a discovery plugin"}
		reason, known := want[kind]
		if !known {
			reason = "no actions are described"
		}
		if !strings.Contains(fault.Detail(err), reason) || (err == nil) != (reason == "") {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kinds["agent"] < 1 || kinds["data"] < 4 || kinds["validator"] < 7 {
		t.Errorf("there are %v: this test has lost its eyes", kinds)
	}
}

// act is a DDL with one action, in Ruby, whose third line is given.
func act(line string) string {
	return "metadata :name => \"x\", :description => \"x\"\naction \"a\", :description => \"x\" do\n" + line + "\nend\n"
}

func in(options string) string { return act("  input :i, :optional => false, " + options) }

func TestRefusedRuby(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                             "line 1: no actions are described",
		"metadata 5":                                   "line 1: metadata must be keys and values",
		"metadata\n":                                   "line 1: metadata takes keys",
		"\nsystem('id')":                               "line 2: `system` is no statement of a DDL; Ruby is not executed here",
		"metadata :name => `id`":                       "line 1: '`' is Ruby that is not executed",
		"metadata :name => \"#{1}\"":                   "line 1: #{1} is Ruby that is not executed",
		"metadata :name => File":                       "line 1: `File` is Ruby that is not executed here; write the value itself",
		"metadata :timeout => 10 * 60":                 "line 1: '*' is Ruby",
		"metadata :timeout => 1 if true":               "line 1: , is expected here, not `if`",
		"metadata :a => 1, :a => 2":                    "line 1: the key a is given twice",
		"metadata :name => [1":                         "line 1: ] or a comma is expected here, not the end of the file",
		"metadata :name => \"x":                        "line 1: the text that begins here does not end",
		"\nusage <<X\ntext":                            "line 2: the text that ends with a line X does not end",
		"\n=begin\nx":                                  "line 2: the comment that begins here does not end",
		"metadata :x => <<":                            "line 1: << is Ruby",
		"metadata :x => %x(id)":                        "line 1: % is Ruby",
		"metadata :x => 08":                            `line 1: "08" is no number`,
		"metadata :x => \"\\xff\"":                     "is no escape that is known here",
		"metadata :x => \"\xff\"":                      "line 1: the text is not UTF-8",
		"metadata(:name => \"x\"":                      "line 1: ) is expected here",
		"dataquery :description => 'x' do":             "line 1: this is the DDL of a data plugin",
		"discovery do":                                 "line 1: this is the DDL of a discovery plugin",
		"[].each do |x|\nend":                          "line 1: a loop over nothing",
		"[[1]].each do |x|\nend":                       "line 1: a loop goes over texts",
		"[1].map do |x|\nend":                          "line 1: only .each is known here",
		"['a'].each do |x|\n":                          "line 2: the block of the loop does not end",
		"5":                                            "line 1: a statement begins with a name, not with `5`",
		"action 5":                                     "line 1: action needs a name",
		"action 'a b', :description => 'x'":            "line 1: field action: \"a b\" is no name",
		"action 'a'\naction 'a'":                       "line 2: the action a is described twice",
		act("display 5"):                               "line 3: display takes :ok, :failed or :always",
		act("puts 1"):                                  "line 3: `puts` is no statement of an action",
		act("output 5"):                                "line 3: output needs a name",
		act("output :o\noutput :o"):                    "line 4: the action a has the output o twice",
		act("input :i, 5"):                             "line 3: input i of the action a must have keys",
		act("input :i"):                                "line 3: the input i has no type",
		act("summarize 5"):                             "line 3: do is expected behind summarize",
		act("summarize do\nrun\nend"):                  "line 4: `run` is no statement of summarize",
		act("summarize do\naggregate 5\nend"):          "line 4: aggregate takes a function",
		act("summarize do\naggregate summary\nend"):    "line 4: the aggregate summary needs the name of an output",
		act("summarize do\naggregate sum(:a, 5)\nend"): "line 4: what follows the output of an aggregate",
		in(":type => :banana"):                         "line 3: input i has the type \"banana\"; the types are",
		in(":type => [1]"):                             "line 3: type must be a text, not a list",
		in(":type => :list"):                           "line 3: the input i is a list without the allowed values",
		in(":type => :list, :list => []"):              "line 3: list of the input i must have the allowed values",
		in(":type => :string, :maxlength => -1"):       "line 3: maxlength of the input i must be a number",
		in(":type => :string, :validation => /x/x"):    "line 3: a regular expression with the flag x",
		in(":type => :string, :validation => /#{x}/"):  "line 3: a regular expression with #{}",
		act("  input :i, :optional => 5"):              "line 3: optional must be true or false",
		strings.Repeat("#", 1<<20+1):                   "line 1: the DDL has more than 1048576 bytes",
		"metadata :x => " + strings.Repeat("[", 60):    "line 1: values are nested more than 50 deep",
		"%w[" + strings.Repeat("a ", 3000) +
			"].each do |x|\nend": "line 1: the DDL has more than 2000 statements",
		"['" + strings.Repeat("x", 1<<16) + "'].each do |v|\nusage \"" + strings.Repeat("#{v}", 1000) +
			"\"\nend": "line 2: the texts that are put together have more than 8388608 bytes",
		"['" + strings.Repeat("x", 1<<16) + "'].each do |v|\nusage v" + strings.Repeat(".upcase", 1000) +
			"\nend": "line 2: the texts that are put together have more than 8388608 bytes",
		"['" + strings.Repeat("x", 1<<16) + "'].each do |v|\nusage \"#{v" + strings.Repeat(".upcase", 1000) +
			"}\"\nend": "line 2: the texts that are put together have more than 8388608 bytes",
		"%w[" + strings.Repeat("a ", 900) + "].each do |v|\nusage \"" + strings.Repeat("x", 1<<16) +
			"#{v}\"\nend": "line 2: the texts that are put together have more than 8388608 bytes",
		"usage 'x'" + strings.Repeat(" 'x'", 10_000): "line 1: the texts that are put together have more than 8388608 bytes",
	} {
		_, err := ddl.Ruby("x", []byte(text))
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.200q: %v, want %q", text, err, want)
		}
	}
}

func TestRefusedJSON(t *testing.T) {
	t.Parallel()
	with := func(action string) string {
		return "{\"metadata\": {},\n\"actions\": [{\"action\": \"a\",\n" + action + "}]}"
	}
	for text, want := range map[string]string{
		"":                      "line 1: it is not JSON",
		"{\n\"metadata\": nil}": "line 2: it is not JSON",
		"{}{}":                  "line 1: something comes behind the DDL",
		"[]":                    "line 1: a DDL is an object, not a list",
		"{\n\"actions\": 5}":    "line 2: actions must be a list",
		"{\"metadata\": 5}":     "line 1: metadata must be keys and values",
		"{\n\n\"metadata\": {\"timeout\": \"x\"}}": "line 3: timeout must be a number",
		"{}":                                   "line 1: no actions are described",
		with(`"input": 5`):                     "line 3: input of the action a must be an object",
		with(`"display": 5.5, "read_only": 1`): "line 3: read_only must be true or false",
		with(`"aggregate": 5`):                 "line 3: aggregate of the action a must be a list",
		with(`"aggregate": [{"function": "sum"}]`):              "line 3: an aggregate has a list of args",
		with(`"aggregate": [{"function": "sum", "args": []}]`):  "line 3: the aggregate sum needs the name of an output",
		with(`"input": {"i": {"type": "string", "type": "x"}}`): "line 3: it is not JSON",
		strings.Repeat("[", 60):                                 "line 1: values are nested more than 50 deep",
	} {
		_, err := ddl.JSON("x", []byte(text))
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.200q: %v, want %q", text, err, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		act("display :flatten"):                                                    `line 3: display "flatten" has no equivalent`,
		act("output :o, :x => 1"):                                                  `line 3: output o has the key "x", which has no equivalent`,
		act("summarize do\naggregate median(:o)\nend"):                             "line 4: the aggregate function median has no equivalent",
		act("summarize do\naggregate sum(:none)\nend"):                             `line 4: sum of none is left out: the action a has no such output`,
		act("output :o\nsummarize do\naggregate sum(:o), :format => '%s %s'\nend"): `line 5: the format "%s %s" of the aggregate has no equivalent`,
		in(":type => :string, :validation => /(?=x)/"):                             "line 3: the validation of the input i is left out, it has no equivalent: error parsing regexp (unchecked)",
		in(":type => :string, :validation => :typecheck"):                          `line 3: the validation of the input i is left out: there is no validator "typecheck" here (unchecked)`,
		in(":type => :integer, :default => 'x'"):                                   "line 3: the default of the input i is left out: the input's own rules refuse it",
		act("input :i, :optional => true, :type => :string, :default => 'x'"):      "line 3: the default of the input i is left out: it is optional",
		strings.Replace(act(""), `"x"`, `"Other agent"`, 1):                        `line 1: the DDL calls its plugin "Other agent"`,
		"requires :mcollective => '1'\n" + act(""):                                 "line 1: requires has no equivalent",
	} {
		translated, err := ddl.Ruby("x", []byte(text))
		if err != nil || len(translated.Warnings) != 1 {
			t.Errorf("%q: %v, %v", text, err, translated.Warnings)
			continue
		}
		w := translated.Warnings[0]
		want, unchecked := strings.CutSuffix(want, " (unchecked)")
		if !strings.HasPrefix(w.String(), want) || w.Unchecked != unchecked {
			t.Errorf("%q: %v, want %q", text, w, want)
		}
	}
}

// The formats of aggregates print with Go what they print with Ruby.
func TestFormats(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ function, format, want string }{
		{"average", "%.2f", "2.50"},
		{"average", "mean: %5.1f!", "mean:   2.5!"},
		{"sum", "%05d", "00002"},
		{"sum", "%d%%", "2%"},
		{"sum", "%s", "2.5"},
		{"summary", "%s: %s", "up: 3"},
		{"summary", "%6s = %-3d.", "    up = 3  ."},
	} {
		text := act("output :o\nsummarize do\naggregate " + c.function + "(:o), :format => '" + c.format + "'\nend")
		translated, err := ddl.Ruby("x", []byte(text))
		if err != nil || len(translated.Warnings) > 0 {
			t.Fatal(c, err, translated.Warnings)
		}
		values := []any{2.5}
		if c.function == "summary" {
			values = []any{"up", 3}
		}
		if got := fmt.Sprintf(translated.Module.Actions[0].Aggregates[0].Format, values...); got != c.want {
			t.Errorf("%v: %q", c, got)
		}
	}
}

func FuzzRuby(f *testing.F) {
	valve, err := os.ReadFile("testdata/valve.ddl")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(valve))
	f.Add(in(":type => :string, :validation => /x/i, :default => {'a' => [1, nil]}"))
	f.Fuzz(func(t *testing.T, text string) {
		translated, err := ddl.Ruby("x", []byte(text))
		judge(t, translated, err)
	})
}

func FuzzJSON(f *testing.F) {
	f.Add([]byte(disk))
	f.Fuzz(func(t *testing.T, text []byte) {
		translated, err := ddl.JSON("x", text)
		judge(t, translated, err)
	})
}

func judge(t *testing.T, translated ddl.Translated, err error) {
	t.Helper()
	if err != nil {
		if fault.Of(err) != fault.Invalid || !strings.HasPrefix(fault.Detail(err), "line ") {
			t.Errorf("%v is not Invalid, or has no line", err)
		}
		return
	}
	again, err := action.Parse("x", translated.Module.Text())
	if err != nil || again.Digest() != translated.Module.Digest() {
		t.Errorf("what it becomes is no module: %v\n%s", err, translated.Module.Text())
	}
}
