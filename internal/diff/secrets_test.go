package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/api"
)

// everything is all that can be had of a difference.
func everything(tb rapid.TB, d *Difference) string {
	var out bytes.Buffer
	shown := NewShower(nil, DefaultLimits()).Show(context.Background(), d)
	grouper, err := NewGrouper(GrouperConfig{})
	if err != nil {
		tb.Fatal(err)
	}
	grouper.Add(context.Background(), Node{1, "web-1.example.org"}, d)
	fleet, err := grouper.Fleet(1000, func(uint32) string { return "web-1.example.org" })
	if err != nil {
		tb.Fatal(err)
	}
	for _, value := range []any{shown, fleet} {
		text, err := json.Marshal(value)
		if err != nil {
			tb.Fatal(err)
		}
		out.Write(text)
	}
	for _, order := range []bool{true, false} {
		for _, err := range []error{
			WriteText(&out, shown, order), WriteMarkdown(&out, shown, order),
			WriteFleetText(&out, fleet, order), WriteFleetMarkdown(&out, fleet, order),
		} {
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
	slog.New(slog.NewTextHandler(&out, nil)).InfoContext(context.Background(), "compared", "difference", d)
	_, _ = fmt.Fprintf(&out, "%v %+v %#v %s", d, d, d, []any{d})
	return out.String()
}

// checkSecrets looks for secrets in all that can be had.
func checkSecrets(t *rapid.T, d *Difference, secrets []string) {
	text := everything(t, d)
	for _, secret := range secrets {
		if i := strings.Index(text, secret); i >= 0 {
			t.Fatalf("the secret %s can be seen: …%s…", secret, text[max(0, i-300):min(len(text), i+50)])
		}
	}
}

func compareTexts(tb testing.TB, old, fresh string) *Difference {
	tb.Helper()
	a, err := Parse([]byte(old))
	check(tb, err)
	b, err := Parse([]byte(fresh))
	check(tb, err)
	d, err := Compare(a, b)
	check(tb, err)
	return d
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func catalogOf(resources string) string { return `{"resources":[` + resources + `]}` }

// Short secrets are hidden where they stand.
func TestWhatIsHidden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, new, want string }{
		{
			"marked by Puppet", `{"type":"User","title":"a","parameters":{"password":"Zq7#xA"},"sensitive_parameters":["password"]}`,
			`{"type":"User","title":"a","parameters":{"password":"Zq7#xB"},"sensitive_parameters":["password"]}`, "password changed (hidden)",
		},
		{
			"not secret any more", `{"type":"User","title":"a","parameters":{"password":"Zq7#xA"},"sensitive_parameters":["password"]}`,
			`{"type":"User","title":"a","parameters":{"password":"Zq7#xB"}}`, "password changed (hidden)",
		},
		{
			"rich data", `{"type":"User","title":"a","parameters":{"password":{"__ptype":"Sensitive","__pvalue":"Zq7#xA"}}}`,
			`{"type":"User","title":"a","parameters":{"password":"Zq7#xB"}}`, "password changed (hidden)",
		},
		{
			"rich data deep inside", `{"type":"User","title":"a","parameters":{"o":[{"k":{"__ptype":"Sensitive","__pvalue":"Zq7#xA"}}]}}`,
			`{"type":"User","title":"a","parameters":{"o":[{"k":1}]}}`, "o changed (hidden)",
		},
		{
			"a quiet file", `{"type":"File","title":"/a","parameters":{"content":"Zq7#xA","show_diff":false,"mode":"0600"}}`,
			`{"type":"File","title":"/a","parameters":{"content":"Zq7#xB","show_diff":false,"mode":"0640"}}`, "content changed (hidden)",
		},
		{
			"a setting that shows a checksum", `{"type":"Ini_setting","title":"a","parameters":{"value":"Zq7#xA","show_diff":"md5"}}`,
			`{"type":"Ini_setting","title":"a","parameters":{"value":"Zq7#xB","show_diff":"md5"}}`, "value changed (hidden)",
		},
		{
			"a fragment of a quiet file",
			`{"type":"Concat","title":"c","parameters":{"show_diff":false}},{"type":"Concat_fragment","title":"f","parameters":{"target":"c","content":"Zq7#xA"}}`,
			`{"type":"Concat","title":"c","parameters":{"show_diff":false}},{"type":"Concat_fragment","title":"f","parameters":{"target":"c","content":"Zq7#xB"}}`,
			"content changed (hidden)",
		},
		{"added", ``, `{"type":"User","title":"a","parameters":{"password":"Zq7#xA"},"sensitive_parameters":["password"]}`, "password added (hidden)"},
		{
			"an alias of a key", `{"type":"User","title":"a","parameters":{"p":{"__\u0070type":"Sensitive","__pvalue":"Zq7#xA"}}}`,
			`{"type":"User","title":"a","parameters":{"p":2}}`, "p changed (hidden)",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := everything(t, compareTexts(t, catalogOf(c.old), catalogOf(c.new)))
			if strings.Contains(text, "Zq7#x") || !strings.Contains(text, c.want) {
				t.Errorf("want %q and no secret:\n%s", c.want, text)
			}
		})
	}
}

// What a stored catalog hides cannot be guessed by sending one.
func TestASentCatalogIsNoWayToGuess(t *testing.T) {
	t.Parallel()
	stored := catalogOf(`{"type":"User","title":"a","parameters":{"password":"correct horse","uid":1},"sensitive_parameters":["password"]},
		{"type":"Exec","title":"b","parameters":{"command":"login correct horse"}},
		{"type":"File","title":"/q","parameters":{"content":"pin 1234","show_diff":false}}`)
	answer := func(password, command, content string) api.CatalogDifference {
		old, err := Parse([]byte(stored))
		check(t, err)
		sent, err := ParseSent([]byte(catalogOf(fmt.Sprintf(`{"type":"User","title":"a","parameters":{"password":%q,"uid":2}},
			{"type":"Exec","title":"b","parameters":{"command":%q}},{"type":"File","title":"/q","parameters":{"content":%q}}`, password, command, content))))
		check(t, err)
		d, err := Compare(old, sent)
		check(t, err)
		return NewShower(nil, DefaultLimits()).Show(t.Context(), d)
	}
	right, wrong := answer("correct horse", "login correct horse", "pin 1234"), answer("battery", "login battery", "pin 1111")
	if diff := cmp.Diff(right, wrong); diff != "" {
		t.Errorf("a right guess (-) and a wrong one (+) are told apart:\n%s", diff)
	}
	if !right.NotCompared || right.Changed != 3 && len(right.Resources) != 2 {
		t.Errorf("got %+v", right)
	}
}

// Without the key, nobody can check a guess against a group's name.
func TestKeysOfGroupsAreKeyed(t *testing.T) {
	t.Parallel()
	old := catalogOf(`{"type":"User","title":"a","parameters":{"password":"a"},"sensitive_parameters":["password"]}`)
	key := func(secret, password string) string {
		grouper, err := NewGrouper(GrouperConfig{Secret: []byte(secret)})
		check(t, err)
		grouper.Add(t.Context(), Node{0, "n"}, compareTexts(t, old, strings.Replace(old, `"a"}`, `"`+password+`"}`, 1)))
		fleet, err := grouper.Fleet(10, func(uint32) string { return "n" })
		check(t, err)
		return fleet.Groups[0].Key
	}
	one, other := strings.Repeat("x", 32), strings.Repeat("y", 32)
	if again := key(one, "b"); again != key(one, "b") || key(one, "b") == key(one, "c") || key(one, "b") == key(other, "b") {
		t.Error("a key must depend on the change and on the grouper's secret, and on nothing else")
	}
	if _, err := NewGrouper(GrouperConfig{Secret: []byte("short")}); err == nil {
		t.Error("a short secret is taken")
	}
}
