package action_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tutti-project/tutti/internal/action"
)

func TestWhatIsSecretIsNotShown(t *testing.T) {
	t.Parallel()
	schema, err := action.Compile([]byte(`{
		"definitions": {"key/er": {"type": "string", "writeOnly": true}, "loop": {"properties": {"again": {"$ref": "#/definitions/loop"}}}},
		"properties": {
			"user": {"type": "string", "default": {"writeOnly": true}},
			"password": {"type": "string", "writeOnly": true},
			"token": {"sensitive": true},
			"key": {"$ref": "#/definitions/key~1er"},
			"keys": {"type": "array", "items": {"$ref": "#/definitions/key~1er"}},
			"nested": {"type": "object", "properties": {"deep": {"anyOf": [{"type": "integer"}, {"writeOnly": true}]}}},
			"loop": {"$ref": "#/definitions/loop"},
			"writeOnly": {"type": "boolean"}
		}}`))
	if err != nil {
		t.Fatal(err)
	}
	hidden := map[string]bool{}
	for _, f := range schema.Fields() {
		hidden[f.Name] = f.Hidden
	}
	want := map[string]bool{"user": false, "password": true, "token": true, "key": true, "keys": true, "nested": true, "loop": false, "writeOnly": false}
	if diff := cmp.Diff(want, hidden); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	input := []byte(`{"user":"ann","password":"correct horse","keys":["a"],"more":1}`)
	shown, secret, err := schema.Split(input)
	same(t, err, shown, `{"user":"ann","more":1}`)
	same(t, err, secret, `{"password":"correct horse","keys":["a"]}`)
	shown, err = schema.Shown(input)
	same(t, err, shown, `{"user":"ann","more":1,"password":"(hidden)","keys":"(hidden)"}`)
	for _, plain := range []string{``, `{}`, `{"user":"ann"}`} {
		shown, secret, err := schema.Split([]byte(plain))
		if err != nil || string(shown) != plain || secret != nil {
			t.Errorf("%s: %s, %s, %v", plain, shown, secret, err)
		}
	}
}

func same(t *testing.T, err error, got []byte, want string) {
	t.Helper()
	var a, b any
	if err != nil || json.Unmarshal(got, &a) != nil || json.Unmarshal([]byte(want), &b) != nil || !cmp.Equal(a, b) {
		t.Errorf("%v: %s, want %s", err, got, want)
	}
}
