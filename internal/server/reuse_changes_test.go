package server

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/tutti-project/tutti/internal/classify"
	"github.com/tutti-project/tutti/internal/fleet"
)

// randomChange is one kind of change; do says what it did.
type randomChange struct {
	weight int
	code   bool // it needs a deploy
	do     func(w *reuseWorld, r *rand.Rand, n int) string
}

var randomChanges = []randomChange{
	{10, false, changeFact},
	{4, false, changeUnreadFact},
	{6, false, changeGroup},
	{4, false, changeExport},
	{7, true, changeData},
	{7, true, changeManifest},
	{5, true, changeTemplate},
	{8, true, addFile},
	{6, true, removeFile},
	{3, true, changeSource},
	{4, true, changeRealModule},
	{2, true, changeUnread},
	{3, true, changeHierarchy},
	{3, true, changeConf},
	{4, true, changeModules},
	{4, true, changeCode},
	{2, true, breakOrMend},
}

// change makes one random change and deploys it, where it is one of code.
func (w *reuseWorld) change(r *rand.Rand, n int) string {
	w.t.Helper()
	total := 0
	for _, c := range randomChanges {
		total += c.weight
	}
	at := r.IntN(total)
	for _, c := range randomChanges {
		if at -= c.weight; at < 0 {
			what := c.do(w, r, n)
			if c.code {
				w.deploy()
			}
			return what
		}
	}
	panic("weights")
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

func (w *reuseWorld) setFact(node fleet.Certname, value any, path ...string) string {
	at := w.facts[node]
	for _, key := range path[:len(path)-1] {
		if _, ok := at[key].(map[string]any); !ok {
			at[key] = map[string]any{}
		}
		at = at[key].(map[string]any)
	}
	last := path[len(path)-1]
	if value == nil {
		delete(at, last)
	} else {
		at[last] = value
	}
	w.saveFacts(node)
	return fmt.Sprintf("fact %s of %s = %v", strings.Join(path, "."), node, value)
}

func changeFact(w *reuseWorld, r *rand.Rand, n int) string {
	node := pick(r, reuseNodes...)
	switch r.IntN(11) {
	case 0:
		return w.setFact(node, pick[any](r, 1500, 9000, nil), "networking", "mtu")
	case 1:
		return w.setFact(node, pick[any](r, "11", "12", "13"), "os", "release", "major")
	case 2:
		return w.setFact(node, pick[any](r, "12.11", "12.12"), "operatingsystemrelease")
	case 3:
		return w.setFact(node, fmt.Sprint("v", n), "labels", pick(r, "rack", "room", "row"))
	case 4:
		return w.setFact(node, nil, "labels", pick(r, "room", "row"))
	case 5:
		return w.setFact(node, pick[any](r, "x", nil), "extra")
	case 6:
		return w.setFact(node, pick[any](r, true, false), "is_virtual")
	case 7:
		return w.setFact(node, pick[any](r, "Linux", "GNU/Linux"), "kernel")
	case 8:
		return w.setFact(node, pick[any](r, []string{"a"}, []string{"a", "b"}, nil), "zones")
	case 9:
		return w.setFact(node, n, "memory", pick(r, "free", "used"))
	default:
		return w.setFact(node, pick[any](r, "web", "db", "plain"), "role")
	}
}

func changeUnreadFact(w *reuseWorld, r *rand.Rand, n int) string {
	node := pick(r, reuseNodes...)
	if r.IntN(2) == 0 {
		return w.setFact(node, fmt.Sprint(n, " days"), "uptime")
	}
	return w.setFact(node, n, "os", "distro", "seen")
}

func changeExport(w *reuseWorld, r *rand.Rand, n int) string {
	return w.setFact(pick[fleet.Certname](r, "web1.example", "web2.example"), n, "weight")
}

func changeGroup(w *reuseWorld, r *rand.Rand, n int) string {
	before := w.group
	g := classify.Group{ID: classify.NewID(), Name: "changing", Parent: classify.RootID}
	if before != nil {
		g = *before
	}
	switch r.IntN(5) {
	case 0:
		g.Pinned = []fleet.Certname{pick(r, reuseNodes...)}
	case 1:
		g.Variables = classify.Values{"site_color": json.RawMessage(fmt.Sprintf("%q", fmt.Sprint("c", n)))}
	case 2:
		g.Classes = classify.Classes{"unused": {}}
	case 3:
		g.Classes = nil
	default:
		g.Data = classify.Classes{"profile::base": {"banner": json.RawMessage(fmt.Sprintf("%q", fmt.Sprint("group ", n)))}}
	}
	if len(g.Pinned) == 0 {
		g.Pinned = []fleet.Certname{pick(r, reuseNodes...)}
	}
	saved, err := w.p.store.Groups.ChangeGroups(w.t.Context(), []classify.Change{groupChange(before, g)})
	w.must(err)
	w.group = &saved[0]
	return fmt.Sprintf("group: pinned %v, classes %v, variables %v, data %v", g.Pinned, g.Classes, g.Variables, g.Data)
}

func changeData(w *reuseWorld, r *rand.Rand, n int) string {
	common := func(banner, level string) string {
		return "---\nprofile::base::banner: " + banner + "\nprofile::base::level: " + level +
			"\ndb::settings: { a: 1 }\nweb::port: 80\nntp::servers: [ntp.example]\n" +
			"lookup_options:\n  db::settings: { merge: deep }\n"
	}
	var path, text string
	switch r.IntN(8) {
	case 0:
		path, text = "data/common.yaml", common("hello", fmt.Sprint(n))
	case 1:
		path, text = "data/common.yaml", common(fmt.Sprintf("hello%d", n), "1")
	case 2:
		path, text = "data/role/web.yaml", fmt.Sprintf("---\nweb::port: %d\n", 1000+n)
	case 3:
		path, text = "data/nodes/"+string(pick(r, reuseNodes...))+".yaml", fmt.Sprintf("---\nprofile::base::banner: node%d\n", n)
	case 4:
		path, text = "data/os/"+pick(r, "Debian", "Debian-11", "Debian-13", "RedHat")+".yaml", fmt.Sprintf("---\nquiet::key: os%d\ndb::settings: { b: %d }\n", n, n)
	case 5:
		path, text = "data/more/"+pick(r, "one", "two", "zero")+".yaml", fmt.Sprintf("---\nmore::one: %d\n", n)
	case 6:
		path, text = "data/zone/"+pick(r, "a", "b")+".yaml", fmt.Sprintf("---\nquiet::key: zone%d\n", n)
	default:
		path, text = "data/role/"+pick(r, "db", "plain", "nobody")+".yaml", fmt.Sprintf("---\nquiet::key: role%d\n", n)
	}
	w.write(path, text)
	return path
}

// edit changes a file of the control repository in one place, back and forth.
func (w *reuseWorld) edit(path, old, fresh string) string {
	text, err := os.ReadFile(filepath.Join(w.env, path))
	w.must(err)
	if strings.Contains(string(text), fresh) { // first: fresh may hold old
		old, fresh = fresh, old
	}
	changed := strings.Replace(string(text), old, fresh, 1)
	w.write(path, changed)
	return path + ": " + old + " or " + fresh
}

func changeManifest(w *reuseWorld, r *rand.Rand, n int) string {
	const profile = "modules/profile/manifests/"
	switch r.IntN(8) {
	case 0:
		return w.edit(profile+"base.pp", "include ntp\n", "include ntp # the time\n")
	case 1:
		return w.edit(profile+"web.pp", "port ${port}", "listen ${port}")
	case 2:
		return w.edit(profile+"db.pp", "'/etc/db'", "'/etc/database'")
	case 3:
		return w.edit(profile+"site.pp", "/srv/", "/var/")
	case 4:
		return w.edit("manifests/globals.pp", "'here'", fmt.Sprintf("'there %d'", n%3))
	case 5:
		return w.edit("modules/role/manifests/plain.pp", "include profile::base", "include profile::base notify { 'plain': }")
	case 6:
		return w.edit(profile+"mon.pp", "tag == 'pool'", "tag == 'pool' or tag == 'other'")
	default:
		return w.edit("manifests/site.pp", "node default", "node 'db1.example' { include role::db notify { 'own': } }\nnode default")
	}
}

func changeTemplate(w *reuseWorld, r *rand.Rand, n int) string {
	switch r.IntN(3) {
	case 0:
		return w.edit("modules/profile/templates/motd.erb", " on ", fmt.Sprintf(" at%d ", n%2))
	case 1:
		return w.edit("modules/profile/templates/motd.erb", "virtual<% end %>", "virtual <%= @virtual %><% end %>")
	default:
		return w.edit("modules/profile/templates/issue.epp", "$facts['kernel']", "$facts['virtual']")
	}
}

// optionalFiles come and go: each is looked for, or shadows something.
var optionalFiles = map[string]func(n int) string{
	"modules/profile/manifests/optional.pp":            func(n int) string { return fmt.Sprintf("class profile::optional { notify { 'optional %d': } }\n", n) },
	"modules/profile/files/marker":                     func(int) string { return "" },
	"modules/profile/files/choice-a.txt":               func(n int) string { return fmt.Sprintf("a%d\n", n) },
	"modules/profile/files/one.web1":                   func(n int) string { return fmt.Sprintf("web1 %d\n", n) },
	"modules/profile/files/tree/sub/b":                 func(n int) string { return fmt.Sprintf("b%d\n", n) },
	"modules/profile/hiera.yaml":                       func(int) string { return "---\nversion: 5\nhierarchy: [{ name: module, path: common.yaml }]\n" },
	"modules/profile/data/common.yaml":                 func(n int) string { return fmt.Sprintf("---\nprofile::base::names: [x%s]\n", letters(n)) },
	"modules/ntp/manifests/init.pp":                    func(n int) string { return fmt.Sprintf("class ntp { notify { 'our own ntp %d': } }\n", n) },
	"modules/profile/lib/puppet/functions/to_json.rb":  func(int) string { return strings.Replace(rubyFunction("to_json", "", "'{}'"), "profile::", "", 1) },
	"modules/aaa/lib/puppet/functions/stdlib_extra.rb": func(int) string { return "# nothing\n" },
	"modules/aaa/manifests/init.pp":                    func(int) string { return "class aaa { }\n" },
	"modules/profile/lib/puppet/type/profile_thing.rb": func(int) string { return "Puppet::Type.newtype(:profile_thing) { newparam(:name) }\n" },
	"functions/level.pp":                               func(int) string { return "function environment::level(Integer $n) >> String { \"e${n}\" }\n" },
	"manifests/extra.pp":                               func(n int) string { return fmt.Sprintf("notify { 'from the top %d': }\n", n) },
	"data/nodes/web2.example.yaml":                     func(n int) string { return fmt.Sprintf("---\nweb::port: %d\n", 2000+n) },
	"modules/profile/metadata.json": func(int) string {
		return `{"name":"us-profile","version":"1.0.0","author":"us","license":"x","summary":"","source":"","dependencies":[{"name":"puppetlabs/stdlib"},{"name":"puppetlabs/concat"},{"name":"puppetlabs/ntp"},{"name":"puppetlabs/inifile"}]}`
	},
	"modules/profile/lib/puppet/functions/puppetdb_query.rb": func(int) string {
		return "Puppet::Functions.create_function(:puppetdb_query) do\n  dispatch(:act) { param 'String', :query }\n  def act(query)\n    [1, 2, 3]\n  end\nend\n"
	},
}

func letters(n int) string { return strings.Repeat("x", n%7) }

var optionalNames = sortedNames(optionalFiles)

func addFile(w *reuseWorld, r *rand.Rand, n int) string {
	path := pick(r, optionalNames...)
	w.write(path, optionalFiles[path](n))
	return "new file " + path
}

func removeFile(w *reuseWorld, r *rand.Rand, n int) string {
	var there []string
	for _, path := range optionalNames {
		if w.exists(path) {
			there = append(there, path)
		}
	}
	if len(there) == 0 {
		return addFile(w, r, n)
	}
	path := pick(r, there...)
	w.must(os.Remove(filepath.Join(w.env, path)))
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if os.Remove(filepath.Join(w.env, dir)) != nil { // not empty
			break
		}
	}
	return "removed " + path
}

func changeSource(w *reuseWorld, r *rand.Rand, n int) string {
	path := pick(r, "files/one", "files/tree/a", "files/choice-b.txt", "data/table.txt")
	w.write("modules/profile/"+path, fmt.Sprintf("content %d\n", n))
	return path
}

func changeRealModule(w *reuseWorld, r *rand.Rand, n int) string {
	var path string
	mark := fmt.Sprintf("# change %d\n", n)
	switch r.IntN(6) {
	case 0:
		path = "ntp/templates/ntp.conf.epp"
	case 1:
		path = "ntp/manifests/config.pp"
	case 2:
		path = "stdlib/lib/puppet/functions/to_json.rb"
	case 3:
		path = "concat/manifests/fragment.pp"
	case 4:
		path = "inifile/lib/puppet/type/ini_setting.rb"
	default:
		path, mark = "ntp/data/common.yaml", fmt.Sprintf("# %d\n", n)
	}
	text, err := os.ReadFile(filepath.Join(w.base, path))
	w.must(err)
	w.writeTo(filepath.Join(w.base, path), string(text)+mark)
	return path
}

func changeUnread(w *reuseWorld, r *rand.Rand, n int) string {
	path := pick(r, "README.txt", "modules/unused/files/x", "modules/unused/templates/y.erb")
	w.write(path, fmt.Sprint(n))
	return path
}

// changeHierarchy changes hiera.yaml itself.
func changeHierarchy(w *reuseWorld, r *rand.Rand, n int) string {
	switch r.IntN(4) {
	case 0:
		return w.edit("hiera.yaml", "  - { name: common, path: common.yaml }\n", "  - { name: common, paths: [early.yaml, common.yaml] }\n")
	case 1:
		return w.edit("hiera.yaml", "path: \"role/%{facts.role}.yaml\"", "path: \"role/%{facts.role}-%{facts.kernel}.yaml\"")
	case 2:
		w.write("data/early.yaml", fmt.Sprintf("---\nquiet::key: early%d\n", n))
		return "data/early.yaml"
	default:
		return w.edit("hiera.yaml", "hierarchy:\n", "hierarchy:\n  - { name: new, path: \"%{facts.is_virtual}.yaml\" }\n")
	}
}

// changeConf changes where modules and manifests come from.
func changeConf(w *reuseWorld, r *rand.Rand, _ int) string {
	path := pick(r, "modules:", "site:modules:", "modules:site:")
	manifest := pick(r, "", "manifest = manifests\n", "manifest = manifests/site.pp\n")
	w.write("environment.conf", "modulepath = "+path+w.base+"\n"+manifest)
	return "environment.conf: " + path + " " + manifest
}

// siteModules are whole modules that come and go; some hide others.
var siteModules = map[string]map[string]string{
	"site/ntp":   {"manifests/init.pp": "class ntp { notify { 'ntp of the site': } }\n"},
	"site/extra": {"functions/none.pp": "function extra::none() { 1 }\n", "lib/facter/extra.rb": "Facter.add(:extra) { setcode { 'x' } }\n"},
	"modules/late": {
		"lib/puppet/type/notify.rb":                  "Puppet::Type.newtype(:notify) { newparam(:name) { isnamevar }\n newproperty(:message) }\n",
		"lib/puppet/parser/functions/template.rb":    "# nothing\n",
		"lib/puppet/parser/functions/old_style_2.rb": "Puppet::Parser::Functions.newfunction(:old_style_2, type: :rvalue) { |args| args[0] }\n",
		"types/name.pp":                              "type Late::Name = String\n",
	},
	"modules/inifile": {"metadata.json": `{"name":"us-inifile","version":"1.0.0","author":"us","license":"x","summary":"","source":"","dependencies":[]}`},
}

var siteNames = sortedNames(siteModules)

func changeModules(w *reuseWorld, r *rand.Rand, _ int) string {
	name := pick(r, siteNames...)
	if w.exists(name) {
		w.must(os.RemoveAll(filepath.Join(w.env, name)))
		return "no module " + name
	}
	for path, text := range siteModules[name] {
		w.write(name+"/"+path, text)
	}
	return "new module " + name
}

// changeCode changes functions and types.
func changeCode(w *reuseWorld, r *rand.Rand, n int) string {
	switch r.IntN(5) {
	case 0:
		return w.edit("modules/profile/functions/level.pp", "level ${n}", "Level ${n}")
	case 1:
		return w.edit("modules/profile/types/name.pp", "[a-z]+", "[a-y]+")
	case 2:
		return w.edit("modules/profile/lib/profile_text.rb", "upcase", "capitalize")
	case 3:
		return w.edit("modules/profile/lib/puppet/functions/profile/table.rb", "'table.txt'", "'other.txt'")
	default:
		w.write("modules/profile/lib/facter/own.rb", fmt.Sprintf("Facter.add(:own) { setcode { %d } }\n", n))
		return "a fact of the module profile"
	}
}

// breakOrMend makes code that does not compile for some nodes, or mends it.
func breakOrMend(w *reuseWorld, r *rand.Rand, _ int) string {
	return w.edit("modules/profile/manifests/"+pick(r, "web", "db")+".pp", "lookup('", "looked_up('")
}
