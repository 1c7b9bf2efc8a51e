package truth

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheSameSeedGivesTheSameWorld(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		a, b := New(seed), New(seed)
		for range 5 {
			if diff := cmp.Diff(a.Files, b.Files); diff != "" {
				t.Fatalf("seed %d (-one +other):\n%s", seed, diff)
			}
			if diff := cmp.Diff(a.Nodes, b.Nodes); diff != "" {
				t.Fatalf("seed %d (-one +other):\n%s", seed, diff)
			}
			if x, y := a.ChangeCode()+a.ChangeAround(), b.ChangeCode()+b.ChangeAround(); x != y {
				t.Fatalf("seed %d: one changes %s, the other %s", seed, x, y)
			}
		}
	}
	if cmp.Equal(New(1).Files, New(2).Files) {
		t.Error("two seeds give the same files")
	}
}

// mistakeWorlds is in how many worlds each mistake must be; only each fifth has one.
const mistakeWorlds = 1000

func TestEachConstructIsInSomeWorld(t *testing.T) {
	t.Parallel()
	covered, in := map[string]bool{}, map[string]bool{}
	seeds := Cover(3)
	for _, seed := range seeds {
		for _, name := range New(seed).Constructs {
			covered[name] = true
		}
	}
	t.Logf("covered by the worlds %d", seeds)
	if len(seeds) > 20 {
		t.Errorf("it takes %d worlds to have all constructs: %d", len(seeds), seeds)
	}
	for seed := uint64(1); seed <= mistakeWorlds; seed++ {
		for _, name := range New(seed).Constructs {
			in[name] = true
		}
	}
	for _, c := range words.sound {
		if off := Off[c.name] != ""; covered[c.name] == off {
			t.Errorf("%s: covered %t, switched off %t", c.name, covered[c.name], off)
		}
	}
	for _, c := range words.mistakes {
		if off := Off[c.name] != ""; in[c.name] == off {
			t.Errorf("the mistake %s: in the first %d worlds %t, switched off %t", c.name, mistakeWorlds, in[c.name], off)
		}
	}
}

func TestAWorldOfOneConstruct(t *testing.T) {
	t.Parallel()
	for _, name := range Constructs() {
		if got := New(1, name).Constructs; !cmp.Equal(got, []string{name}) {
			t.Errorf("the world of %s is made of %v", name, got)
		}
	}
}

func TestNothingIsLeftToFill(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		for path, text := range New(seed).Files {
			if strings.ContainsAny(path+text, "‹›¦") {
				t.Fatalf("seed %d: %s has something left to fill:\n%s", seed, path, text)
			}
		}
	}
}

func TestOffNamesConstructs(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range Constructs() {
		if known[name] {
			t.Errorf("two constructs are called %s", name)
		}
		known[name] = true
	}
	for name := range Off {
		if !known[name] {
			t.Errorf("%s is switched off and no construct", name)
		}
	}
}

func TestDifference(t *testing.T) {
	t.Parallel()
	const plain = `{"version":1,"tags":["b","a"],"resources":[{"type":"A","tags":["y","x"],"parameters":{"q":1,"p":{"z":1,"a":2}}},{"type":"B"}],"edges":[1,2]}`
	for _, tt := range []struct{ name, ours, want string }{
		{"sets are sorted", `{"resources":[` +
			`{"parameters":{"p":{"z":1,"a":2},"q":1},"tags":["x","y"],"type":"A"},{"type":"B"}],"tags":["a","b"],"edges":[1,2],"code_id":"x"}`, ""},
		{"the order of keys in a value", strings.Replace(plain, `"z":1,"a":2`, `"a":2,"z":1`, 1), "resources[0]"},
		{"the order of resources", `{"tags":["b","a"],"resources":[` +
			`{"type":"B"},{"type":"A","tags":["y","x"],"parameters":{"q":1,"p":{"z":1,"a":2}}}],"edges":[1,2]}`, "resources[0]"},
		{"the order of edges", strings.Replace(plain, "[1,2]", "[2,1]", 1), "edges[0]"},
		{"a tag", strings.Replace(plain, `"x"`, `"w"`, 1), "resources[0]"},
		{"a resource more", strings.Replace(plain, `{"type":"B"}`, `{"type":"B"},{"type":"C"}`, 1), "resources[2]"},
		{"a number's digits", strings.Replace(plain, `"q":1`, `"q":1.0`, 1), "resources[0]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := Difference(json.RawMessage(plain), json.RawMessage(tt.ours))
			if err != nil || !strings.HasPrefix(got, tt.want) || (got == "") != (tt.want == "") {
				t.Errorf("got %q, %v; want one that begins with %q", got, err, tt.want)
			}
		})
	}
}

func TestAddressesOfObjectsAreNoDifference(t *testing.T) {
	t.Parallel()
	const plain = `{"resources":[{"parameters":{"x":"[#<Puppet::Span:0x00007f8055a2a8c8 @n=1>] 0x00007f8055a2a8c8",
		"y":[true,"#\u003cSensitive [value redacted]:8500>","[value redacted]:8500"]}}]}`
	for ours, same := range map[string]bool{
		strings.Replace(plain, "0x00007f8055a2a8c8", "0x00007fc55a2f72a0", 1): true,
		strings.ReplaceAll(plain, "0x00007f8055a2a8c8", "0x00007fc55a2f72a0"): false,
		strings.Replace(plain, "@n=1", "@n=2", 1):                             false,
		strings.Replace(plain, ":8500>", ":32340>", 1):                        true,
		strings.Replace(plain, ":8500\"", ":32340\"", 1):                      false,
		strings.Replace(plain, "Sensitive", "Secret", 1):                      false,
	} {
		if got, err := Difference(json.RawMessage(plain), json.RawMessage(ours)); err != nil || (got == "") != same {
			t.Errorf("%s: %q, %v", ours, got, err)
		}
		if SameError(plain, ours) != same {
			t.Errorf("messages of errors: %s", ours)
		}
	}
}

// Puppet puts the metadata of exported files beside that of the node's own; addresses may be within Binary.
func TestWhatNoAgentLooksAtIsNoDifference(t *testing.T) {
	t.Parallel()
	in64 := func(address string) string {
		return base64.StdEncoding.EncodeToString([]byte("#<Puppet::Span:0x" + address + " @n=1>"))
	}
	catalog := func(metadata, address string) string {
		return `{"metadata":{` + metadata + `},"resources":[{"type":"File","title":"/a","parameters":{"x":{"__ptype":"Binary","__pvalue":"` + in64(address) + `"}}}]}`
	}
	plain := catalog(`"/exported":{"mode":420},"/a":{"mode":420}`, "00007f8055a2a8c8")
	for ours, same := range map[string]bool{
		catalog(`"/a":{"mode":420}`, "00007fc55a2f72a0"):                        true,
		catalog(`"/a":{"mode":421}`, "00007f8055a2a8c8"):                        false,
		catalog(``, "00007f8055a2a8c8"):                                         false,
		strings.Replace(plain, in64("00007f8055a2a8c8"), "bm90IHRoZSBzYW1l", 1): false,
	} {
		if got, err := Difference(json.RawMessage(plain), json.RawMessage(ours)); err != nil || (got == "") != same {
			t.Errorf("%s: %q, %v", ours, got, err)
		}
	}
	const text, metadata = `{"resources":[{"parameters":{"content":"TEXT"}}]}`,
		`{"recursive_metadata":{"/a":{"puppet:///m":[TEXT]}},"resources":[{"type":"File","title":"/a"}]}`
	const file, directory = `{"relative_path":"x","checksum":{"value":"{md5}1"}}`, `{"relative_path":".","checksum":{"value":"{ctime}2026-01-01"}}`
	for name, tt := range map[string]struct {
		form, plain, ours string
		same              bool
	}{
		"a directory's moment":         {metadata, directory, strings.Replace(directory, "01-01", "02-02", 1), true},
		"a moment in a file's content": {text, "{ctime}2026-01-01", "{ctime}2026-02-02", false},
		"one behind other text": {
			metadata, strings.Replace(directory, "{c", "x{c", 1), strings.Replace(strings.Replace(directory, "{c", "x{c", 1), "01-01", "02-02", 1), false,
		},
		"the order of a directory's files":   {metadata, file + "," + directory, directory + "," + file, true},
		"the order of anything else":         {metadata, `"a","b"`, `"b","a"`, false},
		"the order within a file's metadata": {metadata, strings.Replace(file, `"{md5}1"`, `["a","b"]`, 1), strings.Replace(file, `"{md5}1"`, `["b","a"]`, 1), false},
		"another file":                       {metadata, file, strings.Replace(file, "md5}1", "md5}2", 1), false},
	} {
		plain, ours := strings.Replace(tt.form, "TEXT", tt.plain, 1), strings.Replace(tt.form, "TEXT", tt.ours, 1)
		if got, err := Difference(json.RawMessage(plain), json.RawMessage(ours)); err != nil || (got == "") != tt.same {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := Difference(json.RawMessage(`{"metadata":{"/exported":{}}}`), json.RawMessage(`{}`)); err != nil || got != "" {
		t.Errorf("only exported files: %q, %v", got, err)
	}
}
