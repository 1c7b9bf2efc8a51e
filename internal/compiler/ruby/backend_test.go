package ruby

import (
	"slices"
	"testing"
)

// A function that Hiera asks for data is code that the catalog was made of, whoever
// of a zygote's compiles loaded it.
func TestBackendsOfHieraAreNoted(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("v"): tree(t, map[string]string{
		"environment.conf":  "modulepath = modules\n",
		"hiera.yaml":        "---\nversion: 5\nhierarchy: [{ name: f, lookup_key: answers, options: {} }]\n",
		"manifests/site.pp": "notify { 'x': message => lookup('anything') }\n",
		"modules/own/lib/puppet/functions/answers.rb": "Puppet::Functions.create_function(:answers) do\n" +
			"  dispatch(:act) { param 'String', :key; param 'Hash', :options; param 'Puppet::LookupContext', :context }\n" +
			"  def act(key, _, context)\n    key == 'anything' ? 'found' : context.not_found\n  end\nend\n",
	})})
	for _, node := range []string{"one.example.org", "two.example.org"} {
		outcome, err := pool.Compile(t.Context(), order(t, "production", "v", node))
		if err != nil {
			t.Fatal(err)
		}
		if got := parse(t, outcome.Catalog).find("Notify[x]").Parameters["message"]; got != "found" {
			t.Errorf("%s: the backend gave %v", node, got)
		}
		if notes := notesOf(outcome.Reads); !slices.Contains(notes, "tree modules/own/lib") {
			t.Errorf("%s: modules/own/lib is none of %v", node, notes)
		}
	}
}
