package ruby

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tutti-project/tutti/internal/compile"
)

// kernelCalls is a call of each function of Kernel that the zygote hooks; TestFunctionsInCAreKnown holds that none is missing.
var kernelCalls = map[string]string{
	"`":                "`echo x`",
	"system":           "system('true')",
	"spawn":            "Process.wait(spawn('true')).positive?",
	"exec":             "begin; exec('/none/x'); rescue SystemCallError => e; e.message; end",
	"fork":             "Process.wait2(fork { exit!(3) })[1].exitstatus",
	"rand":             "rand(1)",
	"srand":            "srand(1); [srand(2), rand(100)]",
	"open":             "open(text, &:read)",
	"test":             "[test('e', text), test('=', text, text)]",
	"load":             "load(text)",
	"require":          "[true, false].include?(require(text))",
	"require_relative": "[true, false].include?(require_relative('set'))",
	"autoload":         "autoload(:DelegatedText, text)",
	"gets":             "ARGV.replace([text]); line = gets; ARGF.close; line",
	"readline":         "ARGV.replace([text]); line = readline; ARGF.close; line",
	"readlines":        "ARGV.replace([text]); readlines",
	"select":           "select(nil, nil, nil, 0)",
	"syscall":          "syscall(39).positive?",
}

// kernelRows is Ruby by what it shows: what Puppet and modules do with such objects, and with modules whose functions are
// hooked. before stands outside of any method.
func kernelRows() map[string]struct{ before, ruby string } {
	rows := map[string]struct{ before, ruby string }{
		"Uniquefile": {"", "Puppet::FileSystem::Uniquefile.open_tmp('x') { |f| [f.write('x'), f.flush.class, File.size(f.path)] }"},
		"replace_file": {"", "begin; to = File.join(Dir.tmpdir, \"replaced#{$$}\"); " +
			"Puppet::Util.replace_file(to, 0o600) { |f| f.write('x') }; File.read(to); ensure File.unlink(to); end"},
		"Yaml.dump": {"", "Puppet::Util::Yaml.dump({ 'a' => 1 }, '/none/x')"},
		"missing":   {"", "SimpleDelegator.new(1).nothing_here"},
		"Process":   {"", "Class.new { include Process; def go = pid.positive? && clock_gettime(Process::CLOCK_MONOTONIC).positive? }.new.go"},
		"FileTest":  {"", "Class.new { include FileTest; def go(path) = exist?(path) }.new.go(text)"},
		"autoload outside of modules": {
			"autoload :DelegatedText, File.expand_path('../../../text.rb', __dir__)\n",
			"[DelegatedText.name, Object.autoload?(:DelegatedText)]",
		},
	}
	for name, call := range kernelCalls {
		rows["delegated "+name] = struct{ before, ruby string }{"", "Class.new(SimpleDelegator) { def go(text)\n" + call + "\nend }.new('x').go(text)"}
		rows["called "+name] = struct{ before, ruby string }{"", call}
	}
	return rows
}

// Objects that only borrow what Kernel has do with it what they do in plain Puppet.
func TestObjectsThatBorrowKernel(t *testing.T) {
	t.Parallel()
	files := map[string]string{"modules/p/lib/text.rb": "# text\nmodule DelegatedText; end\n"}
	rows := kernelRows()
	names := slices.Sorted(maps.Keys(rows))
	var orders []compile.Order
	for i, name := range names {
		files["manifests/site.pp"] += fmt.Sprintf("node 'n%d.example.org' { notify { 'text': message => p::n%d() } }\n", i, i)
		files[fmt.Sprintf("modules/p/lib/puppet/functions/p/n%d.rb", i)] = rows[name].before + fmt.Sprintf("Puppet::Functions.create_function(:'p::n%d')", i) +
			" do\n  dispatch(:text) {}\n  def text\n    text = File.expand_path('../../../../text.rb', __dir__)\n    (" + rows[name].ruby + ").inspect\n" +
			"  rescue SystemCallError, ScriptError, NameError => e\n    e.class.name\n  end\nend\n"
		orders = append(orders, order(t, "production", "kernel", fmt.Sprintf("n%d.example.org", i)))
	}
	root := tree(t, withConf(files))
	pool := running(t, Config{Workers: 1, NoJIT: true}, directories{version("kernel"): root})
	want := stockCatalogsOf(t, root, orders, "FRESH=1")
	for i, o := range orders {
		t.Run(names[i], func(t *testing.T) { sameAsPlain(t, pool, o, want[i], 0) })
	}
}
