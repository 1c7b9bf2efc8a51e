package classify

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
)

const sampleFacts = `{"os":{"family":"Debian","release":{"major":"12"}},"processors":{"count":4,"models":["Xeon","Atom"]},
	"virtual":false,"uptime":2.5,"mountpoints":{"/":{"size":"9"}},"big":9007199254740993,"gone":null,"a.b":"dotted"}`

func sampleNode(tb testing.TB) Node {
	tb.Helper()
	node, err := NewNode("web-1.example.test", json.RawMessage(sampleFacts), json.RawMessage(`{"extensions":{"pp_role":"web","1.3.6":"oid"}}`))
	if err != nil {
		tb.Fatal(err)
	}
	return node
}

func TestRulesOnANode(t *testing.T) {
	t.Parallel()
	node := sampleNode(t)
	for text, want := range map[string]bool{
		`facts.os.family = "Debian"`:                        true,
		`facts.os.family = "debian"`:                        false,
		`facts.os.family != 'RedHat'`:                       true,
		`facts.os.family ~ 'eb'`:                            true, // unanchored
		`facts.os.family !~ '^eb'`:                          true,
		`facts.os = "Debian"`:                               false, // a structure has no text
		`facts.gone = ""`:                                   false,
		`facts.none = "x"`:                                  false,
		`not facts.none = "x"`:                              true,
		`facts.none != "x"`:                                 true,
		`facts.virtual = "false"`:                           true,
		`facts.virtual = false`:                             true,
		`facts.uptime = 2.5`:                                true,
		`facts.uptime = "2.50"`:                             false, // text is compared
		`facts.uptime >= 2.50`:                              true,
		`facts.processors.count > 3`:                        true,
		`facts.processors.count > 4`:                        false,
		`facts.processors.count <= 4e0`:                     true,
		`facts.os.release.major < 13`:                       true, // a number in a string
		`facts.os.release.major > 9`:                        true, // not as text
		`facts.os.family < 99`:                              false,
		`facts.os.family >= 0`:                              false,
		`facts.virtual < 1`:                                 false,
		`facts.big > 9007199254740992`:                      true, // exact where float64 is not
		`facts.processors.models[1] = "Atom"`:               true,
		`facts.processors.models[2] = "Atom"`:               false,
		`facts.processors.models."1" = "Atom"`:              false,
		`facts.mountpoints."/".size = 9`:                    true,
		`facts."a.b" = "dotted"`:                            true,
		`fact.a.b = "dotted"`:                               false,
		`trusted.extensions.pp_role = "web"`:                true,
		`trusted.extensions."1.3.6" = "oid"`:                true,
		`name ~ '^web-\d+\.' and not (name ~ "db")`:         true,
		`name = "x" or name = "y" or facts.virtual = false`: true,
		`name = "x" and name = "y" or name ~ "web"`:         true,
		`name = "x" and (name = "y" or name ~ "web")`:       false,
		"name\n~\t'web'":                                    true,
	} {
		rule, err := ParseRule(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := rule.Holds(node); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		``:                            `line 1, column 1: "not", "(", name, facts.PATH or trusted.PATH is expected, not the end`,
		`os.family = "x"`:             `line 1, column 1: "not", "(", name`,
		`facts = "x"`:                 `column 7: a path like facts.os.family`,
		`facts.a`:                     `column 8: one of = != ~ !~ < <= > >= is expected, not the end`,
		`facts.a = `:                  `column 11: a value like "Debian"`,
		`facts.a = Debian`:            `column 11: a number, true, false or a value in quotes is expected, not "Debian"`,
		`facts.a = 'x`:                `column 11: the text that begins here has no end`,
		`facts.a = "\d"`:              `column 11: the text "\d" holds an escape that is none`,
		`facts.a ~ '('`:               `column 11: a regular expression (RE2 syntax) is expected: missing closing )`,
		`facts.a ~ '(?=x)'`:           `column 11: a regular expression (RE2 syntax) is expected: invalid or unsupported Perl syntax`,
		`facts.a > "x"`:               `column 11: a number is expected after >`,
		`facts.a > 0x10`:              `a number, true`,
		`facts.a[x] = 1`:              `column 9: an index from 0 to 1000000 is expected, not "x"`,
		`facts.a[1 = 1`:               `column 11: "]" is expected, not "="`,
		`facts. = 1`:                  `column 8: a key is expected, not "="`,
		`(name = "a"`:                 `column 12: "and", "or" or ")" is expected, not the end`,
		`name = "a" name = "b"`:       `column 12: "and", "or" or the end is expected, not "name"`,
		`name = "a" and`:              `column 15: "not", "("`,
		"name = \"ü\" and\n  öre = 1": `line 2, column 3: the character 'ö' does not belong here`,
		"name = \"\xff\"":             `not UTF-8`,
		strings.Repeat("(", 60):       `nested more than 50 deep`,
	} {
		_, err := ParseRule(text)
		if fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`[`:                        `not JSON`,
		`["="]`:                    `rule: = needs a path and a value, not 0 things`,
		`"x"`:                      `rule: a condition is expected`,
		`["nand",["=","name",1]]`:  `rule[0]: one of and, or, not, =, ~, <, <=, >, >= is expected, not "nand"`,
		`["not"]`:                  `rule: not needs one condition, not 0`,
		`["or",["and"]]`:           `rule[1]: and needs one condition`,
		`["or",["~","name","("]]`:  `rule[1][2]: a regular expression`,
		`["=",["facts","a"],"b"]`:  `rule[1]: "name", ["fact", KEY, ...]`,
		`["=",["fact"],"b"]`:       `rule[1]: 1 to 49 keys`,
		`["=",["fact",-1],"b"]`:    `rule[1][1]: a key (string) or an index`,
		`["=",["fact","a"],["b"]]`: `rule[2]: a value as a string is expected, like "Debian", not ["b"]`,
		`["<",["fact","a"],"b"]`:   `rule[2]: a number is expected`,
		`["=","name","a"] x`:       `not JSON`,
	} {
		_, err := ParseJSON([]byte(text))
		if fault.Of(err) != fault.Invalid || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestNoRule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, ``, `["and"]`, `["or"]`} {
		if rule, err := ParseJSON([]byte(text)); rule != nil || err != nil {
			t.Errorf("%s: got %v, %v", text, rule, err)
		}
	}
}

func TestSpellings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`facts.os.family="Debian" and not trusted.extensions.pp_role="db"`: `["and",["=",["fact","os","family"],"Debian"],["not",["=",["trusted","extensions","pp_role"],"db"]]]`,
		`name ~ '^a\d' or (name = "b" or name = "c")`:                      `["or",["~","name","^a\\d"],["or",["=","name","b"],["=","name","c"]]]`,
		`facts.models[0] <= -1.5 and facts."x y" = 'it\'s'`:                `["and",["<=",["fact","models",0],"-1.5"],["=",["fact","x y"],"it's"]]`,
	} {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rule.MarshalJSON()
		if string(got) != want || err != nil {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		back, err := ParseJSON(got)
		if diff := cmp.Diff(rule, back); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	single, err := ParseJSON([]byte(`["or",["and",["=","name","a"]]]`))
	if err != nil || single.String() != `name = "a"` {
		t.Errorf("a condition alone is %v, %v", single, err)
	}
}

// drawRule makes any rule that can be.
func drawRule(t *rapid.T, depth int) Rule {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case depth > 0 && kind < 2:
		return Negate(drawRule(t, depth-1))
	case depth > 0 && kind < 6:
		rules := make([]Rule, rapid.IntRange(2, 3).Draw(t, "parts"))
		for i := range rules {
			rules[i] = drawRule(t, depth-1)
		}
		if kind < 4 {
			return All(rules...)
		}
		return Any(rules...)
	}
	op := rapid.SampledFrom([]Op{Equals, Matches, Less, LessEqual, Greater, GreaterEqual}).Draw(t, "op")
	value := rapid.OneOf(rapid.SampledFrom([]string{"a", "4", "true", "web-1", `\`, `'`, `\'`, `"`, `\\`, "ü\n", ""}), rapid.String()).Draw(t, "value")
	if op == Matches {
		value = regexp.QuoteMeta(value)
	} else if op != Equals {
		value = rapid.SampledFrom([]string{"4", "-1", "2.5", "1e1", "007", "1E-2"}).Draw(t, "number")
	}
	rule, err := Compare(op, drawPath(t), value)
	if err != nil {
		t.Fatal(err)
	}
	return rule
}

func drawPath(t *rapid.T) Path {
	root := rapid.SampledFrom([]Root{Name, Fact, Trusted}).Draw(t, "root")
	path := Path{Root: root}
	if root == Name {
		return path
	}
	for range rapid.IntRange(1, 3).Draw(t, "steps") {
		if rapid.IntRange(0, 3).Draw(t, "index") == 0 {
			path.Steps = append(path.Steps, Step{Index: rapid.IntRange(0, 2).Draw(t, "at"), IsIndex: true})
			continue
		}
		key := rapid.OneOf(rapid.SampledFrom([]string{"a", "b", "and", "1", "x y", ""}), rapid.String()).Draw(t, "key")
		path.Steps = append(path.Steps, Step{Key: key})
	}
	return path
}

func TestBothSpellingsAreOneTree(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rule := drawRule(t, 4)
		text, err := ParseRule(rule.String())
		if err != nil || !text.Equal(rule) {
			t.Fatalf("%s became %v, %v", rule, text, err)
		}
		array, err := rule.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseJSON(array)
		if err != nil || !back.Equal(rule) {
			t.Fatalf("%s became %v, %v", array, back, err)
		}
	})
}

// naive evaluates the JSON form as the grammar reads, and knows nothing of Rule.
func naive(t *rapid.T, list []any, name string, facts, trusted any) bool {
	switch list[0] {
	case "and", "or", "not":
		count := 0
		for _, sub := range list[1:] {
			if naive(t, sub.([]any), name, facts, trusted) {
				count++
			}
		}
		return list[0] == "and" && count == len(list)-1 || list[0] == "or" && count > 0 || list[0] == "not" && count == 0
	}
	found := naiveValue(list[1], name, facts, trusted)
	switch found.(type) {
	case nil, map[string]any, []any:
		return false
	}
	text, want := fmt.Sprint(found), list[2].(string)
	switch list[0] {
	case "=":
		return text == want
	case "~":
		return regexp.MustCompile(want).FindStringIndex(text) != nil
	}
	if _, isBool := found.(bool); isBool || !regexp.MustCompile(`^-?\d+(\.\d+)?([eE][-+]?\d+)?$`).MatchString(text) {
		return false
	}
	a, _ := strconv.ParseFloat(text, 64)
	b, _ := strconv.ParseFloat(want, 64)
	return map[any]bool{"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[list[0]]
}

func naiveValue(path any, name string, facts, trusted any) any {
	if path == "name" {
		return name
	}
	steps := path.([]any)
	at := map[any]any{"fact": facts, "trusted": trusted}[steps[0]]
	for _, step := range steps[1:] {
		object, isObject := at.(map[string]any)
		array, isArray := at.([]any)
		key, isKey := step.(string)
		index, isIndex := step.(json.Number)
		i, _ := strconv.Atoi(index.String())
		switch {
		case isObject && isKey:
			at = object[key]
		case isArray && isIndex && i < len(array):
			at = array[i]
		default:
			return nil
		}
	}
	return at
}

func TestHoldsAgreesWithTheNaiveEvaluator(t *testing.T) {
	t.Parallel()
	var leaf *rapid.Generator[any]
	leaf = rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 7).Draw(t, "sort") {
		case 0:
			return map[string]any{"a": leaf.Draw(t, "a"), "1": leaf.Draw(t, "1")}
		case 1:
			return []any{leaf.Draw(t, "first"), "b"}
		case 2:
			return rapid.Bool().Draw(t, "bool")
		case 3:
			return nil
		case 4:
			return json.Number(rapid.SampledFrom([]string{"4", "-1", "2.5", "10", "4.0"}).Draw(t, "number"))
		default:
			return rapid.SampledFrom([]string{"a", "4", "true", "2.5", "4x", "", " 4", "+4", "NaN", "0x4", "1_0"}).Draw(t, "text")
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		facts := map[string]any{"a": leaf.Draw(t, "fact a"), "b": leaf.Draw(t, "fact b")}
		trusted := map[string]any{"a": leaf.Draw(t, "trusted a")}
		rawFacts, _ := json.Marshal(facts)
		rawTrusted, _ := json.Marshal(trusted)
		node, err := NewNode("web-1", rawFacts, rawTrusted)
		if err != nil {
			t.Fatal(err)
		}
		rule := drawRule(t, 3)
		array, _ := rule.MarshalJSON()
		list, _ := decode(array)
		want := naive(t, list.([]any), "web-1", facts, trusted)
		if got := rule.Holds(node); got != want {
			t.Fatalf("%s on %s %s: got %t", rule, rawFacts, rawTrusted, got)
		}
		if findings := rule.findings(node); len(findings) == 0 {
			t.Fatalf("%s gives no reason", rule)
		}
	})
}

func FuzzParseRule(f *testing.F) {
	for _, seed := range []string{
		`facts.os.family = "Debian" and not trusted.extensions.pp_role = 'db'`, `name ~ '^a\'\\'`, `(facts.a[0]."x y" >= -2.5e+3 or name != "ü\n")`,
		`not not name = true`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := ParseRule(text)
		if err != nil {
			if fault.Of(err) != fault.Invalid {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		roundTrip(t, *rule)
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`["and",["=",["fact","os","family"],"Debian"],["not",["~","name","^db"]]]`, `["or"]`, `["<",["trusted","a",0],"4"]`, `null`, `["=","name",4]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rule, err := ParseJSON(text)
		if err != nil && fault.Of(err) != fault.Invalid {
			t.Fatalf("%q: %v", text, err)
		}
		if rule != nil {
			roundTrip(t, *rule)
		}
	})
}

// roundTrip spells a rule both ways and reads it back, and lets it look at a node.
func roundTrip(t *testing.T, rule Rule) {
	t.Helper()
	words, err := ParseRule(rule.String())
	if err != nil || !words.Equal(rule) {
		t.Fatalf("%s became %v, %v", rule, words, err)
	}
	array, err := rule.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseJSON(array)
	if err != nil || !back.Equal(rule) {
		t.Fatalf("%s became %v, %v", array, back, err)
	}
	node := sampleNode(t)
	rule.Holds(node)
	rule.findings(node)
}
