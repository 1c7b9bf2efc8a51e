package actionpolicy_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/agent/actionpolicy"
	"github.com/tutti-project/tutti/internal/facts"
	"github.com/tutti-project/tutti/internal/fault"
)

func canonical(t interface{ Fatal(...any) }, text string) []byte {
	values, _, err := facts.Canonical(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

const file = `# who may do what
policy default deny
allow	tutti=ana	*	*	*
allow	/^tutti=op/ dba	status usage	role=db country=mt	*
deny	*	remove	environment=production	*
allow	tutti=dev		remove	*	role::web /^profile::/
allow	tutti=old	status	*
allow  cert=spaces cert=wide  status usage  *  *
allow cert=one status os.release.major>=9 *
`

func TestAllow(t *testing.T) {
	t.Parallel()
	groups, err := actionpolicy.ParseGroups("groups", []byte("# groups\ndba tutti=eve tutti=kim\nempty\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := actionpolicy.Parse("disk.policy", []byte(file), groups)
	if err != nil {
		t.Fatal(err)
	}
	db := canonical(t, `{"role":"db","country":"mt","environment":"production","os":{"release":{"major":"12"}}}`)
	for _, c := range []struct {
		caller, action string
		facts          []byte
		classes        []string
		want           string // why not
	}{
		{"tutti=ana", "anything", nil, nil, ""},
		{"tutti=opa", "status", db, nil, ""},
		{"tutti=eve", "usage", db, nil, ""},
		{"dba", "usage", db, nil, ""},
		{"tutti=opa", "status", canonical(t, `{"role":"db"}`), nil, "no line of disk.policy allows status to tutti=opa"},
		{"tutti=opa", "status", nil, nil, "no line of disk.policy allows status to tutti=opa"},
		{"xtutti=opa", "status", db, nil, "no line of disk.policy allows status to xtutti=opa"},
		{"tutti=dev", "remove", db, []string{"role::web", "profile::nginx"}, "disk.policy line 5 denies remove to tutti=dev"},
		{"tutti=dev", "remove", nil, []string{
			"role::web", "profile::nginx",
		}, "disk.policy line 5 may deny remove to tutti=dev: the node's facts or classes are not known"},
		{"tutti=dev", "remove", canonical(t, `{"environment":"test"}`), []string{"role::web", "profile::nginx"}, ""},
		{"tutti=dev", "remove", canonical(t, `{}`), []string{"role::web"}, "no line of disk.policy allows remove to tutti=dev"},
		{"tutti=dev", "remove", canonical(t, `{}`), nil, "no line of disk.policy allows remove to tutti=dev"},
		{"tutti=old", "status", nil, nil, ""},
		{"cert=wide", "usage", nil, nil, ""},
		{"cert=one", "status", db, nil, ""},
		{"cert=one", "status", canonical(t, `{"os":{"release":{"major":"8"}}}`), nil, "no line of disk.policy allows status to cert=one"},
		{"", "status", db, nil, "no line of disk.policy allows status to "},
	} {
		allowed, why := p.Allow(actionpolicy.Request{Caller: c.caller, Action: c.action, Facts: c.facts, Classes: c.classes})
		if allowed != (c.want == "") || why != c.want {
			t.Errorf("%s %s: %v, %q, want %q", c.caller, c.action, allowed, why, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	all := canonical(t, `{"role":"db","count":4,"virtual":true,"os.family":"flat","os":{"family":"Debian","release":{"major":"12"}},"ips":["1"],"nothing":null,"empty":"","odd/name":"x","v":"0x10"}`)
	for condition, want := range map[string]bool{
		"role=db": true, "role==db": true, "role=DB": false, "role!=web": true, "role!=db": false, "role=~^d": true, "role=/b$/": true,
		"role=/B$/": false, "role==/^d/": true,
		"count=4": true, "count=4.0": true, "count<10": true, "count=<4": true, "count<=3": false, "count>3": true, "count=>4": true, "count>=5": false,
		"virtual=true": true, "os.family=flat": true, "os.release.major>=9": true, "os.release.major<9": false, "os.release=12": false, "os!=x": false,
		"ips!=x": false, "nothing=null": false, "nothing!=x": false, "missing!=x": false, "missing=x": false, "empty!=x": true, "odd/name=x": true,
		"v=16": false, "v=0x10": true, "role<web": true, "role=a=b": false,
	} {
		p, err := actionpolicy.Parse("p", []byte("allow\t*\t*\t"+condition+"\t*\n"), nil)
		if err != nil {
			t.Error(err)
			continue
		}
		if got, why := p.Allow(actionpolicy.Request{Facts: all}); got != want {
			t.Errorf("%s: %v, %s", condition, got, why)
		}
	}
}

func TestRowsThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"allow":                "p line 1: a row must be allow or deny",
		"\n# x\nallow\t*\t*":   "p line 3: a row must be allow or deny",
		"Allow\t*\t*\t*\t*":    "p line 1: a row must be allow or deny",
		"allow\t*\t*\t*\t*\t*": "p line 1: a row must be allow or deny",
		"allow a b status * *": "p line 1: a row must be allow or deny",
		"policy default maybe": "may be there once",
		"policy deny":          "may be there once",
		"policy default deny\npolicy default deny": "p line 2: `policy default allow`",
		"allow\t* a\t*\t*\t*":                      "callers: * stands alone",
		"allow\t*\t*\trole\t*":                     `facts: "role" is no condition`,
		"allow\t*\t*\t=x\t*":                       "is no condition",
		"allow\t*\t*\ta=~(\t*":                     "compound expressions",
		"allow\t*\t*\ta=/[/\t*":                    "has no regular expression",
		"allow\t/(/\t*\t*\t*":                      "is no regular expression",
		"allow\t*\t*\t*\t/[/":                      "is no regular expression",
		"allow\t*\trestart\t(puppet().enabled=false and environment=production) or environment=development": "compound expressions",
		"allow\t*\t*\ta=b and c=d\t*":                                      "compound expressions",
		"allow\t*\t*\tnot a=b\t*":                                          "compound expressions",
		"allow\t*\t*\t!a=b\t*":                                             "compound expressions",
		"allow\t*\t*\t*\ta or b":                                           "compound expressions",
		strings.Repeat("allow\t*\t*\t*\n", actionpolicy.MaxRows+1):         "it has more than",
		"#\nallow\t*\t*\t*\n" + strings.Repeat(" ", actionpolicy.MaxBytes): "it has more than",
		strings.Repeat("#", actionpolicy.MaxBytes+1):                       "it has more than",
		"allow\t*\t*\trole!=/db/\t*":                                       "a regular expression goes with = and =~ only",
		"deny\t*\t*\trole</db/\t*":                                         "a regular expression goes with = and =~ only",
	} {
		_, err := actionpolicy.Parse("p", []byte(text), nil)
		if fault.Of(err) != fault.Invalid || !strings.Contains(fault.Detail(err), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"a/b x": "g line 1: a group's name", "a x\na y": "g line 2: the group a is there twice",
		"# " + strings.Repeat("#", actionpolicy.MaxBytes): "g: it has more than",
	} {
		if _, err := actionpolicy.ParseGroups("g", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}

// Files of the original's own tests.
func TestFilesOfTheOriginal(t *testing.T) {
	t.Parallel()
	for text, allowed := range map[string]bool{
		"policy default deny\nallow\tuid=500\trspec\t*\trspec\n":                                                            true,
		"policy default allow\ndeny\tuid=500\t*\t*\t*\n":                                                                    false,
		"policy default deny\nallow\t\tuid=500\t\t\t*\t\t\t\t*\t\t\t*\nallow\tuid=600\t*\tcustomer=acme\tacme::devserver\n": true,
		"policy default deny\nallow\tuid=500\trspec\tfoo=bar\t*\n":                                                          true,
		"policy default deny\nallow\tuid=500\trspec\tfoo=baz\t*\n":                                                          false,
		"allow\tuid=501\t*\t*\t*\n":                                                                                         false,
	} {
		p, err := actionpolicy.Parse("rspec.policy", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, why := p.Allow(actionpolicy.Request{
			Caller: "uid=500", Action: "rspec", Facts: canonical(t, `{"foo":"bar"}`), Classes: []string{"rspec"},
		}); got != allowed {
			t.Errorf("%q: %v, %s", text, got, why)
		}
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	const good, bad = "allow\tops\t*\t*\t*\n", "policy default allow\nallow\t*\n"
	ana := actionpolicy.Request{Caller: "tutti=ana", Action: "x"}
	for name, c := range map[string]struct {
		files map[string][]byte
		err   string
		want  map[string]string // by module: a part of why not; empty: allowed
	}{
		"nothing": {nil, "", map[string]string{"disk": ""}},
		"only one module": {
			map[string][]byte{"disk.policy": []byte(good)}, "", map[string]string{"disk": "no line of /d/disk.policy allows x to tutti=ana", "fan": ""},
		},
		"groups": {map[string][]byte{"disk.policy": []byte(good), "groups": []byte("ops tutti=ana")}, "", map[string]string{"disk": ""}},
		"a default": {
			map[string][]byte{"default.policy": []byte("policy default deny"), "disk.policy": []byte("policy default allow")}, "", map[string]string{
				"disk": "", "fan": "no line of /d/default.policy",
			},
		},
		"a bad row": {
			map[string][]byte{"disk.policy": []byte(bad), "fan.policy": []byte("policy default allow")},
			"action policies deny everything until they are mended: /d/disk.policy line 2: a row must be",
			map[string]string{"disk": "everything in disk is denied until its policy is mended: /d/disk.policy line 2", "fan": ""},
		},
		"bad groups": {
			map[string][]byte{"disk.policy": []byte("policy default allow"), "groups": []byte("a/b")},
			"/d/groups line 1",
			map[string]string{"disk": "everything in disk is denied until its policy is mended: /d/groups line 1", "fan": ""},
		},
	} {
		s, err := actionpolicy.Load("/d", c.files)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v", name, err)
		}
		for module, want := range c.want {
			if allowed, why := s.Allow(module, ana); allowed != (want == "") || !strings.Contains(why, want) {
				t.Errorf("%s: %s: %v, %s", name, module, allowed, why)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(file, "a b\n", "tutti=ana", "status", `{"role":"db"}`)
	f.Add("allow\t*\t*\ta=~/x/ b=/y/\t/z/", "", "", "", "{}")
	f.Fuzz(func(t *testing.T, text, groups, caller, action, known string) {
		g, err := actionpolicy.ParseGroups("g", []byte(groups))
		if err != nil && fault.Of(err) != fault.Invalid {
			t.Fatal(err)
		}
		p, err := actionpolicy.Parse("p", []byte(text), g)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatal(err)
			}
			return
		}
		values, _, err := facts.Canonical(json.RawMessage(known))
		if err != nil {
			values = nil
		}
		allowed, why := p.Allow(actionpolicy.Request{Caller: caller, Action: action, Facts: values})
		if allowed != (why == "") {
			t.Errorf("%v, %q", allowed, why)
		}
		if known, _ := p.Allow(actionpolicy.Request{Caller: caller, Action: action, Facts: values, Classes: []string{}}); allowed && !known {
			t.Error("less is allowed when more is known")
		}
	})
}

// naive reads the text of a file anew for each question, one word at a time.
func naive(text string, groups map[string][]string, caller, action string, known map[string]string, classes []string) bool {
	fallback := false
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "policy default ") {
			fallback = line == "policy default allow"
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		columns := strings.Split(line, "\t")
		if len(columns) != 5 {
			continue
		}
		if columns[1] != "*" {
			found := false
			for word := range strings.FieldsSeq(columns[1]) {
				if word == caller || slices.Contains(groups[word], caller) ||
					strings.HasPrefix(word, "/") && regexp.MustCompile(strings.Trim(word, "/")).MatchString(caller) {
					found = true
				}
			}
			if !found {
				continue
			}
		}
		if columns[2] != "*" && !strings.Contains(" "+columns[2]+" ", " "+action+" ") {
			continue
		}
		fits := true
		if columns[3] != "*" {
			for word := range strings.FieldsSeq(columns[3]) {
				fits = fits && naiveCondition(word, known)
			}
		}
		if columns[4] != "*" {
			for word := range strings.FieldsSeq(columns[4]) {
				fits = fits && slices.Contains(classes, word)
			}
		}
		if fits {
			return columns[0] == "allow"
		}
	}
	return fallback
}

func naiveCondition(word string, known map[string]string) bool {
	at := strings.IndexAny(word, "=<>!")
	name, rest := word[:at], word[at:]
	operator := rest[:len(rest)-1] // values have one character here
	value, there := known[name]
	if !there {
		return false
	}
	want := rest[len(rest)-1:]
	x, errX := strconv.Atoi(value)
	y, errY := strconv.Atoi(want)
	less, same := value < want, value == want
	if errX == nil && errY == nil {
		less, same = x < y, x == y
	}
	switch operator {
	case "=", "==":
		return same
	case "!=":
		return !same
	case "<":
		return less
	case "<=", "=<":
		return less || same
	case ">":
		return !less && !same
	default:
		return !less
	}
}

// Any file decides as a naive reader does; and while facts or classes are not known, nothing is allowed that would not be if they were.
func TestProperty(t *testing.T) {
	t.Parallel()
	groups := map[string][]string{"ops": {"a", "b"}}
	rapid.Check(t, func(t *rapid.T) {
		words := func(label string, from ...string) string {
			if rapid.Bool().Draw(t, "any "+label) {
				return "*"
			}
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(from), 1, 3).Draw(t, label), " ")
		}
		var conditions []string
		for _, fact := range []string{"x", "y.z"} {
			for _, operator := range []string{"=", "==", "!=", "<", "<=", "=<", ">", ">=", "=>"} {
				for _, value := range []string{"1", "9", "k"} {
					conditions = append(conditions, fact+operator+value)
				}
			}
		}
		var text strings.Builder
		for range rapid.IntRange(0, 6).Draw(t, "rows") {
			fmt.Fprintf(&text, "%s\t%s\t%s\t%s\t%s\n", rapid.SampledFrom([]string{"allow", "deny"}).Draw(t, "verdict"),
				words("callers", "a", "b", "c", "ops", "/^[bc]/"), words("actions", "on", "off"), words("facts", conditions...), words("classes", "web", "db"))
		}
		if rapid.Bool().Draw(t, "default") {
			text.WriteString("policy default allow\n")
		}
		known, document := map[string]string{}, "{"
		if x := rapid.SampledFrom([]string{"", "1", "10", "k"}).Draw(t, "x"); x != "" {
			known["x"] = x
			document += fmt.Sprintf("%q:%q,", "x", x)
		}
		if z := rapid.SampledFrom([]string{"", "1", "10", "k"}).Draw(t, "z"); z != "" {
			known["y.z"] = z
			document += fmt.Sprintf("%q:{%q:%q},", "y", "z", z)
		}
		document = strings.TrimSuffix(document, ",") + "}"
		classes := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"web", "db", "other"}), rapid.ID).Draw(t, "classes")
		q := actionpolicy.Request{
			Caller: rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "caller"), Action: rapid.SampledFrom([]string{"on", "off", "of"}).Draw(t, "action"),
			Facts: canonical(t, document), Classes: append([]string{}, classes...),
		}
		p, err := actionpolicy.Parse("p", []byte(text.String()), groups)
		if err != nil {
			t.Fatal(err)
		}
		got, why := p.Allow(q)
		want := naive(text.String(), groups, q.Caller, q.Action, known, classes)
		if got != want {
			t.Fatalf("got %v (%s), want %v:\n%s%s\n%+v", got, why, want, text.String(), document, q)
		}
		for _, less := range []actionpolicy.Request{{Facts: q.Facts}, {Classes: q.Classes}, {}} {
			less.Caller, less.Action = q.Caller, q.Action
			if allowed, _ := p.Allow(less); allowed && !want {
				t.Fatalf("allowed while less is known:\n%s\n%+v", text.String(), less)
			}
		}
	})
}
