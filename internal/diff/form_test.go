package diff

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// One value in two forms, and values that only look like it.
func TestFormsOfOneValue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, a, b, want string }{
		{"number and text", `1`, `"1"`, formNumberText},
		{"number and another text", `420`, `"0644"`, ""},
		{"number and text with a space", `1`, `" 1"`, ""},
		{"integer and float", `1`, `1.0`, formNumber},
		{"a thousand", `1000`, `1e3`, formNumber},
		{"signs of exponents", `1.5e+20`, `150000000000000000000`, formNumber},
		{"small", `0.00015`, `1.5E-4`, formNumber},
		{"zeros", `0`, `-0.0`, formNumber},
		{"negative", `-1`, `1.0`, ""},
		{"more digits than a float has", `9007199254740993`, `9007199254740992.0`, ""},
		{"another power of ten", `10`, `1.0`, ""},
		{"an exponent that nobody writes", `1e999999999999`, `1e999999999998`, ""},
		{"numbers that differ", `1`, `2`, ""},
		{"undef and absent", `null`, ``, formUndef},
		{"absent and undef", ``, `null`, formUndef},
		{"absent and empty text", ``, `""`, ""},
		{"undef and false", `null`, `false`, ""},
		{"a member that is undef", `{"a":1,"b":null}`, `{"a":1}`, formUndef},
		{"a member more", `{"a":1,"b":0}`, `{"a":1}`, ""},
		{"an element that is undef", `[1,null]`, `[1]`, ""}, // a list is longer by it
		{"keys in another order alone", `{"a":1,"b":2}`, `{"b":2,"a":1}`, ""},
		{"keys in another order, and a form", `{"a":1,"b":2}`, `{"b":2.0,"a":1}`, formNumber},
		{"a Sensitive and its text", `{"__ptype":"Sensitive","__pvalue":"x"}`, `"x"`, formRich},
		{"a Sensitive and another text", `{"__ptype":"Sensitive","__pvalue":"x"}`, `"y"`, ""},
		{"a Timestamp as text", `"2024-01-01T00:00:00.000000000 UTC"`, `{"__ptype":"Timestamp","__pvalue":"2024-01-01T00:00:00.000000000 UTC"}`, formRich},
		{"default as text", `{"__ptype":"Default"}`, `"default"`, formRich},
		{"two types with one text", `{"__ptype":"Sensitive","__pvalue":"x"}`, `{"__ptype":"Regexp","__pvalue":"x"}`, ""},
		{"a Sensitive of another form", `[{"__ptype":"Sensitive","__pvalue":{"n":"1"}}]`, `[{"n":1}]`, formNumberText + "," + formRich},
		{"a rich value with members of its own", `{"__ptype":"Deferred","name":"f"}`, `"f"`, ""},
		{"deep", `{"a":[1,{"b":"2"}]}`, `{"a":[1.0,{"b":2}]}`, formNumberText + "," + formNumber},
		{"a form and more", `[1,"a"]`, `["1","b"]`, ""},
		{"text and boolean", `"true"`, `true`, ""},
		{"the same", `{"a":[1]}`, `{"a":[1]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			there, back := strings.Join(forms(valueOf(t, c.a), valueOf(t, c.b)), ","), strings.Join(forms(valueOf(t, c.b), valueOf(t, c.a)), ",")
			if there != c.want || back != c.want {
				t.Errorf("%s and %s: %q, and %q the other way round; want %q", c.a, c.b, there, back, c.want)
			}
		})
	}
}

func valueOf(t *testing.T, text string) *value {
	t.Helper()
	if text == "" {
		return nil
	}
	v, err := decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Nodes that change in form only have changes like all others; where the engines differ they are named, and come behind what the code does.
func TestNoiseOfTheEngineIsNamed(t *testing.T) {
	t.Parallel()
	side := func(port, text string, more ...string) *Catalog {
		c, err := Parse([]byte(`{"name":"web-1.test","environment":"production","resources":[{"type":"Service","title":"web","parameters":{"port":` +
			port + `,"key":` + text + strings.Join(more, "") + `}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, c := range []struct {
		name       string
		old, fresh *Catalog
		across     bool
		want       []string
	}{
		{"two engines", side(`80`, `"a"`), side(`"80"`, `"a"`), true, []string{formNumberText}},
		{"one engine", side(`80`, `"a"`), side(`"80"`, `"a"`), false, nil},
		{"two engines, and other code", side(`80`, `"a"`), side(`"80"`, `"b"`), true, nil},
		{"a secret in another form", side(`80`, `{"__ptype":"Sensitive","__pvalue":"a"}`), side(`80.0`, `"a"`), true, []string{formNumber, formRich}},
		{"an undef, and order", side(`80`, `"a"`, `,"tag":"x"`), side(`80`, `"a"`, `,"seen":null`), true, []string{formUndef}},
		{"order alone", side(`80`, `"a"`, `,"tag":"x"`), side(`80`, `"a"`), true, nil},
	} {
		d, err := Compare(c.old, c.fresh)
		if err != nil {
			t.Fatal(err)
		}
		if c.across {
			d.AcrossEngines()
		}
		g, err := NewGrouper(GrouperConfig{})
		if err != nil {
			t.Fatal(err)
		}
		counts := g.Add(t.Context(), Node{Name: "web-1.test"}, d)
		fleet, err := g.Fleet(10, func(uint32) string { return "web-1.test" })
		if err != nil || len(fleet.Groups) != 1 {
			t.Fatalf("%s: %v %+v", c.name, err, fleet)
		}
		if diff := cmp.Diff(setOf(c.want), fleet.Groups[0].EngineNoise); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", c.name, diff)
		}
		if counts == fleet.Groups[0].OrderOnly {
			t.Errorf("%s: it counts as a change: %v", c.name, counts)
		}
		text, _ := json.Marshal(fleet)
		if strings.Contains(string(text), `"a"`) && c.name == "a secret in another form" {
			t.Errorf("the secret is told: %s", text)
		}
		if shown := Kinds(fleet.Groups)[0]; shown.EngineNoise != (c.want != nil) {
			t.Errorf("%s: the kind is noise of the engine: %v", c.name, shown.EngineNoise)
		}
	}
}

// Nodes with the same change are two groups where another engine compiled what only some of them have: in any order.
func TestNoiseOfTheEngineIsOfSomeNodes(t *testing.T) {
	t.Parallel()
	side := func(port string) *Catalog {
		c, err := Parse([]byte(`{"name":"n","environment":"production","resources":[{"type":"Service","title":"web","parameters":{"port":` + port + `}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for _, order := range [][]uint32{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}} {
		g, err := NewGrouper(GrouperConfig{})
		if err != nil {
			t.Fatal(err)
		}
		for _, number := range order {
			d, err := Compare(side(`80`), side(`"80"`))
			if err != nil {
				t.Fatal(err)
			}
			if number == 1 {
				d.AcrossEngines()
			}
			g.Add(t.Context(), Node{Number: number, Name: "n" + strconv.Itoa(int(number))}, d)
		}
		fleet, err := g.Fleet(10, func(n uint32) string { return strconv.Itoa(int(n)) })
		if err != nil || len(fleet.Groups) != 2 {
			t.Fatalf("%v: %v %+v", order, err, fleet)
		}
		code, noise := fleet.Groups[0], fleet.Groups[1]
		if diff := cmp.Diff([][]string{{"0", "2"}, {"1"}}, [][]string{code.Examples, noise.Examples}); diff != "" || code.EngineNoise != nil ||
			len(noise.EngineNoise) != 1 {
			t.Errorf("%v: %+v and %+v (-want +got):\n%s", order, code, noise, diff)
		}
	}
}
