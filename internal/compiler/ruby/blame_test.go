package ruby

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

// Puppet's errors about what groups give name the group for people; the message for agents stays Puppet's.
func TestErrorsNameTheGroup(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"manifests/site.pp":                 "if $facts['assigns'] { $tier = 'gold' }\nif $facts['includes'] { include nothing::here }\n",
		"modules/role/manifests/init.pp":    "class role(Integer $port) { }\n",
		"modules/role/manifests/broken.pp":  "class role::broken { fail('because') }\n",
		"modules/role/manifests/twofold.pp": "class role::twofold(Integer $a = 1, Integer $b = 1) { }\n",
	})
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("blame"): root})
	const web = "group Web servers"
	for name, tt := range map[string]struct {
		classes, parameters, data, facts string
		given                            []compile.Given
		words, from                      string
	}{
		"a class that does not exist": {
			classes: `{"role::wbe":{}}`, given: []compile.Given{{Kind: compile.GivenClass, Class: "role::wbe", From: web}},
			words: "Could not find class role::wbe for", from: "class role::wbe comes from " + web,
		},
		"a class of two groups": {
			classes: `{"role::wbe":{}}`,
			given:   []compile.Given{{Kind: compile.GivenClass, Class: "role::wbe", From: web}, {Kind: compile.GivenClass, Class: "role::wbe", From: "group Debian"}},
			words:   "Could not find class role::wbe", from: "class role::wbe comes from " + web + " and group Debian",
		},
		"a parameter that does not exist": {
			classes: `{"role":{"port":1,"prot":2}}`, given: []compile.Given{
				{Kind: compile.GivenClass, Class: "role", From: web},
				{Kind: compile.GivenParameter, Class: "role", Name: "port", From: web},
				{Kind: compile.GivenParameter, Class: "role", Name: "prot", From: "group Typists"},
			},
			words: "has no parameter named 'prot'", from: "parameter role::prot comes from group Typists",
		},
		"a value of another type": {
			classes: `{"role":{"port":"x"}}`,
			given:   []compile.Given{{Kind: compile.GivenParameter, Class: "role", Name: "port", From: web}},
			words:   "parameter 'port' expects an Integer value, got String", from: "parameter role::port comes from " + web,
		},
		"several parameters": {
			classes: `{"role::twofold":{"a":"x","b":"y"}}`,
			given: []compile.Given{
				{Kind: compile.GivenParameter, Class: "role::twofold", Name: "b", From: web}, {Kind: compile.GivenParameter, Class: "role::twofold", Name: "a", From: web},
			},
			words: "parameter 'b' expects an Integer", from: "parameter role::twofold::a comes from " + web + "; parameter role::twofold::b comes from " + web,
		},
		"data of another type": {
			classes: `{"role":{}}`, data: `{"role::port":"x"}`, given: []compile.Given{
				{Kind: compile.GivenClass, Class: "role", From: web}, {Kind: compile.GivenData, Class: "role", Name: "port", From: web},
			},
			words: "parameter 'port' expects an Integer value, got String", from: "data role::port comes from " + web,
		},
		"a value that is missing": {
			classes: `{"role":{}}`, given: []compile.Given{{Kind: compile.GivenClass, Class: "role", From: web}},
			words: "expects a value for parameter 'port'", from: "class role comes from " + web,
		},
		"a variable that code assigns, too": {
			parameters: `{"tier":"gold"}`, facts: `{"assigns":true}`, given: []compile.Given{{Kind: compile.GivenVariable, Name: "tier", From: web}},
			words: "Cannot reassign variable '$tier'", from: "variable $tier comes from " + web,
		},
		"what code includes": {
			facts: `{"includes":true}`, given: []compile.Given{
				{Kind: compile.GivenClass, Class: "role", From: web}, {Kind: compile.GivenClass, Class: "nothing", From: web},
			},
			words: "Could not find class ::nothing::here",
		},
		"what a class itself refuses": {
			classes: `{"role::broken":{}}`, given: []compile.Given{{Kind: compile.GivenClass, Class: "role::broken", From: web}}, words: "because",
		},
	} {
		o := order(t, "production", "blame", "web-1.example.org")
		o.Classes, o.Parameters, o.Data, o.Given = json.RawMessage(tt.classes), json.RawMessage(tt.parameters), json.RawMessage(tt.data), tt.given
		if tt.facts != "" {
			o.Facts = json.RawMessage(tt.facts)
		}
		puppets := fails(t, pool, o)
		blamed, ok := errors.AsType[*compile.Error](o.Blamed(puppets))
		if !ok || blamed.Message != puppets.Message || !strings.Contains(blamed.Message, tt.words) || blamed.From != tt.from {
			t.Errorf("%s: %q from %q, want %q from %q", name, blamed.Message, blamed.From, tt.words, tt.from)
		}
		if tt.from != "" && (blamed.Told() != puppets.Message+"; "+tt.from || !strings.HasSuffix(blamed.Plain(), "; "+tt.from) || blamed.Error() != puppets.Message) {
			t.Errorf("%s: people are told %q", name, blamed.Told())
		}
	}
}
