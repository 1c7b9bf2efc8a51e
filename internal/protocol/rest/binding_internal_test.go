package rest

import (
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/api"
)

func TestEveryOperationHasOneHandler(t *testing.T) {
	t.Parallel()
	var bound []binding
	for _, area := range new(Handler).areas(Config{}) {
		bound = append(bound, area.bindings()...)
	}
	if err := complete(api.Operations(), bound); err != nil {
		t.Fatal(err)
	}
	for want, bindings := range map[string][]binding{
		"has 0 handlers":   bound[1:],
		"has 2 handlers":   append(bound[:1:1], bound...),
		"has no operation": append(slices.Clip(bound), binding{op: api.Operation{Name: "tea.pour"}}),
	} {
		if err := complete(api.Operations(), bindings); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want one that %s", err, want)
		}
	}
}
