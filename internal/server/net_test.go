package server

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"github.com/tutti-project/tutti/e2e/truth"
	"github.com/tutti-project/tutti/internal/compile"
	"github.com/tutti-project/tutti/internal/fleet"
)

// netStory is a mistake of the past, and code that it serves a wrong catalog of.
type netStory struct {
	name     string
	mistakes []mistake
	files    map[string]string // of the version
	changed  map[string]string // of the next one, which keeps the rest; none: only the list below changes
	list     []any             // the fact deep.list afterwards; nil: as before
	wrong    []string          // nodes that are wrong at once; none: those that do not see the change
}

// netFile is where a version's own file is, for the Ruby and the templates below.
const netFile = `File.join(Puppet.lookup(:current_environment).modules.first.path, '%s')`

// rubySite gives every node a resource with the text of a Ruby function.
func rubySite(body string) map[string]string {
	return map[string]string{
		"manifests/site.pp": "notify { 'text': message => p::text() }\n",
		"modules/p/lib/puppet/functions/p/text.rb": "Puppet::Functions.create_function(:'p::text') do\n  def text\n    " + body +
			"\n  end\n  dispatch(:text) {}\nend\n",
	}
}

// netStories put back what made wrong catalogs and old ones.
func netStories() []netStory {
	harmless := []mistake{{"file_reads.rb", "return seen_inside(kind, inside) if inside", "return inside.include?('/facter/') || seen_inside(kind, inside) if inside"}}
	facts := "closure_scope['facts']['deep']"
	half := []mistake{{"loads.rb", "@known_resource_types = @loaders = @parsed_code = nil", ""}}
	return []netStory{
		{
			name: "a node that is there twice", mistakes: half, wrong: []string{"db1.example"},
			files: map[string]string{"manifests/site.pp": "node 'a' { }\nnode 'a' { }\nnode default { notify { 'always': } }\n"},
		},
		{
			name: "a class that is a defined type as well", mistakes: half,
			files: map[string]string{
				"manifests/a.pp": "class same { }\n", "manifests/b.pp": "define same() { }\n", "manifests/c.pp": "notify { 'always': }\n",
				"environment.conf": "manifest = manifests\n",
			},
			wrong: []string{"db1.example"}, // the first node has the mistake that is kept from the second
		},
		{
			name: "template() below a directory with a harmless name", mistakes: harmless,
			files:   map[string]string{"manifests/site.pp": "notify { 'text': message => template('p/facter/role.erb') }\n", "modules/p/templates/facter/role.erb": "one"},
			changed: map[string]string{"modules/p/templates/facter/role.erb": "two"},
		},
		{
			name: "Hiera's data below a directory with a harmless name", mistakes: harmless,
			files: map[string]string{
				"manifests/site.pp": "notify { 'text': message => lookup('text') }\n", "data/facter/web.yaml": "text: one\n",
				"hiera.yaml": "version: 5\nhierarchy:\n  - name: all\n    path: facter/web.yaml\n",
			},
			changed: map[string]string{"data/facter/web.yaml": "text: two\n"},
		},
		{
			name: "a hash of facts that is merged in C", mistakes: []mistake{{"fact_hashes.rb", "%i[merge merge! update transform_keys", "%i[transform_keys"}},
			files: rubySite("h = " + facts + "\n    h['z']\n    {}.merge(h).to_a.inspect"), list: []any{"new"},
		},
		{
			name: "a hash of facts that Hash[] takes", mistakes: []mistake{{"fact_hashes.rb", "Hash.singleton_class.prepend(Makers)", ""}},
			files: rubySite("h = " + facts + "\n    h['z']\n    Hash[h].to_a.inspect"), list: []any{"new"},
		},
		{
			name: "a hash of facts that Marshal takes", mistakes: []mistake{{"fact_hashes.rb", "Marshal.singleton_class.prepend(Dumps)", ""}},
			files: rubySite("h = " + facts + "\n    h['z']\n    Marshal.load(Marshal.dump(h)).to_a.inspect"), list: []any{"new"},
		},
		{
			name: "a file that Zlib opens", mistakes: []mistake{{"native_reads.rb", "['Zlib::GzipReader', :own, %i[open], :path],", ""}},
			files: withFile(rubySite("require 'zlib'\n    Zlib::GzipReader.open("+fmt.Sprintf(netFile, "one")+") { |f| f.read }"),
				"modules/p/one", gzipped("one")),
			changed: map[string]string{"modules/p/one": gzipped("two")},
		},
		{
			name: "a file's status by File::Stat.new", mistakes: []mistake{{"file_reads.rb", "[File, File::Stat].each", "[File].each"}},
			files:   withFile(rubySite("File::Stat.new("+fmt.Sprintf(netFile, "one")+").size.to_s"), "modules/p/one", "1"),
			changed: map[string]string{"modules/p/one": "two"},
		},
		{
			name: "Ruby that lists a module's types", mistakes: []mistake{{"file_reads.rb", "direct = Lookups.covered?(inside) && !Loading.by_puppet?(LOADERS)", "direct = false"}},
			files:   withFile(rubySite("Dir.children("+fmt.Sprintf(netFile, "types")+").sort.inspect"), "modules/p/types/one.pp", "type P::One = String\n"),
			changed: map[string]string{"modules/p/types/two.pp": "type P::Two = String\n"},
		},
	}
}

// gzipped is text as Zlib reads it.
func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write([]byte(text)) // memory takes it
	_ = w.Close()
	return out.String()
}

func withFile(files map[string]string, path, text string) map[string]string {
	files[path] = text
	return files
}

// Plain Puppet beside finds each of the mistakes that once served an old catalog under a new version's number, or a catalog where there is
// none, put back one by one: before anything changed both agree, so that it is the mistake that is found.
func TestVerifyFindsWhatStandsAlthoughItIsOld(t *testing.T) {
	t.Parallel()
	for _, story := range netStories() {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			w := truth.New(1, "site-function") // for its nodes and their facts
			w.Files, w.Group = story.files, truth.Group{}
			s := newTruthServer(t, nil, func(s *truthServer) {
				for _, m := range story.mistakes {
					putBack(t, filepath.Join(s.rubyCode(), m.file), m.plainly, m.mistaken)
				}
			}).enter(t, w)
			s.served()
			if len(story.wrong) > 0 {
				for _, node := range story.wrong {
					s.verified(node, compile.Differs)
				}
				return
			}
			s.verified("web1.example", compile.Same)
			maps.Copy(w.Files, story.changed)
			if story.list != nil {
				w.Nodes[0].Facts = w.Nodes[0].Facts.With(story.list, "deep", "list")
				s.around()
			}
			s.deploy()
			s.served()
			s.verified("web1.example", compile.Differs)
			_, status, err := codeDoor{s.p}.Status(t.Context(), "production")
			s.must(err)
			if len(status.Wrong) != 1 || status.Wrong[0] != "web1.example" {
				t.Errorf("the version's status names %v", status.Wrong)
			}
		})
	}
}

// verified asks plain Puppet about the catalog that a node has.
func (s *truthServer) verified(node string, want compile.VerifyOutcome) {
	s.t.Helper()
	v, err := s.p.verifier.Verify(s.t.Context(), fleet.Certname(node), "production", s.version)
	s.must(err)
	found, err := json.Marshal(v.Differences)
	s.must(err)
	if v.Outcome != want {
		s.t.Errorf("%s: %s (%s) %s, want %s", node, v.Outcome, v.Reason, found, want)
	}
	s.t.Logf("%s: %s %s %.300s", node, v.Outcome, v.Reason, found)
}
