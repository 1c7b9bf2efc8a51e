package server

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/e2e/truth"
)

// debianModules is where Debian's packages put modules, as links.
const debianModules = "/usr/share/puppet/modules"

// moduleNodes are the nodes of internal/compiler/ruby/testdata/modules, each of which is named after a module.
var moduleNodes = regexp.MustCompile(`(?m)^node /\^(\w+)\\\.`)

// leastOfAModule is how many resources of each module's own code are compared at least.
const leastOfAModule = 1

// Catalogs of real modules are those of plain Puppet when an agent asks for static ones, too, with the metadata of each file.
// Modules are the environment's own: Puppet leaves files of others to the agent.
func TestModulesAreStaticAsPuppets(t *testing.T) {
	t.Parallel()
	site, err := os.ReadFile("../compiler/ruby/testdata/modules/manifests/site.pp")
	if err != nil {
		t.Fatal(err)
	}
	w := &truth.World{Files: map[string]string{"manifests/site.pp": string(site), "environment.conf": "modulepath = modules\nmanifest = manifests\n"}}
	addModules(t, w.Files)
	w.Files["manifests/files.pp"] = filesOf(w.Files)
	w.Nodes = append(w.Nodes, moduleNode(t, "files.example.org"))
	for _, node := range moduleNodes.FindAllSubmatch(site, -1) {
		w.Nodes = append(w.Nodes, moduleNode(t, string(node[1])+".example.org"))
	}
	if len(w.Nodes) < 26 {
		t.Fatalf("%d nodes, want one for each of 25 modules and one with all files", len(w.Nodes))
	}
	s := newTruthServer(t, startPlain(t), strictness{}, nil).enter(t, w)
	if difference := s.check(); difference != "" {
		t.Error(difference)
	}
	if s.failed > 0 {
		t.Errorf("%d of %d nodes have no catalog", s.failed, s.equal)
	}
	files := 0
	for name, result := range s.fresh() {
		var c struct {
			Metadata, RecursiveMetadata map[string]json.RawMessage
			Resources                   []struct{ File, Type string }
		}
		if err := json.Unmarshal(bytes.ReplaceAll(result.Catalog, []byte("recursive_metadata"), []byte("recursivemetadata")), &c); err != nil {
			t.Fatal(err)
		}
		files += len(c.Metadata) + len(c.RecursiveMetadata)
		own := 0
		module, _, _ := strings.Cut(name, ".")
		for _, resource := range c.Resources {
			if strings.Contains(resource.File, "/modules/"+module+"/") || strings.EqualFold(resource.Type, module) { // some have types only
				own++
			}
		}
		t.Logf("%-16s %d files, %d directories with metadata, %d resources of the module's own code", name, len(c.Metadata), len(c.RecursiveMetadata), own)
		if module != "files" && own < leastOfAModule {
			t.Errorf("%s: %d resources come of the module's own code: that compares nothing of it", name, own)
		}
	}
	if files < 10 {
		t.Errorf("only %d files and directories of modules were compared", files)
	}
}

// filesOf is a node with all that modules have below files/.
func filesOf(files map[string]string) string {
	of := map[string]bool{}
	for path := range files {
		if parts := strings.Split(path, "/"); len(parts) > 3 && parts[2] == "files" {
			of[parts[1]+"/"+parts[3]] = true
		}
	}
	site := "node /^files\\./ {\n"
	for _, path := range slices.Sorted(maps.Keys(of)) {
		site += "  file { '/all/" + path + "': recurse => true, source => 'puppet:///modules/" + path + "' }\n" +
			"  file { '/one/" + path + "': source => 'puppet:///modules/" + path + "', checksum => 'md5' }\n"
	}
	return site + "}\n"
}

// addModules copies the text of all installed modules.
func addModules(t *testing.T, files map[string]string) {
	t.Helper()
	links, err := os.ReadDir(debianModules)
	if err != nil {
		t.Fatalf("no Puppet modules here: make test-deps (%v)", err)
	}
	for _, link := range links {
		root, err := filepath.EvalSymlinks(filepath.Join(debianModules, link.Name()))
		if err != nil {
			t.Fatal(err)
		}
		err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || strings.Contains(path, "/spec/") {
				return err
			}
			text, err := os.ReadFile(path)
			files["modules/"+link.Name()+strings.TrimPrefix(path, root)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func moduleNode(t *testing.T, name string) *truth.Node {
	t.Helper()
	text, err := os.ReadFile("../compiler/ruby/testdata/facts/debian12.json")
	if err != nil {
		t.Fatal(err)
	}
	host, _, _ := strings.Cut(name, ".")
	node := &truth.Node{Name: name}
	for into, text := range map[*truth.Object]string{
		&node.Facts: strings.ReplaceAll(string(text), "node1.example.org", name),
		&node.Trusted: `{"authenticated":"remote","certname":"` + name + `","extensions":{"pp_role":"test"},"hostname":"` + host +
			`","domain":"example.org","external":{}}`,
	} {
		if *into, err = truth.ParseObject([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	return node
}
