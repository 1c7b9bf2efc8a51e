package filter_test

import (
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/fault"
)

func TestFromMCollective(t *testing.T) {
	t.Parallel()
	node := web
	node.Data = map[filter.Query]filter.Answer{
		{Source: "file", Query: "/etc/hosts"}: {Fields: map[string]any{"present": true, "size": 120.0, "md5": "9f00", "mtime": 1e9, "age": 60.0}},
		{Source: "file", Query: "/none"}:      {Fields: map[string]any{"present": false}},
		{Source: "puppet"}:                    {Fields: map[string]any{"enabled": true, "since_lastrun": 1900.0}},
		{Source: "service", Query: "sshd"}:    {Fields: map[string]any{"status": "running"}},
		{Source: "resource"}:                  {Fields: map[string]any{"failed_resources": 0.0}},
	}
	for _, c := range []struct {
		text, want string
		holds      filter.Truth
	}{
		{`os.family=Debian and role::web and not /^db/`, `with("os.family=Debian") and class("role::web") and not class("/^db/")`, filter.Yes},
		{`cores>=8`, `with("cores>=8")`, filter.Yes},
		{`cores => 8`, `with("cores>=8")`, filter.Yes},
		{`cores =< 7`, `with("cores<=7")`, filter.No},
		{`os.family != Debian`, `with("os.family!=Debian")`, filter.No},
		{`not x=1`, `not with("x=1")`, filter.Yes},
		{`x!=1`, `with("x!=1")`, filter.No},
		{`!ntp`, `not class("ntp")`, filter.No},
		{`! (ntp)`, `not (class("ntp"))`, filter.No},
		{`not !ntp`, `not not class("ntp")`, filter.Yes},
		{`os.family=/^Deb/`, `with("os.family=/^Deb/")`, filter.Yes},
		{`words='red hat'`, `with("words==red hat")`, filter.Yes},
		{`slashes="/a/"`, `with("slashes==/a/")`, filter.Yes},
		{`os.family=/a b|(Deb)/ and ntp`, `with("os.family=/a b|(Deb)/") and class("ntp")`, filter.Yes},
		{`mounts=/\/var/`, `with("mounts=//var/")`, filter.Yes},
		// and before or, as before
		{`ntp or x=1 and db`, `class("ntp") or with("x=1") and class("db")`, filter.Yes},
		{`(ntp or x=1) and db`, `(class("ntp") or with("x=1")) and class("db")`, filter.No},
		{`not(ntp and(db or x=1))`, `not (class("ntp") and (class("db") or with("x=1")))`, filter.Yes},
		{`notify and order and android`, `class("notify") and class("order") and class("android")`, filter.No},
		// data
		{`fstat('/etc/hosts').md5=/^9f/`, `(file("/etc/hosts").md5 matches "^9f")`, filter.Yes},
		{`fstat("/etc/hosts").md5 != /^9f/`, `(file("/etc/hosts").md5 != nil and not (file("/etc/hosts").md5 matches "^9f"))`, filter.No},
		{`fstat('/none').md5=/^9f/`, `(file("/none").md5 matches "^9f")`, filter.No},
		{`not fstat('/none').md5=/^9f/`, `not (file("/none").md5 matches "^9f")`, filter.Yes},
		{`fstat('/none').md5 != 9f`, `(file("/none").md5 != nil and file("/none").md5 != "9f")`, filter.No},
		{`not fstat('/none').size > 5`, `not (file("/none").size != nil and file("/none").size > 5)`, filter.Yes},
		{`fstat('/etc/hosts').present`, `(file("/etc/hosts").present == true)`, filter.Yes},
		{`fstat('/etc/hosts').present=true and fstat('/none').present=false`, `(file("/etc/hosts").present == true) and (file("/none").present == false)`, filter.Yes},
		{`fstat('/etc/hosts').mtime_seconds=1000000000`, `(file("/etc/hosts").mtime == 1000000000)`, filter.Yes},
		{`fstat('/etc/hosts').mtime_age<=60`, `(file("/etc/hosts").age != nil and file("/etc/hosts").age <= 60)`, filter.Yes},
		{`puppet().since_lastrun > 1800`, `(puppet().since_lastrun != nil and puppet().since_lastrun > 1800)`, filter.Yes},
		{`service('sshd').status=running`, `(service("sshd").status == "running")`, filter.Yes},
		{`resource().failed_resources > 0`, `(resource().failed_resources != nil and resource().failed_resources > 0)`, filter.No},
		{`resource('file[/srv/www]').managed = true`, `(resource("File[/srv/www]").managed == true)`, filter.Unknown},
		{`fact('os.family').value=Debian`, `with("os.family=Debian")`, filter.Yes},
		{`fact('os.family').exists and fact('x').exists=false`, `(fact("os.family") != nil) and (fact("x") == nil)`, filter.Yes},
	} {
		got, err := filter.FromMCollective(c.text)
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v, want %s", c.text, got, err, c.want)
			continue
		}
		if j := condition(t, filter.Filter{Select: got}).Judge(node); j.Holds != c.holds {
			t.Errorf("%s: got %s, want %s: %+v", c.text, j.Holds, c.holds, j.Parts)
		}
	}
}

func TestFromMCollectiveInvalid(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "it is empty",
		"a and":                            "character 6: a statement is expected, and there is the end",
		"a b":                              "character 3: and, or, or the end is expected",
		"and a":                            "", // MCollective's own parser refuses it as well
		"(a":                               "character 1: the parenthesis is not closed",
		"(a or (b)":                        "character 1: the parenthesis is not closed",
		"a)":                               "character 2: the parenthesis was not opened",
		"()":                               "character 2: a statement is expected",
		"not":                              "character 4: a statement is expected",
		"x=":                               "character 3: a value is expected behind =",
		"x='a":                             "character 5: the value ends with '",
		"x=/a":                             "character 3: the regular expression does not end with /",
		"x=/(/":                            "character 4: the regular expression cannot be read",
		"/a":                               "character 1: the regular expression does not end with /",
		"a,b":                              `character 2: ",b" cannot be in the name of a class`,
		"foo('a').b=1":                     `character 1: there is no data "foo"`,
		"agent('puppet').name=x":           `there is no data "agent"`,
		"fstat(/x).size=1":                 "character 7: one text in quotes, or ) is expected",
		"fstat('/x')":                      "character 12: a dot and the name of a field are expected",
		"fstat('/x').foo=1":                `character 13: file has no field "foo"`,
		"fstat('x').size=1":                `character 1: file takes a path`,
		"fstat('/x').size":                 "size is compared with something",
		"fstat('/x').size=big":             "size is a number",
		"fstat('/x').size=/1/":             "only text is matched",
		"fstat('/x').md5>1":                "only numbers are greater or less",
		"fstat('/x').present=yes":          "present is true or false",
		"fact('x').value":                  "an operator and a value are expected",
		"fact('x').foo=1":                  `fact has no field "foo"`,
		"fact('x').exists=1":               "exists is true or false",
		strings.Repeat("a and ", 700):      "bytes",
		strings.Repeat("a or ", 300) + "a": "translated: field select",
		"x=\x01":                           "character 3: there is a control character",
		"fstat('/x').size=9999999999e999":  "translated: field select",
	} {
		_, err := filter.FromMCollective(text)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.40s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzFromMCollective(f *testing.F) {
	for _, seed := range []string{
		`os.family=Debian and role::web and not /^db/ and fstat('/etc/hosts').md5=/^9f/ and fact('a.b').value=1`,
		`! (a or b) and(c)`, `puppet().since_lastrun => 5`, `x='a b' or y!="/q/"`, `resource('File[a]').managed`, `a=/\//`, `fact('x').exists=false`, `not not a`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		out, err := filter.FromMCollective(text)
		if err != nil {
			if !fault.Is(err, fault.Invalid) || fault.Detail(err) == "" {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		c, err := filter.Parse(filter.Filter{Select: out})
		if err != nil {
			t.Fatalf("%q became %q: %v", text, out, err)
		}
		sound(t, c)
	})
}
