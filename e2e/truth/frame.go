package truth

import (
	"strings"
)

// finish writes the site manifests, hiera.yaml and environment.conf.
func (b *builder) finish() {
	b.frame()
	if len(b.options) > 0 {
		b.file("+data/common.yaml", "lookup_options:\n"+strings.Join(b.options, "\n")+"\n")
	}
	b.w.Files["hiera.yaml"] = "---\nversion: 5\ndefaults: { datadir: data, data_hash: yaml_data }\nhierarchy:\n" +
		"  - { name: node, path: \"nodes/%{trusted.certname}.yaml\" }\n  - { name: role, path: \"role/%{facts.role}.yaml\" }\n" +
		strings.Join(append(b.levels, ""), "\n") +
		"  - { name: rest, paths: [\"kernel/%{::kernel}.yaml\", common.yaml] }\n"
}

// frame puts the node's statements into one of the places where people put them.
func (b *builder) frame() {
	w := b.w
	top, body := strings.Join(b.top, "\n")+"\n", strings.Join(b.body, "\n")+"\n"
	top = "$site_var = ['of the site', $facts['role']]\n" + top
	role := "class role {\n" + body + "}\n"
	conf, site := "", "manifests/site.pp"
	switch b.r.IntN(10) {
	case 0: // everything at the top
		w.Files[site] = top + body
	case 1:
		w.Files[site] = top + "node default {\n" + body + "}\n"
	case 2: // a directory of manifests
		w.Files["manifests/00-first.pp"] = top
		site = "manifests/sub/nodes.pp"
		w.Files[site] = "node default {\n" + body + "}\n"
	case 3: // names and expressions
		w.Files[site] = top + "node 'web1.example', 'other.example' {\n include role\n notify { 'by name': }\n}\nnode /^db\\d+\\./ {\n include role\n" +
			" notify { \"by expression ${0}\": }\n}\n" +
			"node default { fail('nobody') }\n"
		w.Files["modules/role/manifests/init.pp"] = role
	case 4: // another manifest, and two directories of modules
		conf, site = "manifest = site/main.pp\nmodulepath = site:modules:$basemodulepath\n", "site/main.pp"
		w.Files[site] = top + "include role\n"
		w.Files["site/role/manifests/init.pp"] = role
	case 5: // a group gives the class
		conf = "modulepath = modules\nenvironment_timeout = 0\n"
		w.Files[site] = top
		w.Files["modules/role/manifests/init.pp"] = role
		w.class("role")
	case 6: // a class beside the nodes
		w.Files[site] = top + role + "node default { contain role }\n"
	case 7, 8: // directories of modules that a pattern names, the first of which has the module that counts; and what is of the environment only
		conf = "modulepath = sites/*/modules:modules:$basemodulepath\nmanifest = manifests\nenvironment_timeout = unlimited\n"
		w.Files[site] = top + "include role\n"
		w.Files["sites/a/modules/role/manifests/init.pp"] = role
		w.Files["sites/b/modules/role/manifests/init.pp"] = "class role { fail('the second directory') }\n"
		w.Files["modules/role/manifests/init.pp"] = "class role { fail('the last directory') }\n"
		w.comes["sites/c/modules/other/manifests/init.pp"] = "class other { }\n"
	default: // another directory
		conf, site = "manifest = nodes\n", "nodes/a.pp"
		w.Files[site] = top
		w.Files["nodes/b.pp"] = "if $facts['kernel'] == 'Linux' { include role } else { notify { 'no Linux': } }\n"
		w.Files["modules/role/manifests/init.pp"] = role
	}
	if conf != "" || b.r.IntN(2) == 0 {
		w.Files["environment.conf"] = conf
	}
	w.site = site
}
