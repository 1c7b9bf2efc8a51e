package agent

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/tutti-project/tutti/internal/action/filter"
	"github.com/tutti-project/tutti/internal/agent/builtin/puppet"
)

// Conditions on nodes read fields of data functions by the types that package filter names: each node gives them so, on the real system.
func TestDataFunctionsGiveWhatConditionsRead(t *testing.T) {
	t.Parallel()
	path, err := findPuppet("")
	if err != nil {
		t.Fatal("no Puppet here: install it with `make test-deps`")
	}
	_, data := builtins(puppet.Config{Puppet: func() (string, error) { return path, nil }, Settings: t.TempDir() + "/settings.json"})
	arguments := map[string]string{"file": "/etc/passwd", "package": "bash", "service": "cron", "puppet": "", "resource": "File[/etc/hosts]", "process": "."}
	for _, source := range filter.Sources() {
		argument, known := arguments[source.Name]
		if data[source.Name] == nil || !known {
			t.Errorf("the data function %s is not there, or has no argument here", source.Name)
			continue
		}
		answer, err := data[source.Name](t.Context(), argument)
		if err != nil {
			t.Errorf("%s(%q): %v", source.Name, argument, err)
			continue
		}
		text, err := json.Marshal(answer)
		var fields map[string]any
		if err = errors.Join(err, json.Unmarshal(text, &fields)); err != nil {
			t.Fatal(err)
		}
		some := false
		for _, field := range source.Fields {
			value, there := fields[field.Name]
			some = some || there
			if there && !field.Type.Has(value) {
				t.Errorf("%s(%q).%s is %v (%T), and conditions read a %s", source.Name, argument, field.Name, value, value, field.Type)
			}
			if !there && slices.Contains([]string{"file", "package"}, source.Name) {
				t.Errorf("%s(%q) lacks %s: %s", source.Name, argument, field.Name, text)
			}
		}
		if !some {
			t.Errorf("%s(%q) gives none of its fields: %s", source.Name, argument, text)
		}
	}
}
