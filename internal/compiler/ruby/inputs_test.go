package ruby

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

// readingCode is an environment in which each node reads one thing.
var readingCode = map[string]string{
	"environment.conf": "modulepath = modules:$basemodulepath\n",
	"hiera.yaml": "---\nversion: 5\ndefaults: { datadir: data, data_hash: yaml_data }\nhierarchy:\n" +
		"  - { name: n, path: \"nodes/%{trusted.certname}.yaml\" }\n  - { name: f, path: \"os/%{facts.os.family}.yaml\" }\n" +
		"  - { name: l, path: \"kernel/%{::kernel}.yaml\" }\n  - { name: g, glob: \"more/*.yaml\" }\n",
	"data/more/a.yaml": "---\nsome::key: 1\n",
	"manifests/site.pp": `
node 'leaf.example.org' { notify { 'x': message => $facts['os']['family'] } }
node 'absent.example.org' { notify { 'x': message => String($facts['never']) } }
node 'whole.example.org' { $facts['os'].each |$k, $v| { notice($k) } }
node 'handed.example.org' { notify { 'x': message => String({ 'a' => 1 } + $facts['os']) } }
node 'renamed.example.org' { $o = $facts['os'] notify { 'x': message => $o['name'] } }
node 'dig.example.org' { notify { 'x': message => $facts.dig('os', 'name') } }
node 'get.example.org' { notify { 'x': message => $facts.get('os.name') } }
node 'in.example.org' { if 'virtual' in $facts { notify { 'x': } } }
node 'legacy.example.org' { notify { 'x': message => "${osfamily} ${::kernel}" } }
node 'unknown.example.org' { notify { 'x': message => "${not_there}" } }
node 'defined.example.org' { if defined('$hostname') { notify { 'x': } } }
node 'getvar.example.org' { notify { 'x': message => getvar('facts.os.name') } }
node 'erb.example.org' { notify { 'x': message => template('reads/some.erb') } }
node 'erb-slow.example.org' { notify { 'x': message => inline_template('<%= eval("1") %>') } }
node 'erb-whole.example.org' { notify { 'x': message => inline_template('<%= @facts.length %>') } }
node 'epp.example.org' { notify { 'x': message => epp('reads/some.epp') } }
node 'trusted.example.org' { notify { 'x': message => $trusted['extensions']['pp_role'] } }
node 'server.example.org' { notify { 'x': message => $server_facts['servername'] } }
node 'class.example.org' { include reads::a::b }
node 'no-class.example.org' { if defined('nothing::here') { notify { 'x': } } }
node 'function.example.org' { reads::own() }
node 'ruby.example.org' { reads::table() }
node 'type.example.org' { $x = 'a' =~ Reads::Outer }
node 'file.example.org' { notify { 'x': message => file('reads/none', 'reads/some') } }
node 'find.example.org' { if find_file('reads/none') { notify { 'x': } } }
node 'hiera.example.org' { notify { 'x': message => String(lookup('some::key')) } }
node 'native.example.org' { ini_setting { 'x': path => '/x', section => 's', setting => 's', value => 'v' } }
node 'clock.example.org' { notify { 'x': message => String(reads::danger('clock')) } }
node 'timestamp.example.org' { notify { 'x': message => String(Timestamp()) } }
node 'chance.example.org' { notify { 'x': message => String(reads::danger('chance')) } }
node 'seeded.example.org' { notify { 'x': message => String(reads::danger('seeded')) } }
node 'outside.example.org' { notify { 'x': message => String(reads::danger('outside')) } }
node 'outside-file.example.org' { notify { 'x': message => file('/etc/hostname') } }
node 'program.example.org' { notify { 'x': message => String(reads::danger('program')) } }
node 'generate.example.org' { notify { 'x': message => generate('/bin/echo', 'x') } }
node 'network.example.org' { notify { 'x': message => String(reads::danger('network')) } }
node 'facter.example.org' { notify { 'x': message => String(reads::danger('facter')) } }
node 'erb-clock.example.org' { notify { 'x': message => inline_template('<%= Time.now.year %>') } }
node 'exists.example.org' { notify { 'x': message => String(reads::danger('exists')) } }
node 'kernel-open.example.org' { notify { 'x': message => String(reads::danger('kernel-open')) } }
node 'kernel-test.example.org' { notify { 'x': message => String(reads::danger('kernel-test')) } }
node 'pipe.example.org' { notify { 'x': message => String(reads::danger('pipe')) } }
node 'time-new.example.org' { notify { 'x': message => String(reads::danger('time-new')) } }
node 'execution.example.org' { notify { 'x': message => String(reads::danger('execution')) } }
node 'open3.example.org' { notify { 'x': message => String(reads::danger('open3')) } }
node 'openssl.example.org' { notify { 'x': message => String(reads::danger('openssl')) } }
node 'uuid.example.org' { notify { 'x': message => String(reads::danger('uuid')) } }
node 'thread.example.org' { notify { 'x': message => String(reads::danger('thread')) } }
node 'directory.example.org' { notify { 'x': message => String(reads::danger('directory')) } }
node 'system.example.org' { notify { 'x': message => String(reads::danger('system')) } }
node 'facts-elsewhere.example.org' { notify { 'x': message => String(reads::danger('facts-elsewhere')) } }
node 'tempfile.example.org' { notify { 'x': message => String(reads::danger('tempfile')) } }
node 'pathname.example.org' { notify { 'x': message => String(reads::danger('pathname')) } }
node 'resolv.example.org' { notify { 'x': message => String(reads::danger('resolv')) } }
node 'parameters.example.org' { notify { 'x': message => String(reads::danger('parameters')) } }
node 'parameter-names.example.org' { notify { 'x': message => String(reads::danger('parameter-names')) } }
node 'stdlib-time.example.org' { notify { 'x': message => String(time()) } }
node 'stdlib-strftime.example.org' { notify { 'x': message => strftime('%Y') } }
node 'stdlib-shuffle.example.org' { notify { 'x': message => shuffle('abc') } }
node 'stdlib-salt.example.org' { notify { 'x': message => str2saltedsha512('x') } }
node 'stdlib-command.example.org' { validate_cmd('x', '/bin/true') }
node 'stdlib-glob.example.org' { notify { 'x': message => String(glob('/etc/host*')) } }
node 'stdlib-metadata.example.org' { notify { 'x': message => String(load_module_metadata('reads', true)) } }
node 'stdlib-rand.example.org' { notify { 'x': message => "${fqdn_rand(30)} ${fqdn_rotate('abc')} ${seeded_rand(9, 'x')} ${fqdn_rand_string(5)} ${fqdn_uuid('a.example')}" } }
node 'listing.example.org' { notify { 'x': message => String(reads::danger('listing')) } }
node default { notify { 'fine': } }
`,
	"modules/reads/manifests/a/b.pp":   "class reads::a::b { notify { 'b': } }\n",
	"modules/reads/functions/own.pp":   "function reads::own() { 1 }\n",
	"modules/reads/types/outer.pp":     "type Reads::Outer = Array[Inner::Thing]\n",
	"modules/inner/types/thing.pp":     "type Inner::Thing = String\n",
	"modules/reads/templates/some.erb": "me@kernel.org <%= @kernel %> <%= @facts['os']['name'] %> <%= scope['facts']['virtual'] %>\n",
	"modules/reads/templates/some.epp": "<%= $facts['os']['name'] %>\n",
	"modules/reads/files/some":         "text\n",
	"modules/reads/data.txt":           "table\n",
	"modules/reads/lib/puppet/functions/reads/table.rb": "require_relative '../../../../../inner/lib/inner_text'\n" +
		"Puppet::Functions.create_function(:'reads::table') do\n  dispatch(:act) {}\n  def act\n    File.read(File.join(__dir__, '../../../../data.txt'))\n  end\nend\n",
	"modules/inner/lib/inner_text.rb": "module InnerText; end\n",
	"modules/reads/lib/puppet/functions/reads/danger.rb": `Puppet::Functions.create_function(:'reads::danger') do
  dispatch(:act) { param 'String', :kind }
  def act(kind)
    case kind
    when 'clock' then Time.now.year
    when 'chance' then [1, 2, 3].sample
    when 'seeded'
      srand(42)
      rand(5)
    when 'outside' then File.exist?('/etc/passwd')
    when 'program' then ` + "`echo x`" + `
    when 'network' then Socket.gethostname
    when 'facter' then Facter.value(:kernel)
    when 'exists' then File.respond_to?(:exists?) ? File.exists?('/etc/passwd') : File.exist?('/etc/passwd')
    when 'kernel-open' then open('/etc/passwd') { |f| f.read.size }
    when 'kernel-test' then test('e', '/etc/passwd')
    when 'pipe' then open('|echo x', &:read)
    when 'time-new' then Time.new.year
    when 'execution' then Puppet::Util::Execution.execute(['/bin/echo', 'x'])
    when 'open3'
      require 'open3'
      Open3.capture2('/bin/echo', 'x').first
    when 'openssl' then OpenSSL::Random.random_bytes(2).size
    when 'uuid' then SecureRandom.uuid
    when 'thread' then Thread.new { File.read('/etc/passwd').size }.value
    when 'directory' then Dir.pwd
    when 'system' then Etc.getpwuid(0).name
    when 'facts-elsewhere' then Puppet::Node::Facts.indirection.terminus(:facter).find(Puppet::Node::Facts.indirection.request(:find, 'x', nil, environment: closure_scope.environment)).values.size
    when 'tempfile' then Tempfile.create('x') { 1 }
    when 'pathname' then Pathname.new('/etc/passwd').exist?
    when 'resolv'
      require 'resolv'
      Resolv.getaddress('localhost')
    when 'parameters' then closure_scope.compiler.node.parameters['virtual'].to_s + closure_scope.compiler.node.parameters['os']['name']
    when 'parameter-names' then closure_scope.compiler.node.parameters.keys.size
    when 'listing' then Dir.children(File.join(__dir__, '../../../..')).size
    end
  end
end
`,
}

// reading is a node, notes of it that there must be, and that there must not.
type reading struct {
	node      string
	want, not []string
}

// readings is what each node must have noted, and what it must not. A note is a kind
// and a path; one of a value is a pointer.
var readings = []reading{
	{"leaf", []string{"value /facts/os/family"}, []string{"value /facts/os", "value /facts/os/name", "value /facts"}},
	{"absent", []string{"value /facts/never"}, []string{"value /facts"}},
	{"whole", []string{"value /facts/os"}, []string{"value /facts"}},
	{"handed", []string{"value /facts/os"}, []string{"value /facts"}},
	{"renamed", []string{"value /facts/os/name"}, []string{"value /facts/os", "value /facts"}},
	{"dig", []string{"value /facts/os/name"}, []string{"value /facts"}},
	{"get", []string{"value /facts/os/name"}, []string{"value /facts"}},
	{"in", []string{"present /facts/"}, []string{"value /facts"}},
	{"legacy", []string{"value /facts/osfamily", "value /facts/kernel"}, []string{"value /facts", "value /facts/os/family"}},
	{"unknown", []string{"present /facts/not_there"}, []string{"value /facts"}},
	{"defined", []string{"present /facts/hostname"}, []string{"value /facts"}},
	{"getvar", []string{"value /facts/os/name"}, []string{"value /facts"}},
	{
		"erb",
		[]string{"value /facts/kernel", "value /facts/os/name", "value /facts/virtual", "file modules/reads/templates/some.erb", "module reads"},
		[]string{"value /facts", "value /facts/os"},
	},
	{"erb-slow", []string{"value /facts", "value /trusted"}, nil},
	{"erb-whole", []string{"value /facts"}, nil},
	{"epp", []string{"value /facts/os/name", "file modules/reads/templates/some.epp"}, []string{"value /facts"}},
	{"trusted", []string{"value /trusted/extensions/pp_role"}, []string{"value /trusted", "value /trusted/authenticated"}},
	{"server", []string{"value /server_facts/servername"}, []string{"value /server_facts"}},
	{"class", []string{
		"file modules/reads/manifests/init.pp", "file modules/reads/manifests/a.pp", "file modules/reads/manifests/a/b.pp",
		"module reads", "tree manifests", "file environment.conf", "file hiera.yaml",
	}, nil},
	{"no-class", []string{"module nothing"}, nil},
	{"function", []string{"tree modules/reads/functions", "tree modules/reads/lib"}, []string{"tree modules/inner/lib"}},
	{"ruby", []string{"file modules/reads/data.txt", "tree modules/reads/lib", "tree modules/inner/lib"}, nil},
	{"type", []string{"tree modules/reads/types", "tree modules/inner/types", "module inner"}, nil},
	{"file", []string{"file modules/reads/files/none", "file modules/reads/files/some"}, nil},
	{"find", []string{"file modules/reads/files/none"}, nil},
	{
		"hiera",
		[]string{
			"file data/nodes/hiera.example.org.yaml", "file data/os/Debian.yaml", "file data/kernel/Linux.yaml", "names data/more", "file data/more/a.yaml",
			"value /facts/os/family", "value /facts/kernel", "value /trusted/certname",
		},
		[]string{"value /facts", "value /trusted"},
	},
	{"native", []string{"anywhere lib/puppet/type/ini_setting.rb", "tree .base_modules/0/inifile/lib"}, nil},
	{"clock", []string{"volatile reads the clock"}, nil},
	{"timestamp", []string{"volatile reads the clock"}, nil},
	{"chance", []string{"volatile uses random numbers"}, nil},
	{"seeded", nil, []string{"volatile "}},
	{"outside", []string{"volatile reads /etc/passwd"}, nil},
	{"outside-file", []string{"volatile reads /etc/hostname"}, nil},
	{"program", []string{"volatile runs a program"}, nil},
	{"generate", []string{"volatile generate() runs a program"}, nil},
	{"network", []string{"volatile uses the network"}, nil},
	{"facter", []string{"volatile reads the server's own facts"}, nil},
	{"erb-clock", []string{"volatile reads the clock"}, nil},
	{"exists", []string{"volatile reads /etc/passwd"}, nil},
	{"kernel-open", []string{"volatile reads /etc/passwd"}, nil},
	{"kernel-test", []string{"volatile reads /etc/passwd"}, nil},
	{"pipe", []string{"volatile runs a program"}, nil},
	{"time-new", []string{"volatile reads the clock"}, nil},
	{"execution", []string{"volatile runs a program"}, nil},
	{"open3", []string{"volatile runs a program"}, nil},
	{"openssl", []string{"volatile uses random numbers"}, nil},
	{"uuid", []string{"volatile uses random numbers"}, nil},
	{"thread", []string{"volatile starts a thread"}, nil},
	{"directory", []string{"volatile asks for the working directory"}, nil},
	{"system", []string{"volatile asks the server's system"}, nil},
	{"facts-elsewhere", []string{"volatile reads the server's own facts"}, nil},
	{"tempfile", []string{"volatile reads the server's variables"}, nil},
	{"pathname", []string{"volatile reads /etc/passwd"}, nil},
	{"resolv", []string{"volatile reads /etc/hosts"}, nil},
	{"parameters", []string{"value /facts/virtual", "value /facts/os/name"}, []string{"value /facts", "value /facts/os"}},
	{"parameter-names", []string{"present /facts/"}, []string{"value /facts"}},
	{"stdlib-time", []string{"volatile reads the clock"}, nil},
	{"stdlib-strftime", []string{"volatile reads the clock"}, nil},
	{"stdlib-shuffle", []string{"volatile uses random numbers"}, nil},
	{"stdlib-salt", []string{"volatile uses random numbers"}, nil},
	{"stdlib-command", []string{"volatile runs a program"}, nil},
	{"stdlib-glob", []string{"volatile lists /etc"}, nil},
	{"stdlib-metadata", []string{"file modules/reads/metadata.json"}, []string{"volatile "}},
	{"stdlib-rand", []string{"value /facts/fqdn"}, []string{"volatile ", "value /facts"}},
	{"listing", []string{"list modules/reads"}, []string{"volatile "}},
	{"nothing", []string{"tree manifests"}, []string{"volatile ", "value /facts", "module reads"}},
}

// Each way of reading is noticed, by a process that has loaded nothing before as well
// as by one that has compiled the same order already.
func TestWhatIsReadIsNoted(t *testing.T) {
	t.Parallel()
	roots := directories{version("reads"): tree(t, readingCode)}
	pool := running(t, Config{Workers: 1, NoJIT: true}, roots)
	// One of stdlib's functions keeps the seed before: after it, no seed of that process makes numbers certain.
	others := map[string]*Pool{"stdlib-rand": running(t, Config{Workers: 1, NoJIT: true}, roots)}
	readings := slices.Clone(readings)
	if puppetEight(t) {
		rand := slices.IndexFunc(readings, func(r reading) bool { return r.node == "stdlib-rand" })
		readings[rand].want = []string{"value /facts/networking/fqdn"}                            // its stdlib asks for no legacy facts
		others["unknown"] = running(t, Config{Workers: 1, NoJIT: true, Settings: lenient}, roots) // it does not compile in the one
	}
	for _, round := range []string{"cold", "warm"} {
		for _, tt := range readings {
			o := order(t, "production", "reads", tt.node+".example.org")
			outcome, err := cmp.Or(others[tt.node], pool).Compile(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v", tt.node, err)
			}
			if outcome.Reads == nil {
				t.Fatalf("%s: nothing is said of what was read", tt.node)
			}
			notes := notesOf(outcome.Reads)
			for _, want := range tt.want {
				if !slices.ContainsFunc(notes, func(note string) bool {
					return note == want || strings.HasPrefix(want, "volatile ") && strings.HasPrefix(note, want)
				}) {
					t.Errorf("%s, %s: %q is missing; there is %q", tt.node, round, want, kindOf(notes, want))
				}
			}
			for _, not := range tt.not {
				if slices.ContainsFunc(notes, func(note string) bool { return note == not || not == "volatile " && strings.HasPrefix(note, not) }) {
					t.Errorf("%s, %s: %q should not be there; there is %q", tt.node, round, not, kindOf(notes, not))
				}
			}
		}
	}
}

// A template reads the variables that it names, also where another variable has a name that Ruby has not: a fact, or, while an EPP template is
// evaluated and the code has no node definitions, the EPP template's output. It reads all if the fact is one that it names, and the names of
// facts if such a fact may come.
func TestATemplateReadsItsVariables(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("within"): tree(t, map[string]string{
		"manifests/site.pp":             "notify { 'x': message => epp('w/outer.epp') }\n",
		"modules/w/templates/outer.epp": "<%= template(\"w/${facts['reads']}.erb\") %>\n",
		"modules/w/templates/plain.erb": "<%= @kernel %>\n",
		"modules/w/templates/odd.erb":   "<%= @kernel %> <%= @an_odd %>\n",
	})})
	for _, tt := range []struct {
		facts, message string
		reads          []string
		names          bool
	}{
		{`{"reads":"plain","kernel":"Linux","virtual":"kvm"}`, "Linux", []string{"/facts/kernel", "/facts/reads"}, false},
		{`{"reads":"plain","kernel":"Linux","an-odd":"one"}`, "Linux", []string{"/facts/kernel", "/facts/reads"}, false},
		{`{"reads":"odd","kernel":"Linux","an-odd":"one"}`, "Linux one", []string{"/facts", "/server_facts", "/trusted"}, false},
		{`{"reads":"odd","kernel":"Linux","also-odd":"one"}`, "Linux ", []string{"/facts/kernel", "/facts/reads"}, true},
	} {
		o := order(t, "production", "within", "a.example.org")
		o.Facts = json.RawMessage(tt.facts)
		outcome, err := pool.Compile(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(outcome.Reads.Values, tt.reads) || !strings.Contains(string(outcome.Catalog), `"message":"`+tt.message+`\n\n"`) {
			t.Errorf("%s: it read %q, want %q; %s", tt.facts, outcome.Reads.Values, tt.reads, outcome.Catalog)
		}
		if slices.Contains(outcome.Reads.Present, "/facts/") != tt.names {
			t.Errorf("%s: it asked whether there is %q", tt.facts, outcome.Reads.Present)
		}
	}
}

func notesOf(r *compile.Reads) (notes []string) {
	for kind, list := range map[string][]string{
		"file": r.Sources.Files, "list": r.Sources.Lists, "names": r.Sources.Names, "tree": r.Sources.Trees, "module": r.Sources.Modules,
		"anywhere": r.Sources.Anywhere, "value": r.Values, "present": r.Present, "volatile": r.Volatile,
	} {
		for _, text := range list {
			notes = append(notes, kind+" "+text)
		}
	}
	slices.Sort(notes)
	return notes
}

func kindOf(notes []string, like string) (same []string) {
	kind, _, _ := strings.Cut(like, " ")
	for _, note := range notes {
		if strings.HasPrefix(note, kind+" ") {
			same = append(same, note)
		}
	}
	return same
}

// A worker forked of a taught zygote notes what the zygote has loaded.
func TestWarmedZygotesKeepTheirNotes(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("reads"): tree(t, readingCode)})
	var samples []compile.Order
	for _, node := range []string{"class", "function", "ruby", "type", "erb", "native"} {
		samples = append(samples, order(t, "production", "reads", node+".example.org"))
	}
	if err := pool.Warm(t.Context(), "production", version("reads"), samples); err != nil {
		t.Fatal(err)
	}
	for i, tt := range readings {
		if !slices.ContainsFunc(samples, func(o compile.Order) bool { return string(o.Node) == tt.node+".example.org" }) {
			continue
		}
		outcome, err := pool.Compile(t.Context(), order(t, "production", "reads", tt.node+".example.org"))
		if err != nil {
			t.Fatal(err)
		}
		notes := notesOf(outcome.Reads)
		for _, want := range readings[i].want {
			if !slices.Contains(notes, want) {
				t.Errorf("%s: %q is missing; there is %q", tt.node, want, kindOf(notes, want))
			}
		}
	}
}

func TestEngineNamesWhatCompiles(t *testing.T) {
	t.Parallel()
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("reads"): tree(t, readingCode)})
	if _, err := pool.Compile(t.Context(), order(t, "production", "reads", "nothing.example.org")); err != nil {
		t.Fatal(err)
	}
	if name := pool.Engine(t.Context(), "", ""); !strings.HasPrefix(name, "puppet "+puppetVersion(t)+", ") || !strings.Contains(name, "ruby ") {
		t.Errorf("the engine is called %q", name)
	}
}

func TestInputsLeaveOutWhatNoLineCanHold(t *testing.T) {
	t.Parallel()
	var w wireInputs
	if err := json.Unmarshal([]byte(`{"file":["b","a\nb","","a","a"],"values":["/facts/x"]}`), &w); err != nil {
		t.Fatal(err)
	}
	if got := w.reads(); !slices.Equal(got.Sources.Files, []string{"a", "b"}) || !slices.Equal(got.Values, []string{"/facts/x"}) {
		t.Errorf("got %+v", got)
	}
	if (*wireInputs)(nil).reads() != nil {
		t.Error("no inputs are some")
	}
}
