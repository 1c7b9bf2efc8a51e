package ruby

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// dataCode has a class whose parameters come from its defaults, Hiera, or groups.
var dataCode = map[string]string{
	"environment.conf":  "modulepath = modules\n",
	"hiera.yaml":        "version: 5\nhierarchy:\n  - name: common\n    path: common.yaml\n",
	"data/common.yaml":  "cfg::hiera: from hiera\ncfg::both: from hiera\ncfg::list: [hiera, shared]\n",
	"manifests/site.pp": "include cfg\nnotify { 'list': message => lookup('cfg::list', Array, 'unique').join(',') }\nnotify { 'deep': message => lookup('cfg::deep.key', { 'default_value' => 'none' }) }\n",
	"modules/cfg/manifests/init.pp": "class cfg($default = 'from default', $group = 'from default', $hiera = 'from default', $both = 'from default', $list = []) {\n" +
		"  notify { 'cfg': message => \"${default}, ${group}, ${hiera}, ${both}\" }\n}\n",
}

// What groups give goes before Hiera, merges with it, and is one node's only.
func TestGroupDataIsTheTopmostLayer(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1}, directories{version("data"): tree(t, dataCode)})
	with, without := order(t, "production", "data", "with.example.org"), order(t, "production", "data", "without.example.org")
	with.Data = json.RawMessage(`{"cfg::group":"from %{group}","cfg::both":"from group","cfg::list":["group","shared"],"cfg::deep":{"key":"found"}}`)
	plain := map[string]any{"cfg": "from default, from default, from hiera, from hiera", "list": "hiera,shared", "deep": "none"}
	given := map[string]any{"cfg": "from default, from %{group}, from hiera, from group", "list": "group,shared,hiera", "deep": "found"}
	for i, want := range []map[string]any{plain, given, plain} {
		o := without
		if i == 1 {
			o = with
		}
		c, got := mustCompile(t, pool, o), map[string]any{}
		for title := range want {
			got[title] = c.find("Notify[" + title + "]").Parameters["message"]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("compile %d (-want +got):\n%s", i, diff)
		}
	}
}
