package datatype

import (
	"encoding/json"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expressions are compared with Puppet's own answers; "!" marks those that both refuse.
var expressions = []string{
	"Any", "Undef", "Data", "RichData", "Scalar", "ScalarData", "Numeric", "Iterable", "Default", "Timestamp", "Binary", "Regexp",
	"Type[String]", "Callable[String]", "String", "String[1]", "String[default, 3]", "String[2, 3]", "String[Integer[1, 2]]",
	"Integer", "Integer[0]", "Integer[default, 10]", "Integer[-3, 0x10]", "Integer[017]", "Integer[9223372036854775807]",
	"Float", "Float[1]", "Float[1e0, 2.5E0]", "Float[default, -0.5]",
	"Boolean", "Boolean[true]", "Boolean[false]",
	"Enum", "Enum[a]", `Enum['a', "b c"]`, "! Enum['it''s']",
	`Enum['it\'s', "tab\t"]`,
	"Pattern", "Pattern[/a/]", `Pattern[/\Aab\z/, 'c+']`, `Pattern[/^b$/]`, `Pattern[/a.b/]`, `Pattern[/(?m:a.b)/]`, `Pattern[/\A\h+\Z/]`,
	`Pattern[/[[:upper:]]/]`, `Pattern[/\/etc/]`, `Pattern[/\A(?!ab).*\z/]`, `Pattern[/\A[^\h]+\z/]`, `Pattern[/(?i:AB)/]`,
	"Optional", "Optional[String]", "Optional['a']", "NotUndef", "NotUndef[Integer]", "NotUndef['a']",
	"Variant", "Variant[String, Integer]", "Variant[Array[String], Undef]",
	"Array", "Array[String]", "Array[Integer, 1]", "Array[Any, default, 2]", "Array[Any, Integer[1, 2]]", "Array[Array[Integer]]",
	"Hash", "Hash[String, Integer]", "Hash[Enum[a], Any]", "Hash[String, Any, 1, 1]", "Hash[Integer, Any]",
	"Collection", "Collection[1]", "Collection[1, 2]",
	"Tuple", "Tuple[String]", "Tuple[String, Integer]", "Tuple[Integer, 1, 3]", "Tuple[String, Integer, 1, default]", "Tuple[Integer, 0, default]",
	"Tuple[Integer, default, 2]",
	"Struct", "Struct[{a => Integer}]", "Struct[{'a' => Optional[Integer], b => String}]", "Struct[{Optional[a] => Integer, NotUndef['b'] => Any}]",
	"Struct[a => Integer]", "Struct[{a => Struct[{b => Integer}]}]", "Struct[{NotUndef[a] => Optional[Integer]}]", "Struct[{a => Any}]",
	"! Enum[]", "! Integer[5, 1]", "! Integer['1']", "! Array[[String]]", "! string", "! Optional[String, Integer]", "! Variant[String, undef]", "! Enum[1]",
	"! Boolean[1]", "! Data[1]",
	"! Hash[String]", "! String[1][2]", "! Integer[-1, +2]", "! String[", "! Pattern[/a]", "! Struct[{a}]", "! Struct[{1 => String}]", "! ",
	"! Array[String] x", "! Pattern[/(/]",
}

var values = []string{
	`null`, `true`, `false`, `0`, `1`, `-3`, `15`, `16`, `9223372036854775807`, `9223372036854775808`, `1.0`, `2.5`, `-1e0`, `1E2`,
	`""`, `"a"`, `"b c"`, `"it's"`, `"tab\t"`, `"abc"`, `"ab"`, `"x\nb\ny"`, `"a\nb"`, `"ÄB"`, `"/etc"`, `"c0ffee\n"`, `"1"`, `"zz"`,
	`[]`, `["a"]`, `[1]`, `[1, 2, 3]`, `["a", 1]`, `["a", 1, 2]`, `[null]`, `[[1], []]`, `[["a"]]`,
	`{}`, `{"a": 1}`, `{"a": "x"}`, `{"a": null}`, `{"a": null, "b": "x"}`, `{"b": "x"}`, `{"a": 1, "b": 2}`, `{"a": {"b": 1}}`,
	`{"a": {"b": "1"}}`, `{"a": 1, "c": 1}`,
}

// TestLikePuppet asks the real Puppet whether each value is an instance of each
// type, and wants the same answers here.
func TestLikePuppet(t *testing.T) {
	t.Parallel()
	puppet := askPuppet(t)
	for i, expression := range expressions {
		text, wrong := strings.CutPrefix(expression, "! ")
		parsed, err := Parse(text)
		if wrong != (puppet[i] == nil) || wrong != (err != nil) {
			t.Errorf("%q: we say %v; Puppet refuses it: %t", text, err, puppet[i] == nil)
			continue
		}
		if !wrong {
			compareAnswers(t, parsed, puppet[i])
		}
	}
}

func compareAnswers(t *testing.T, parsed *Type, want []bool) {
	t.Helper()
	again, err := Parse(parsed.String())
	if err != nil {
		t.Errorf("%s cannot be read back: %v", parsed, err)
		return
	}
	for i, value := range values {
		if got := parsed.Check(decode(t, value), nil) == nil; got != want[i] {
			t.Errorf("%s of %s: got %t, Puppet says %t", parsed, value, got, want[i])
		}
		if got := again.Check(decode(t, value), nil) == nil; got != want[i] {
			t.Errorf("%s, written and read again, of %s: got %t, Puppet says %t", again, value, got, want[i])
		}
	}
}

const puppetScript = `
require 'json'
require 'puppet'
asked = JSON.parse($stdin.read)
parser = Puppet::Pops::Types::TypeParser.singleton
values = asked['values'].map { |text| JSON.parse(text) }
answers = asked['types'].map do |text|
  begin
    type = parser.parse(text.delete_prefix('! '))
    values.map { |value| type.instance?(value) }
  rescue Puppet::Error, ArgumentError, RegexpError
    nil
  end
end
puts JSON.generate(answers)
`

// askPuppet returns a list of answers for each expression; nil for what Puppet refuses.
func askPuppet(t *testing.T) [][]bool {
	t.Helper()
	asked, err := json.Marshal(map[string]any{"types": expressions, "values": values})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "ruby", "-e", puppetScript)
	command.Stdin = strings.NewReader(string(asked))
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("ask Puppet: %v; it comes with: make test-deps\n%s", err, stderr.String())
	}
	var answers [][]bool
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	return answers
}

func decode(t *testing.T, text string) (value any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestMismatchSaysWhere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expression, value, want string }{
		{"Integer[1, 9]", `12`, "expects Integer[1, 9], got Integer"},
		{"String[1]", `""`, "expects String[1], got String of 0"},
		{"Enum[present, absent]", `"secret"`, "expects Enum['present', 'absent'], got String"},
		{"Struct[{servers => Array[Struct[{port => Integer}]]}]", `{"servers": [{"port": 1}, {"port": "1"}]}`, "servers[1].port: expects Integer, got String"},
		{"Struct[{a => Integer}]", `{}`, "a: expects Integer, got nothing: the key is required"},
		{"Struct[{a => Integer, b => Optional[String]}]", `{"a": 1, "z": 1}`, `expects no other keys than a, b, got the key "z"`},
		{"Hash[Pattern[/^[a-z]+$/], Integer]", `{"A": 1}`, `expects keys that are Pattern[/^[a-z]+$/], got the key "A"`},
		{"Tuple[String, Integer]", `["a", "b"]`, "[1]: expects Integer, got String"},
		{"Array[Array[Integer]]", `[[], ["a"]]`, "[1][0]: expects Integer, got String"},
		{"Boolean", `[1, 2]`, "expects Boolean, got Array of 2"},
	} {
		parsed, err := Parse(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		err = parsed.Check(decode(t, c.value), nil)
		if diff := cmp.Diff(c.want, errorText(err)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.expression, c.value, diff)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestSyntaxErrorsSayWhere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "at character 1: a type's name, such as String, is expected, not the end",
		"Array[String":           `at character 13: "," is expected, not the end`,
		"Array[String] String":   `at character 15: the end is expected, not "String"`,
		"Array[$x]":              `at character 7: '$' does not belong into a type`,
		"Integer[5, 1]":          "at character 1: Integer: the first bound is above the second",
		"Array[Integer[5, 'a']]": "at character 18: a bound of Integer is a number of its kind or default",
		"Init[String]":           "at character 1: the type Init cannot be checked here",
		"Enum['a":                "at character 6: the string does not end",
		"Data[1]":                "at character 1: Data takes no arguments",
	} {
		_, err := Parse(text)
		if diff := cmp.Diff(want, errorText(err)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

func TestAliases(t *testing.T) {
	t.Parallel()
	sources := map[string]string{
		"Web::Port":  "# @summary a port\ntype Web::Port = Integer[1, 65535] # for TCP\n",
		"Web::Ports": "type Web::Ports = Variant[Web::Port, Array[Web::Port, 1]]",
		"Web::Tree":  "type Web::Tree = Struct[{port => Web::Port, Optional[below] => Array[Web::Tree]}]",
		"Web::Loop":  "type Web::Loop = Variant[String, Web::Loop]",
	}
	missing := errors.New("not defined")
	resolve := func(name string) (*Type, error) {
		source, ok := sources[name]
		if !ok {
			return nil, missing
		}
		found, parsed, err := ParseAlias(source)
		if found != name {
			t.Errorf("the source of %s defines %s", name, found)
		}
		return parsed, err
	}
	check := func(expression, value string) error {
		parsed, err := Parse(expression)
		if err != nil {
			t.Fatal(err)
		}
		return parsed.Check(decode(t, value), resolve)
	}
	for value, want := range map[string]string{
		`80`:           "",
		`[80, 443]`:    "",
		`[80, 100000]`: "expects Web::Ports = Variant[Web::Port, Array[Web::Port, 1]], got Array of 2",
	} {
		if got := errorText(check("Web::Ports", value)); got != want {
			t.Errorf("Web::Ports of %s: got %q, want %q", value, got, want)
		}
	}
	if err := check("Web::Tree", `{"port": 1, "below": [{"port": 2, "below": []}]}`); err != nil {
		t.Error(err)
	}
	if got, want := errorText(check("Web::Tree", `{"port": 1, "below": [{"port": 0}]}`)),
		"below[0].port: expects Web::Port = Integer[1, 65535], got Integer"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := check("Web::Loop", `1`); err == nil || errors.As(err, new(*Mismatch)) {
		t.Errorf("a type that refers to itself: %v", err)
	}
	if err := check("Array[Web::None]", `[1]`); !errors.Is(err, missing) {
		t.Errorf("an unknown alias: %v", err)
	}
	for source, want := range map[string]string{
		"class a {}":                  `at character 1: "type" is expected, not "class"`,
		"type A[B] = String":          "at character 1: A has arguments, an alias has none",
		"type A = String; type B = C": "at character 16: ';' does not belong into a type",
	} {
		if _, _, err := ParseAlias(source); errorText(err) != want {
			t.Errorf("%s: got %v, want %s", source, err, want)
		}
	}
}

// A pattern that can be made to run for ages is stopped.
func TestSlowPatternsAreStopped(t *testing.T) {
	t.Parallel()
	parsed, err := Parse(`Pattern[/\A(a+)+\z/]`)
	if err != nil {
		t.Fatal(err)
	}
	err = parsed.Check(strings.Repeat("a", 60)+"b", nil)
	if err == nil || errors.As(err, new(*Mismatch)) || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}

func TestSensitive(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Sensitive[String]": true, "Optional[Sensitive[String[1]]]": true, "Sensitive": true, "String": false, "Array[String]": false,
	} {
		parsed, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if parsed.Sensitive() != want {
			t.Errorf("%s: sensitive is %t", text, !want)
		}
	}
}

// Whatever is read can be written and read again, and nothing makes a check panic.
func FuzzParse(f *testing.F) {
	for _, expression := range expressions {
		f.Add(strings.TrimPrefix(expression, "! "), values[0])
	}
	for _, value := range values {
		f.Add("Variant[Array[Integer], Struct[{a => String}]]", value)
	}
	f.Fuzz(func(t *testing.T, text, value string) {
		parsed, err := Parse(text)
		if err != nil {
			return
		}
		written := parsed.String()
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("%q is written as %q, which cannot be read: %v", text, written, err)
		}
		if again.String() != written {
			t.Fatalf("%q is written as %q, then as %q", text, written, again)
		}
		var decoded any
		d := json.NewDecoder(strings.NewReader(value))
		d.UseNumber()
		if d.Decode(&decoded) == nil {
			one, two := parsed.Check(decoded, nil), again.Check(decoded, nil)
			if (one == nil) != (two == nil) {
				t.Fatalf("%q of %s: %v, written and read again: %v", text, value, one, two)
			}
		}
	})
}
