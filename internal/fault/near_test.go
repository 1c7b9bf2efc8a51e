package fault_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tutti-project/tutti/internal/fault"
)

func TestNear(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wanted string
		names  []string
		want   []string
	}{
		{"prodution", []string{"staging", "production", "prod"}, []string{"production"}},
		{"Production", []string{"production"}, []string{"production"}},
		{"lst", []string{"show", "list", "last"}, []string{"last", "list"}},
		{"lsit", []string{"list", "edit"}, []string{"list"}},
		{"web", []string{"web-1.example.test", "web-2.example.test", "db-1.example.test"}, []string{"web-1.example.test", "web-2.example.test"}},
		{"nothing", []string{"list"}, nil},
		{"", []string{"a"}, nil},
		{"abc", []string{"abd", "abe", "abf", "abg"}, []string{"abd", "abe", "abf"}},
		{"straße", []string{"strasse", "Straße"}, []string{"Straße", "strasse"}},
	} {
		if diff := cmp.Diff(c.want, fault.Near(c.wanted, c.names), cmp.Transformer("nil", func(s []string) string { return cmpText(s) })); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.wanted, diff)
		}
	}
	if got := fault.DidYouMean("abc", []string{"abd", "abe", "abf"}); got != "did you mean abd, abe or abf?" {
		t.Errorf("got %q", got)
	}
	if got := fault.DidYouMean("abc", []string{"xyz"}); got != "" {
		t.Errorf("got %q", got)
	}
}

func cmpText(s []string) string {
	text := ""
	for _, name := range s {
		text += name + " "
	}
	return text
}

// One letter that is wrong, missing, too many or exchanged is always found.
func TestOneMistakeIsNear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := []rune(rapid.StringMatching(`[a-z]{3,12}`).Draw(t, "name"))
		at := rapid.IntRange(0, len(name)-2).Draw(t, "at")
		wrong := slices.Clone(name)
		switch rapid.IntRange(0, 3).Draw(t, "mistake") {
		case 0:
			wrong[at] = 'ö'
		case 1:
			wrong = slices.Delete(wrong, at, at+1)
		case 2:
			wrong = slices.Insert(wrong, at, 'ö')
		case 3:
			wrong[at], wrong[at+1] = wrong[at+1], wrong[at]
		}
		if string(wrong) != string(name) && !slices.Contains(fault.Near(string(wrong), []string{string(name)}), string(name)) {
			t.Fatalf("%q is not near %q", string(wrong), string(name))
		}
	})
}
