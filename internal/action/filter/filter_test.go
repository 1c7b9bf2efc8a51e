package filter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
)

var web = filter.Node{
	Name: "web1.example.com",
	Facts: map[string]any{
		"os.family": "Debian", "os.release.full": "22.10", "version": "7.12.1", "empty": "", "nothing": nil, "slashes": "/a/",
		"cores": 8.0, "load": 0.5, "text8": "8", "memory": json.Number("34359738368"), "whole": 8, "virtual": true, "physical": false,
		"roles": []any{"web", "db", 3.0}, "mounts": map[string]any{"/": map[string]any{"size": 1.0}, "/var": nil},
		"puppetversion": "8.4.0", "words": "red hat", "odd name": "x",
	},
	Classes: []string{"Role::Web", "ntp", "settings"},
	Modules: map[string]string{"service": "1.2.0", "puppet": ""},
}

func condition(t *testing.T, f filter.Filter) *filter.Condition {
	t.Helper()
	c, err := filter.Parse(f)
	if err != nil {
		t.Fatalf("%+v: %v (%s)", f, err, fault.Hint(err))
	}
	return c
}

// The operators are those of the reference of MCollective and Choria, each where it holds and where it does not.
func TestFacts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ yes, no []string }{
		{ // = and ==: text is compared character by character
			yes: []string{
				"os.family=Debian", "os.family==Debian", "os.family = Debian", "words=red hat", "virtual=true", "physical=false", "os.release.full=22.10", "slashes==/a/",
			},
			no: []string{
				"os.family=debian", "os.family=Deb", "os.family==/Debian/", "virtual=1", "virtual=yes", "os.release.full=22.1", "text8=8.0", "x=1", "nothing=<nil>",
			},
		},
		{ // a number is compared as one
			yes: []string{"cores=8", "cores==8.0", "cores=+8", "load=0.5", "memory=34359738368", "memory=3.4359738368e10", "whole=8", "whole=8.00"},
			no:  []string{"cores=9", "cores=8x", "load=5", "memory=34359738369", "whole=eight"},
		},
		{ // !=: needs the fact
			yes: []string{"os.family!=RedHat", "os.family != debian", "cores!=9", "cores!=x", "virtual!=false", "os.release.full!=22.1"},
			no:  []string{"os.family!=Debian", "cores!=8", "cores!=8.0", "x!=1", "nothing!=1"},
		},
		{ // =~: somewhere in the text, with or without slashes; = does the same with them
			yes: []string{"os.family=~/^Deb/", "os.family=~^Deb", "os.family=/ian$/", "cores=/8/", "virtual=~tru", "words=/d h/", "os.family=/(?i)DEB/"},
			no:  []string{"os.family=/^deb/", "os.family=~/Red/", "x=/./", "nothing=/./", "empty=/./"},
		},
		{ // !~ and != with a regular expression
			yes: []string{"os.family!~/Red/", "os.family!=/Red/", "empty!~/./"},
			no:  []string{"os.family!~/Deb/", "os.family!=/Deb/", "x!~/a/", "nothing!=/a/"},
		},
		{ // order: numbers, and texts of digits, as numbers
			yes: []string{
				"cores<9", "cores<10", "cores<=8", "cores=<8", "cores>7", "cores>=8", "cores=>8", "text8<10", "text8>=8.0", "load<1", "memory>34359738367",
				"os.release.full>22.09", "cores > 7.5", "cores>-1",
			},
			no: []string{"cores<8", "cores>8", "cores>10", "text8>10", "os.release.full>22.9", "x<1", "x>1", "x<=1", "x>=1", "nothing<1"},
		},
		{ // else as text
			yes: []string{"os.family<E", "os.family>=Debian", "version<7.9.0", "cores<eight", "words>red"},
			no:  []string{"os.family>E", "version>7.9.0", "cores>eight"},
		},
		{ // an element of a list, a key of a structure
			yes: []string{"roles=web", "roles!=web", "roles=/^d/", "roles=3", "roles>=3", "mounts=/", "mounts=/var", "mounts=/^.var/"},
			no:  []string{"roles=x", "roles>x", "roles=/x/", "mounts=size"},
		},
		{
			yes: []string{"empty<a"}, no: []string{"empty=x", "empty>a"},
		},
	} {
		for _, text := range slices.Concat(c.yes, c.no) {
			want := filter.No
			if slices.Contains(c.yes, text) {
				want = filter.Yes
			}
			if got := condition(t, filter.Filter{Facts: []string{text}}).Judge(web); got.Holds != want {
				t.Errorf("%s: got %s, want %s (%s)", text, got.Holds, want, got.Parts[0].Why)
			}
			if strings.ContainsAny(text, " ") {
				continue
			}
			for _, f := range []filter.Filter{{Words: []string{text}}, {Select: fmt.Sprintf("with(%q)", text)}} {
				if got := condition(t, f).Judge(web); got.Holds != want {
					t.Errorf("%+v: got %s, want %s", f, got.Holds, want)
				}
			}
		}
	}
}

func TestClassesModulesAndNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		f    filter.Filter
		want filter.Truth
		why  string // of the last part
	}{
		{filter.Filter{}, filter.Yes, ""},
		{filter.Filter{Classes: []string{"role::web"}}, filter.Yes, "the class role::web is in its catalog"},
		{filter.Filter{Classes: []string{"Role::Web", "::ntp"}}, filter.Yes, "the class ntp is in its catalog"},
		{filter.Filter{Classes: []string{"role"}}, filter.No, "the class role is not in its catalog"},
		{filter.Filter{Classes: []string{"/^role::/"}}, filter.Yes, "the class role::web in its catalog matches /^role::/"},
		{filter.Filter{Classes: []string{"ntp", "/^db/"}}, filter.No, "no class in its catalog matches /^db/"},
		{filter.Filter{Modules: []string{"service"}}, filter.Yes, "it has the module service 1.2.0"},
		{filter.Filter{Modules: []string{"puppet"}}, filter.Yes, "it has the module puppet"},
		{filter.Filter{Modules: []string{"Service"}}, filter.No, "it does not have the module Service"},
		{filter.Filter{Modules: []string{"/^ser/"}}, filter.Yes, "it has the module service, which matches /^ser/"},
		{filter.Filter{Modules: []string{"/x/"}}, filter.No, "no module that it has matches /x/"},
		{filter.Filter{Names: []string{"db1", "/^web/"}}, filter.Yes, "its name is web1.example.com"},
		{filter.Filter{Names: []string{"web1"}}, filter.No, "its name is web1.example.com"},
		{filter.Filter{Words: []string{"role::web os.family=Debian"}}, filter.Yes, "os.family is \"Debian\""},
		{filter.Filter{Words: []string{"/^role/", "/x=/"}}, filter.No, "no class in its catalog matches /x=/"},
		{filter.Filter{Words: []string{"service"}}, filter.No, "the class service is not in its catalog"},
		{filter.Filter{
			Facts: []string{"os.family=Debian"}, Classes: []string{"ntp"}, Names: []string{"/web/"}, Select: `name == "x"`,
		}, filter.No, "its name is web1.example.com"},
		{filter.Filter{Facts: []string{"x=1"}, Select: `file("/x").present`}, filter.No, `file("/x") must be asked of the node`},
		{filter.Filter{Facts: []string{"cores=8"}, Select: `file("/x").present`}, filter.Unknown, `file("/x") must be asked of the node`},
	} {
		got := condition(t, c.f).Judge(web)
		if got.Holds != c.want {
			t.Errorf("%+v: got %s, want %s", c.f, got.Holds, c.want)
		}
		if n := len(got.Parts); n > 0 && got.Parts[n-1].Why != c.why {
			t.Errorf("%+v: got %q, want %q", c.f, got.Parts[n-1].Why, c.why)
		}
	}
}

func TestExpressions(t *testing.T) {
	t.Parallel()
	answered := web
	answered.Data = map[filter.Query]filter.Answer{
		{Source: "file", Query: "/etc/hosts"}:       {Fields: map[string]any{"present": true, "size": 120.0, "md5": "9f00", "mode": "0644"}},
		{Source: "file", Query: "/none"}:            {Fields: map[string]any{"present": false}},
		{Source: "file", Query: "/secret"}:          {Problem: "permission denied"},
		{Source: "file", Query: "/odd"}:             {Fields: map[string]any{"size": "big"}},
		{Source: "puppet"}:                          {Fields: map[string]any{"enabled": true, "since_lastrun": json.Number("1900")}},
		{Source: "resource", Query: "File[/x]"}:     {Fields: map[string]any{"managed": true}},
		{Source: "process", Query: "^/usr/sbin/ng"}: {Fields: map[string]any{"count": 2}},
	}
	for _, c := range []struct {
		text string
		want filter.Truth
		why  string // of the last part
	}{
		{`fact("os.family") == "Debian"`, filter.Yes, `os.family is "Debian"`},
		{`facts.os.family == "Debian" && facts["os"]["family"] != "x"`, filter.Yes, `os.family is "Debian"`},
		{`fact("os").family == "Debian"`, filter.Yes, `os.family is "Debian"`},
		{`fact("cores") > 7 and fact("cores") == fact("whole")`, filter.Yes, "cores is 8; whole is 8"},
		{`fact("cores") == "8"`, filter.No, "cores is 8"},
		{`int(fact("text8")) > 7`, filter.Yes, `text8 is "8"`},
		{`fact("memory") > 1000`, filter.Yes, "memory is 34359738368"},
		{`fact("odd name") == "x"`, filter.Yes, `odd name is "x"`},
		{`fact("virtual")`, filter.Yes, "virtual is true"},
		{`not fact("physical")`, filter.Yes, "physical is false"},
		{`fact("os.family")`, filter.No, `it cannot be computed: os.family is "Debian"; the result is neither true nor false`},
		// What is not there.
		{`fact("x") == 1`, filter.No, "it has no fact x"},
		{`not fact("x") == 1`, filter.Yes, "it has no fact x"},
		{`not (fact("x") == 1)`, filter.Yes, "it has no fact x"},
		{`fact("x") != 1`, filter.Yes, "it has no fact x"},
		{`fact("x") == nil`, filter.Yes, "it has no fact x"},
		{`(fact("x") ?? 3) > 2`, filter.Yes, "it has no fact x"},
		{`fact("x") > 1`, filter.No, "it cannot be computed: it has no fact x"},
		{`not fact("x") > 1`, filter.No, "it cannot be computed: it has no fact x"},
		{`not not fact("x") > 1`, filter.No, "it cannot be computed: it has no fact x"},
		{`fact("x") matches "a"`, filter.No, "it has no fact x"},
		{`not fact("x") matches "a"`, filter.Yes, "it has no fact x"},
		{`not fact("x") contains "a" and not fact("x") startsWith "a" and not fact("x") endsWith "a"`, filter.Yes, "it has no fact x"},
		{`not fact("cores") matches "a"`, filter.No, "it cannot be computed: cores is 8; it takes a text there"},
		{`fact("x")`, filter.No, "it cannot be computed: it has no fact x"},
		{`not fact("x")`, filter.No, "it cannot be computed: it has no fact x"},
		{`fact("x") > 1 or class("ntp")`, filter.Yes, "the class ntp is in its catalog"},
		{`not (fact("x") > 1 and class("db"))`, filter.Yes, "the class db is not in its catalog"},
		{`with("x=1")`, filter.No, "it has no fact x"},
		{`not with("x=1")`, filter.Yes, "it has no fact x"},
		{`fact("os.family") > 1`, filter.No, `it cannot be computed: os.family is "Debian"; invalid operation: a text > a number`},
		// Not binds less tightly than comparisons.
		{`not fact("os.family") == "Debian" or not "a" in ["b"]`, filter.Yes, "it is the same for every node"},
		{`!fact("os.family") startsWith "Red"`, filter.Yes, `os.family is "Debian"`},
		{`not not fact("cores") == 8`, filter.Yes, "cores is 8"},
		{`not fact("virtual") == false`, filter.Yes, "virtual is true"},
		// Functions and variables.
		{`class("role::web") and class("/ntp/") and not class("db")`, filter.Yes, "the class db is not in its catalog"},
		{`module("service") and not module("/^x/")`, filter.Yes, "no module that it has matches /^x/"},
		{`name matches "^web" and name endsWith ".com"`, filter.Yes, "its name is web1.example.com"},
		{`with("service") and with("ntp") and with("/^ser/")`, filter.Yes, "it has the module service, which matches /^ser/"},
		{`with("disk")`, filter.No, "the class disk is not in its catalog and it does not have the module disk"},
		{`"role::web" in classes and "puppet" in agents`, filter.Yes, "the number of its modules is 2"},
		{`any(classes, # startsWith "role::")`, filter.Yes, "the number of classes in its catalog is 3"},
		{`include(fact("roles"), "web") and include(fact("roles"), 3) and include(classes, "ntp")`, filter.Yes, "the number of classes in its catalog is 3"},
		{`include(fact("cores"), 8)`, filter.No, "it cannot be computed: cores is 8; include takes a list, not 8"},
		{`semver(fact("puppetversion"), ">= 8.0, < 9")`, filter.Yes, `puppetversion is "8.4.0"`},
		{`semver(fact("puppetversion"), "~7.1 || ^9")`, filter.No, `puppetversion is "8.4.0"`},
		{`semver(fact("os.family"), ">= 8.0")`, filter.No, "it cannot be computed: os.family is \"Debian\"; \"Debian\" is not a version"},
		{`len(fact("roles")) == 3 ? class("ntp") : false`, filter.Yes, "roles is a list of 3; the class ntp is in its catalog"},
		{`fact("cores") % 0 == 1`, filter.No, "it cannot be computed: cores is 8; invalid operation: a number % a number"},
		// Data.
		{`file("/etc/hosts").present and fstat("/etc/hosts").size > 100 and fact("cores") == 8`, filter.Yes, "cores is 8"},
		{`file("/etc/hosts").md5 matches "^9f"`, filter.Yes, `file("/etc/hosts").md5 is "9f00"`},
		{`file("/none").md5 == "9f"`, filter.No, `file("/none").md5 is not there`},
		{`file("/none").size > 1`, filter.No, `it cannot be computed: file("/none").size is not there`},
		{`not file("/none").present`, filter.Yes, `file("/none").present is false`},
		{`file("/secret").size > 1`, filter.No, `the node could not answer file("/secret"): permission denied`},
		{`not (file("/secret").size > 1)`, filter.No, `the node could not answer file("/secret"): permission denied`},
		{`file("/secret").size > 1 or fact("cores") == 8`, filter.Yes, "cores is 8"},
		{`file("/odd").size > 1`, filter.No, `the node answered file("/odd").size with "big", which is no number`},
		{`file("/later").present`, filter.Unknown, `file("/later") must be asked of the node`},
		{`not file("/later").present`, filter.Unknown, `file("/later") must be asked of the node`},
		{`file("/later").present or class("ntp")`, filter.Yes, "the class ntp is in its catalog"},
		{`not (file("/later").present and class("db"))`, filter.Yes, "the class db is not in its catalog"},
		{`file("/later").present and file("/none").present`, filter.No, `file("/none").present is false`},
		{`file("/later").size == fact("cores") or service("x").status == "running"`, filter.Unknown, `file("/later") must be asked of the node; service("x") must be asked of the node`},
		{`puppet().enabled and puppet().since_lastrun > 1800`, filter.Yes, "puppet().since_lastrun is 1900"},
		{`resource("file[/x]").managed`, filter.Yes, `resource("File[/x]").managed is true`},
		{`process("^/usr/sbin/ng")?.count == 2`, filter.Yes, `process("^/usr/sbin/ng").count is 2`},
	} {
		got := condition(t, filter.Filter{Select: c.text}).Judge(answered)
		if got.Holds != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got.Holds, c.want)
		}
		if last := got.Parts[len(got.Parts)-1]; last.Why != c.why {
			t.Errorf("%s: got %q, want %q", c.text, last.Why, c.why)
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", filter.MaxBytes)
	for _, c := range []struct {
		f            filter.Filter
		detail, hint string // what they contain
	}{
		{filter.Filter{Facts: []string{"os.family"}}, `field facts: "os.family", character 10: an operator is expected`, "os.family=Debian"},
		{filter.Filter{Facts: []string{"os~x"}}, `character 3: an operator is expected`, ""},
		{filter.Filter{Facts: []string{"=x"}}, `character 1: the name of a fact is expected`, ""},
		{filter.Filter{Facts: []string{"os..x=1"}}, `is not the path of a fact`, ""},
		{filter.Filter{Facts: []string{"os="}}, `character 4: a value is expected behind =`, ""},
		{filter.Filter{Facts: []string{"a b=1"}}, `character 2: the name of a fact has no spaces`, `fact("a name")`},
		{filter.Filter{Facts: []string{"os=/(/"}}, `character 5: the regular expression cannot be read: missing closing ) "("`, "RE2"},
		{filter.Filter{Facts: []string{"os=~/(?=x)/"}}, `character 6: the regular expression cannot be read`, "look-around"},
		{filter.Filter{Facts: []string{""}}, "field facts: it is empty", "os.family=Debian"},
		{filter.Filter{Facts: []string{"a=\x00"}}, "character 3: there is a control character", ""},
		{filter.Filter{Facts: []string{"a=\xff"}}, "it is not UTF-8", ""},
		{filter.Filter{Facts: []string{"a=" + long}}, "it has 4098 bytes, and at most 4096 may be", ""},
		{filter.Filter{Facts: []string{strings.Repeat("a", 600) + "=1"}}, "at most 512 bytes", ""},
		{filter.Filter{Facts: slices.Repeat([]string{"a=1"}, 101)}, "more than 100 conditions", ""},
		{filter.Filter{Words: []string{strings.Repeat("a ", 101)}}, "more than 100 conditions", ""},
		{filter.Filter{Words: []string{" "}}, "field words: it is empty", "role::web"},
		{filter.Filter{Classes: []string{"role web"}}, `field classes: "role web", character 5: " web" cannot be in the name of a class`, ""},
		{filter.Filter{Classes: []string{"/web"}}, "a regular expression ends with /", "/^web/"},
		{filter.Filter{Classes: []string{"//"}}, "the regular expression is empty", ""},
		{filter.Filter{Modules: []string{"a/b"}}, "cannot be in the name of a module", ""},
		{filter.Filter{Names: []string{"Web1"}}, "field names: \"Web1\", character 1: ", "web1.example.com"},
		{filter.Filter{Names: []string{"/[/"}}, "missing closing ]", ""},
		{filter.Filter{Select: " "}, "field select: it is empty", "and class("},
		{filter.Filter{Select: `fact("a"`}, "the expression ends too early", ""},
		{filter.Filter{Select: `fact("a") = 1`}, "field select: `fact(\"a\") = 1`, character 11: unexpected token \"=\"", "with =="},
		{filter.Filter{Select: "fact(\"a\") == 1\nand fcat(\"b\") == 1"}, `line 2, character 5: there is no function "fcat"`, "did you mean fact?"},
		{filter.Filter{Select: `klass("a")`}, `there is no function "klass"`, "did you mean class?"},
		{filter.Filter{Select: `now() > 1`}, `there is no function "now"`, ""},
		{filter.Filter{Select: `nam == "x"`}, `there is no variable "nam"`, "did you mean name?"},
		{filter.Filter{Select: `os == "x"`}, `there is no variable "os"`, `fact("os")`},
		{filter.Filter{Select: `$env == 1`}, `there is no variable "$env"`, ""},
		{filter.Filter{Select: `facts`}, "facts is read with the names of facts that are written out", "facts.os.family"},
		{filter.Filter{Select: `facts[name] == 1`}, "character 7: the name of a member is", "facts.os.family"},
		{filter.Filter{Select: `fact(name) == 1`}, "fact takes one text that is written out", `fact("os.family")`},
		{filter.Filter{Select: `fact("a", "b") == 1`}, "fact takes one text", ""},
		{filter.Filter{Select: `file(name).size > 1`}, "file takes one text that is written out", `file("/etc/hosts").present`},
		{filter.Filter{Select: `file("/x")`}, "file is read by a field", `file("/etc/hosts").present`},
		{filter.Filter{Select: `file("/x").siz > 1`}, `character 12: file has no field "siz"; there are present`, "did you mean size?"},
		{filter.Filter{Select: `file("hosts").size > 1`}, `file takes a path, and "hosts" is none`, ""},
		{filter.Filter{Select: `file().size > 1`}, "file needs its argument, the path", ""},
		{filter.Filter{Select: `puppet("x").enabled`}, "puppet takes no argument", ""},
		{filter.Filter{Select: `process("(").count > 1`}, "missing closing )", ""},
		{filter.Filter{Select: `file("/x").size`}, "is neither true nor false", ""},
		{filter.Filter{Select: `file("/x").size == "a"`}, "is a number, and it is compared with a text", ""},
		{filter.Filter{Select: `file("/x").size.a == 1`}, "has no members", ""},
		{filter.Filter{Select: `name`}, "name is neither true nor false", ""},
		{filter.Filter{Select: `1`}, "a condition is true or false, and this is a number", ""},
		{filter.Filter{Select: `fact("a") and "b"`}, "character 15: a condition is true or false, and this is a text", ""},
		{filter.Filter{Select: `name > 1`}, "character 6: invalid operation", ""},
		{filter.Filter{Select: `fact("a") matches "("`}, "missing closing )", ""},
		{filter.Filter{Select: `semver(fact("a"), "no")`}, "improper constraint", ">= 8.0"},
		{filter.Filter{Select: `semver(fact("a"), name)`}, "is a text that is written out", ""},
		{filter.Filter{Select: `semver(fact("a"))`}, "semver takes two arguments", ""},
		{filter.Filter{Select: `any(classes, any(agents, true))`}, "cannot stand inside of each other", ""},
		{filter.Filter{Select: `let x = 1; x == 1`}, "let and ; are not allowed", ""},
		{filter.Filter{Select: `{"a": 1} == 1`}, "maps, slices and bytes are not allowed", ""},
		{filter.Filter{Select: `1..3 == 1`}, "the operator .. is not allowed here", ""},
		{filter.Filter{Select: `2 ** 3 == 1`}, "the operator ** is not allowed here", ""},
		{filter.Filter{Select: `name.upper() == "X"`}, "values have no functions", ""},
		{filter.Filter{Select: strings.Repeat("1+", 400) + "1 == 1"}, "the expression has more than 300 parts", ""},
		{filter.Filter{Select: manyQueries(21)}, "it asks nodes 21 questions, and at most 20 may be", ""},
	} {
		_, err := filter.Parse(c.f)
		text := fmt.Sprintf("%.200v", c.f)
		if err == nil {
			t.Errorf("%s: no error", text)
			continue
		}
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Detail(err), c.detail) || !strings.Contains(fault.Hint(err), c.hint) {
			t.Errorf("%s: got %q (%q), want %q (%q)", text, fault.Detail(err), fault.Hint(err), c.detail, c.hint)
		}
	}
}

func manyQueries(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, fmt.Sprintf(`file("/%d").present`, i))
	}
	return strings.Join(parts, " or ")
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	got := condition(t, filter.Filter{
		Facts: []string{"os.family=Debian", "mounts[0].size>1"}, Words: []string{"os.family=x"},
		Select: `fact("cores") > 1 and with("disk") and file("/b").size > file("/a").size and fstat("/a").present and name == "x"`,
	}).Needs()
	want := filter.Needs{
		Facts: []string{"cores", "mounts.0.size", "os.family"}, Classes: true, Modules: true,
		Data: []filter.Query{{Source: "file", Query: "/a"}, {Source: "file", Query: "/b"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	if got := condition(t, filter.Filter{Names: []string{"web1"}}).Needs(); got.Classes || got.Modules || len(got.Facts)+len(got.Data) > 0 {
		t.Errorf("a name needs nothing, got %+v", got)
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	facts := map[string]any{
		"os": map[string]any{"family": "Debian", "release": map[string]any{"major": "12"}}, "a.b": map[string]any{"c.d": 1.0},
		"list": []any{"x", map[string]any{"y": 2.0}}, "nothing": nil,
	}
	for path, want := range map[string]any{
		"os.family": "Debian", "os.release.major": "12", "a.b.c.d": 1.0, "list.0": "x", "list.1.y": 2.0, "nothing": nil,
	} {
		if got, ok := filter.At(facts, path); !ok || got != want {
			t.Errorf("%s: got %v, %v", path, got, ok)
		}
	}
	for _, path := range []string{"os.famil", "os.family.x", "list.2", "list.-1", "list.x", "nothing.x", "c"} {
		if got, ok := filter.At(facts, path); ok {
			t.Errorf("%s: got %v", path, got)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	got := filter.Explain(condition(t, filter.Filter{
		Facts: []string{"os.family=Debian", "cores>=4", "os.release.full!=/^9/"}, Classes: []string{"role::web", "/^x/"}, Modules: []string{"service"},
		Names: []string{"web1", "/^db/"}, Words: []string{"ntp"},
		Select: `(fact("a.b") == 1 or not (class("x") and with("y"))) and file("/etc/hosts").md5 matches "^9f" and puppet().enabled and name in ["a"]`,
	}))
	want := `A node matches if all of this is true:
- the fact os.family is "Debian"
- the fact cores is at least "4"
- the fact os.release.full does not match /^9/
- the class role::web is in its catalog
- a class in its catalog matches /^x/
- it has the module service
- its name is web1 or matches /^db/
- the class ntp is in its catalog
- at least one of this is true:
  - the fact a.b is 1
  - this is not true:
    - all of this is true:
      - the class x is in its catalog
      - y is a class in its catalog or a module that it has
- file("/etc/hosts").md5 matches "^9f"
- puppet().enabled is true
- its name is one of ["a"]
This is asked of the nodes themselves:
- file("/etc/hosts")
- puppet()
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := filter.Explain(condition(t, filter.Filter{})); got != "Every node matches.\n" {
		t.Errorf("got %q", got)
	}
}

// Parts are the conditions as they were given; only an expression of several parts is written anew.
func TestParts(t *testing.T) {
	t.Parallel()
	j := condition(t, filter.Filter{
		Facts: []string{" cores = 8 "}, Names: []string{"a", "/b/"}, Words: []string{"ntp  x=1"}, Select: ` (fact('cores')==8) and not(class("x")) `,
	}).Judge(web)
	var got []string
	for _, p := range j.Parts {
		got = append(got, p.Flag+": "+p.Text)
	}
	want := []string{"facts:  cores = 8 ", "names: a, /b/", "words: ntp", "words: x=1", `select: fact("cores") == 8`, `select: not class("x")`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(j.Parts[2])
	if err != nil || string(text) != `{"flag":"words","text":"ntp","holds":"yes","why":"the class ntp is in its catalog"}` {
		t.Errorf("got %s, %v", text, err)
	}
	var truth filter.Truth
	if err := truth.UnmarshalText([]byte("unknown")); err != nil || truth != filter.Unknown {
		t.Errorf("got %v, %v", truth, err)
	}
	if err := truth.UnmarshalText([]byte("maybe")); !fault.Is(err, fault.Invalid) {
		t.Errorf("got %v", err)
	}
}

// The example of each source, with each of its fields, is a condition.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, s := range filter.Sources() {
		call := s.Name + "()"
		if s.Argument.Name != "" {
			call = fmt.Sprintf("%s(%q)", s.Name, s.Argument.Example)
		}
		if s.Summary == "" || len(s.Fields) == 0 {
			t.Errorf("%s has no summary or no fields", s.Name)
		}
		for _, f := range s.Fields {
			if f.Summary == "" || f.Unit != "" && f.Type != filter.Number {
				t.Errorf("%s.%s: %+v", s.Name, f.Name, f)
			}
			text := call + "." + f.Name
			switch f.Type {
			case filter.Text:
				text += ` == "x"`
			case filter.Number:
				text += " > 1"
			case filter.Boolean:
			}
			c := condition(t, filter.Filter{Select: text})
			want := []filter.Query{{Source: s.Name, Query: s.Argument.Example}}
			if diff := cmp.Diff(want, c.Needs().Data); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
			if f.Type.String() == "" {
				t.Errorf("%s has a type without a name", text)
			}
		}
	}
}

func TestAConditionIsSharedByGoroutines(t *testing.T) {
	t.Parallel()
	c := condition(t, filter.Filter{
		Facts:  []string{"os.family=/Deb/"},
		Select: `semver(fact("puppetversion"), ">= 8") and name matches "web" and any(classes, # == "ntp") and include(fact("roles"), "db")`,
	})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if got := c.Judge(web); got.Holds != filter.Yes {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
	group.Wait()
}
