package task_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/fault"
	"github.com/tutti-project/tutti/internal/task"
)

func find(t *testing.T, name string) task.Task {
	t.Helper()
	found, err := task.Find(t.Context(), world, name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What people type is a text, unless the parameter takes none.
func TestTextsBecomeValuesByTheirType(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		task, given, want string
		texts             map[string]string
	}{
		"a text":         {"apache", "", `{"action":"reload"}`, map[string]string{"action": "reload"}},
		"a number":       {"apache", "", `{"wait":7}`, map[string]string{"wait": "7"}},
		"an alias":       {"apache", "", `{"port":80}`, map[string]string{"port": "80"}},
		"fits as little": {"apache", "", `{"wait":"soon"}`, map[string]string{"wait": "soon"}},
		"beside values":  {"apache", `{"wait":1}`, `{"action":"reload","wait":1}`, map[string]string{"action": "reload"}},
		"without a type": {
			"apache::plain", "", `{"a":1.5,"b":true,"c":"01","d":"","e":"null","f":"[1]","g":-2e3}`, map[string]string{
				"a": "1.5", "b": "true", "c": "01", "d": "", "e": "null", "f": "[1]", "g": "-2e3",
			},
		},
		"sensitive":            {"secret::keep", "", `{"token":"12345678"}`, map[string]string{"token": "12345678"}},
		"a structure":          {"secret::keep", "", `{"password":{"user":"x"}}`, map[string]string{"password": `{"user": "x"}`}},
		"of no such parameter": {"apache", "", `{"odd":1}`, map[string]string{"odd": "1"}},
	} {
		got, err := find(t, c.task).Typed(t.Context(), world, json.RawMessage(c.given), c.texts)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
	for _, given := range []string{`{"wait":1}`, `[]`, `{"wait":`} {
		if got, err := find(t, "apache").Typed(t.Context(), world, json.RawMessage(given), map[string]string{"wait": "s3cret"}); fault.Of(err) != fault.Invalid ||
			strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %s, %v", given, got, err)
		}
	}
}

func TestSecretsAreSplitOff(t *testing.T) {
	t.Parallel()
	keep := find(t, "secret::keep")
	shown, secret, err := keep.Split(json.RawMessage(`{"password":{"user":"x"},"token":null}`))
	if err != nil || string(shown) != `{}` || string(secret) != `{"password":{"user":"x"},"token":null}` {
		t.Errorf("%s, %s, %v", shown, secret, err)
	}
	shown, secret, err = find(t, "apache").Split(json.RawMessage(`{"wait":1}`))
	if err != nil || string(shown) != `{"wait":1}` || secret != nil {
		t.Errorf("%s, %s, %v", shown, secret, err)
	}
	if names := task.Reserved(json.RawMessage(`{"_noop":true,"a":1,"_task":""}`)); strings.Join(names, " ") != "_noop _task" {
		t.Errorf("reserved: %q", names)
	}
}

func FuzzTyped(f *testing.F) {
	f.Add("wait", "7")
	f.Add("password", `{"user": "x"}`)
	f.Add("odd", "1e999")
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, which := range []string{"apache", "apache::plain", "secret::keep"} {
			found, err := task.Find(t.Context(), world, which)
			if err != nil {
				t.Fatal(err)
			}
			got, err := found.Typed(t.Context(), world, nil, map[string]string{name: text})
			if err == nil && !json.Valid(got) {
				t.Errorf("%q: %q becomes %s", name, text, got)
			}
		}
	})
}
