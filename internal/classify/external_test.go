package classify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestExternal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string][]string{
		`{"classes":["::ntp","apache::mod"],"environment":"test"}`: {"class apache::mod", "class ntp", "environment test"},
		`{"classes":{"ntp":null,"ssh":{"port":22}},"parameters":{"Site-Name":"x","n":1.0},"more":[1]}`: {
			`$Site-Name="x"`, "$n=1.0", "class ntp", "class ssh", "ssh::port=22",
		},
		`{"parameters":{}}`: nil,
	} {
		g, err := External(json.RawMessage(answer))
		if err != nil {
			t.Errorf("%s: %v", answer, err)
			continue
		}
		got := told(Classify([]Group{g}, sampleNode(t)))
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
	for answer, want := range map[string]string{
		`null`: "it knows no such node", `{}`: "it knows no such node", `[1]`: "an object with classes", `{"classes":7}`: "classes: a list of names",
		`{"classes":["No Class"]}`: "classes: a class like", `{"environment":"a-b"}`: "environment:", `{"parameters":{"facts":1}}`: "Puppet's own",
	} {
		if _, err := External(json.RawMessage(answer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", answer, err, want)
		}
	}
}
