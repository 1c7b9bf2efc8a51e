package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/e2e/truth"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/event"
	"github.com/tutti-project/tutti/internal/fleet"
	"github.com/tutti-project/tutti/internal/pki/pkitest"
)

// netStory is mistakes of the past, put back together, and code that they serve a wrong catalog of. What one of them hides is a resource
// of its own; one that is not hidden would be an input of the whole catalog, and make it new.
type netStory struct {
	name     string
	mistakes []mistake
	files    map[string]string // of the version
	changed  map[string]string // of the next one, which keeps the rest; none: only the list below changes
	list     []any             // the fact deep.list afterwards; nil: as before
	wrong    []string          // nodes that are wrong at once; none: the first, after the change
	stale    []string          // resources that do not see the change
}

// netFile is where a version's own file is, for the Ruby below.
const netFile = `File.join(Puppet.lookup(:current_environment).modules.first.path, '%s')`

// rubySite gives every node resources with the texts of Ruby functions, by name.
func rubySite(bodies map[string]string) map[string]string {
	files := map[string]string{}
	for name, body := range bodies {
		files["manifests/site.pp"] += fmt.Sprintf("notify { '%s': message => p::%[1]s() }\n", name)
		files["modules/p/lib/puppet/functions/p/"+name+".rb"] = "Puppet::Functions.create_function(:'p::" + name + "') do\n  def text\n    " + body +
			"\n  end\n  dispatch(:text) {}\nend\n"
	}
	return files
}

// readInC is Ruby that reads the same file without Ruby's File.
func readInC() map[string]string {
	one := fmt.Sprintf(netFile, "one")
	return map[string]string{
		"zlib": "require 'zlib'\n    Zlib::GzipReader.open(" + fmt.Sprintf(netFile, "zipped") + ") { |f| f.read }",
		"stat": "File::Stat.new(" + one + ").size.to_s",
		"argf": "begin\n      kept = ARGV.dup\n      ARGV.replace([" + one + "])\n      ARGF.read\n    ensure\n      ARGV.replace(kept)\n    end",
		"store": "require 'openssl'\n    begin\n      OpenSSL::X509::Store.new.add_file(" + fmt.Sprintf(netFile, "ca.pem") +
			")\n      'good'\n    rescue OpenSSL::X509::StoreError\n      'bad'\n    end",
		"types": "Dir.children(" + fmt.Sprintf(netFile, "types") + ").sort.inspect",
	}
}

// takenInC is Ruby that gives a hash of facts to functions in C.
func takenInC() map[string]string {
	hash := "h = closure_scope['facts']['deep']\n    h['z']\n    "
	return map[string]string{
		"merge": hash + "{}.merge(h).to_a.inspect", "hash": hash + "Hash[h].to_a.inspect", "marshal": hash + "Marshal.load(Marshal.dump(h)).to_a.inspect",
	}
}

// netStories put back what made wrong catalogs and old ones.
func netStories(t *testing.T) []netStory {
	t.Helper()
	half := mistake{"loads.rb", "@known_resource_types = @loaders = @parsed_code = nil", ""}
	loaders := mistake{"compiler.rb", "{ current_environment: @environment, loaders: loaders }", "{ current_environment: @environment }"}
	return []netStory{
		{
			name: "a node that is there twice", mistakes: []mistake{half}, wrong: []string{"db1.example"},
			files: map[string]string{"manifests/site.pp": "node 'a' { }\nnode 'a' { }\nnode default { notify { 'always': } }\n"},
		},
		{
			name: "a class that is a defined type as well", mistakes: []mistake{half},
			files: map[string]string{
				"manifests/a.pp": "class same { }\n", "manifests/b.pp": "define same() { }\n", "manifests/c.pp": "notify { 'always': }\n",
				"environment.conf": "manifest = manifests\n",
			},
			wrong: []string{"db1.example"}, // the first node has the mistake that is kept from the second
		},
		{
			name: "a function and a type alias beside the nodes", mistakes: []mistake{half, loaders}, wrong: []string{"web1.example", "db1.example"},
			files: map[string]string{
				"manifests/a.pp": "function sitefn($x) { \"fn ${x}\" }\n", "manifests/b.pp": "type Sitealias = String\n",
				"manifests/c.pp":   "notify { 'always': message => sitefn('a') }\nnotify { 'alias': message => assert_type(Sitealias, 'b') }\n",
				"environment.conf": "manifest = manifests\n",
			},
		},
		{
			name: "templates whose variables are not seen", wrong: []string{"web1.example"},
			mistakes: []mistake{
				// a scanner of ours took the tag to end there
				{"templates.rb", "TemplateScan.variables(erb.src)", "TemplateScan.variables(erb.src.sub(/.*%>' \\+.*/, ''))"},
				{"template_scan.rb", "when :@kw then throw(:unknown) if node[1] == 'self'", "when :@kw then nil"},
				{"templates.rb", "tutti_bind_all; super; end", "super; end"},
			},
			files: map[string]string{
				"manifests/site.pp":                        "notify { 'tag': message => template('p/tag.erb') }\nnotify { 'self': message => template('p/self.erb') }\n",
				"modules/p/templates/tag.erb":              "<% s = '%%>' + @role.to_s %><%= s %>",
				"modules/p/templates/self.erb":             "<%= scope.call_function('p::role', [self]) %>",
				"modules/p/lib/puppet/functions/p/role.rb": "Puppet::Functions.create_function(:'p::role') do\n  def role(given)\n    given.instance_variable_get(:@role).to_s\n  end\nend\n",
			},
			stale: []string{"Notify[tag]", "Notify[self]"},
		},
		{
			name: "files below a directory with a harmless name",
			mistakes: []mistake{
				{"file_reads.rb", "return seen_inside(kind, inside) if inside", "return inside.include?('/facter/') || seen_inside(kind, inside) if inside"},
			},
			files: map[string]string{
				"manifests/site.pp": "notify { 'template': message => template('p/facter/role.erb') }\nnotify { 'file': message => file('p/facter/role.txt') }\n" +
					"notify { 'hiera': message => lookup('text') }\nnotify { 'module': message => template('facter/role.erb') }\n",
				"modules/p/templates/facter/role.erb": "one", "modules/p/files/facter/role.txt": "one", "modules/facter/templates/role.erb": "one",
				"data/facter/web.yaml": "text: one\n", "hiera.yaml": "version: 5\nhierarchy:\n  - name: all\n    path: facter/web.yaml\n",
			},
			changed: map[string]string{
				"modules/p/templates/facter/role.erb": "two", "modules/p/files/facter/role.txt": "two", "modules/facter/templates/role.erb": "two",
				"data/facter/web.yaml": "text: two\n",
			},
			stale: []string{"Notify[template]", "Notify[file]", "Notify[hiera]", "Notify[module]"},
		},
		{
			name: "hashes of facts that are taken in C", list: []any{"new"},
			mistakes: []mistake{
				{"fact_hashes.rb", "%i[merge merge! update transform_keys", "%i[transform_keys"},
				{"fact_hashes.rb", "Hash.singleton_class.prepend(Makers)", ""},
				{"fact_hashes.rb", "Marshal.singleton_class.prepend(Dumps)", ""},
			},
			files: withFiles(rubySite(takenInC()), map[string]string{
				"manifests/site.pp":            "notify { 'erb': message => template('p/deep.erb') }\n",
				"modules/p/templates/deep.erb": "<% h = scope['deep']; h['z'] -%><%= {}.merge(h).to_a.inspect %>",
			}),
			stale: []string{"Notify[merge]", "Notify[hash]", "Notify[marshal]", "Notify[erb]"},
		},
		{
			name: "files that are read in C",
			mistakes: []mistake{
				{"native_reads.rb", "['Zlib::GzipReader', :own, %i[open], :path],", ""},
				{"native_reads.rb", "['OpenSSL::X509::Store', :each, %i[add_file], :path],", ""},
				{"native_reads.rb", "['ARGF.class', :each, STREAM + %i[lineno file filename path skip to_a fileno], INPUT],", ""},
				{"file_reads.rb", "[File, File::Stat].each", "[File].each"},
				{"file_reads.rb", "direct = Lookups.covered?(inside) && !Loading.by_puppet?(LOADERS)", "direct = false"},
			},
			files: withFiles(rubySite(readInC()), map[string]string{
				"modules/p/one": "one", "modules/p/zipped": gzipped("one"), "modules/p/types/one.pp": "type P::One = String\n", "modules/p/ca.pem": certificate(t),
			}),
			changed: map[string]string{
				"modules/p/one": "second", "modules/p/zipped": gzipped("two"), "modules/p/types/two.pp": "type P::Two = String\n", "modules/p/ca.pem": "no certificate",
			},
			stale: []string{"Notify[zlib]", "Notify[stat]", "Notify[argf]", "Notify[store]", "Notify[types]"},
		},
	}
}

// certificate is any, as PEM.
func certificate(t *testing.T) string {
	t.Helper()
	made := pkitest.Enrol(t, pkitest.Open(t), "any", nil)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate[0]}))
}

// gzipped is text as Zlib reads it.
func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text)) // memory takes it
	_ = w.Close()
	return out.String()
}

// withFiles adds texts to those of files.
func withFiles(files, more map[string]string) map[string]string {
	for path, text := range more {
		files[path] += text
	}
	return files
}

// Plain Puppet beside finds each of the mistakes that once served an old catalog under a new version's number, or a catalog where there is
// none, when it is put back: before anything changed both agree, so that it is the mistake that is found.
func TestVerifyFindsWhatStandsAlthoughItIsOld(t *testing.T) {
	t.Parallel()
	for _, story := range netStories(t) {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			w := truth.New(1, "site-function") // for its nodes and their facts
			w.Files, w.Group = story.files, truth.Group{}
			s := newTruthServer(t, nil, strictness{}, func(s *truthServer) {
				for _, m := range story.mistakes {
					putBack(t, filepath.Join(s.rubyCode(), m.file), m.plainly, m.mistaken)
				}
			}).enter(t, w)
			s.served()
			if len(story.wrong) > 0 {
				for _, node := range story.wrong {
					s.verified(node, compile.Differs, story.stale)
				}
				return
			}
			s.verified("web1.example", compile.Same, nil)
			maps.Copy(w.Files, story.changed)
			if story.list != nil {
				w.Nodes[0].Facts = w.Nodes[0].Facts.With(story.list, "deep", "list")
				s.around()
			}
			s.deploy()
			s.served()
			s.verified("web1.example", compile.Differs, story.stale)
			s.alarmed("web1.example")
		})
	}
}

// alarmed looks for the alarm about a node's catalog wherever people look.
func (s *truthServer) alarmed(node fleet.Certname) {
	s.t.Helper()
	_, status, err := s.p.deployments().Status(s.t.Context(), "production")
	s.must(err)
	if len(status.Wrong) != 1 || status.Wrong[0] != node {
		s.t.Errorf("the version's status names %v", status.Wrong)
	}
	page, err := s.p.events.Events(s.t.Context(), event.Filter{Kinds: []string{event.Alarm}, Limit: 10})
	s.must(err)
	if len(page.Events) != 1 || page.Events[0].Node != node || !strings.Contains(page.Events[0].Message, "is not what plain Puppet gives") {
		s.t.Errorf("the alarms among events are %+v", page.Events)
	}
	w := httptest.NewRecorder()
	s.p.metrics.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	if !strings.Contains(w.Body.String(), "\ntutti_verify_differs_total 1\n") {
		s.t.Error("the metrics count no difference")
	}
	before := s.p.reuser.Stats().Reused
	s.served()
	if after := s.p.reuser.Stats().Reused; after != before {
		s.t.Errorf("%d catalogs of the version were used again after the alarm", after-before)
	}
}

// verified asks plain Puppet about the catalog that a node has. All of some resources must be found.
func (s *truthServer) verified(node string, want compile.VerifyOutcome, resources []string) {
	s.t.Helper()
	v, err := s.p.verifier.Verify(s.t.Context(), fleet.Certname(node), "production", s.version)
	s.must(err)
	found, err := json.Marshal(v.Differences)
	s.must(err)
	if v.Outcome != want {
		s.t.Errorf("%s: %s (%s) %s, want %s", node, v.Outcome, v.Reason, found, want)
	}
	for _, resource := range resources {
		if !slices.ContainsFunc(v.Differences, func(d compile.Difference) bool { return d.Resource == resource }) {
			s.t.Errorf("%s: nothing is found of %s: %s", node, resource, found)
		}
	}
	s.t.Logf("%s: %s %s %.300s", node, v.Outcome, v.Reason, found)
}
