package ruby

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// openingFiles is Ruby that opens, lists or looks for the file at path: each is tried
// with one of the version, which must become an input, and with one elsewhere, which
// must make the catalog volatile.
var openingFiles = []staleRow{
	{name: "File.read", ruby: "File.read(path)"},
	{name: "File.open", ruby: "File.open(path) { |f| f.read }"},
	{name: "File.new", ruby: "File.new(path).close"},
	{name: "File#initialize", ruby: "File.allocate.send(:initialize, path)"},
	{name: "a subclass of File", ruby: "Class.new(File).open(path) { |f| f.read }"},
	{name: "a subclass of IO", ruby: "Class.new(IO).read(path)"},
	{name: "File.method", ruby: "File.method(:read).call(path)"},
	{name: "IO.method unbound", ruby: "IO.method(:read).unbind.bind(File).call(path)"},
	{name: "IO.singleton_class.instance_method", ruby: "IO.singleton_class.instance_method(:read).bind(IO).call(path)"},
	{name: "send", ruby: "File.send(:binread, path)"},
	{name: "IO.sysopen", ruby: "IO.sysopen(path)"},
	{name: "IO.copy_stream", ruby: "IO.copy_stream(path, StringIO.new)"},
	{name: "IO.foreach", ruby: "IO.foreach(path) { |l| l }"},
	{name: "IO#reopen", ruby: "File.open('/dev/null').reopen(path)"},
	{name: "Kernel#open", ruby: "open(path, &:read)"},
	{name: "Kernel.method", ruby: "Kernel.method(:open).call(path)"},
	{name: "Kernel#test", ruby: "test('e', path)"},
	{name: "Kernel#load", ruby: "load(path)"},
	{name: "Kernel#require", ruby: "require(path)"},
	{name: "autoload", ruby: "m = Module.new\n m.autoload(:Inside, path)\n begin\n m.const_get(:Inside)\n rescue NameError\n 1\n end"},
	{name: "$LOAD_PATH", ruby: "$LOAD_PATH.unshift(File.dirname(path))\n begin\n require(File.basename(path, '.rb'))\n ensure\n $LOAD_PATH.shift\n end"},
	{name: "File::Stat.new", ruby: "File::Stat.new(path)"},
	{name: "File.stat", ruby: "File.stat(path)"},
	{name: "File.identical?", ruby: "File.identical?('/dev/null', path)"},
	{name: "FileTest", ruby: "FileTest.exist?(path)"},
	{name: "File.utime", ruby: "File.utime(nil, nil, path + '/none')", want: "/none"},
	{name: "File.unlink", ruby: "File.unlink(path + '/none')", want: "/none"},
	{name: "File.rename", ruby: "File.rename(path + '/none', path + '/none')", want: "/none"},
	{name: "File.truncate", ruby: "File.truncate(path + '/none', 0)", want: "/none"},
	{name: "Dir.mkdir", ruby: "Dir.mkdir(path + '/none')", want: "/none"},
	{name: "Dir.chdir", ruby: "Dir.chdir(File.dirname(path)) { File.read(File.basename(path)) }"},
	{name: "Dir.exist?", ruby: "Dir.exist?(path)"},
	{name: "Dir.glob", ruby: "Dir.glob(path)"},
	{name: "Dir.[]", ruby: "Dir[path]"},
	{name: "Pathname#read", ruby: "Pathname.new(path).read"},
	{name: "Pathname#open", ruby: "Pathname.new(path).open { |f| f }"},
	{name: "Pathname#exist?", ruby: "Pathname.new(path).exist?"},
	{name: "Pathname#stat", ruby: "Pathname.new(path).stat"},
	{name: "Pathname#realpath", ruby: "Pathname.new(path).realpath"},
	{name: "Pathname#each_line", ruby: "Pathname.new(path).each_line { |l| l }"},
	{name: "Pathname#sysopen", ruby: "Pathname.new(path).sysopen"},
	{
		name: "InstructionSequence.compile_file_prism", needs: "RubyVM::InstructionSequence.method(:compile_file_prism)",
		ruby: "RubyVM::InstructionSequence.compile_file_prism(path)",
	},
	{name: "Prism", needs: "require 'prism'", ruby: "require 'prism'\n Prism.parse_file(path)"},
	{name: "Find", ruby: "require 'find'\n Find.find(path) { |f| f }"},
	{name: "FileUtils", ruby: "FileUtils.compare_file(path, '/dev/null')"},
	{name: "FileUtils.cp", ruby: "FileUtils.cp(path, '/dev/null')"},
	{name: "Zlib::GzipReader.open", ruby: "require 'zlib'\n Zlib::GzipReader.open(path) { |f| f.read }"},
	{name: "Zlib::GzipReader.new", ruby: "require 'zlib'\n Zlib::GzipReader.new(File.open(path)).read"},
	{name: "OpenSSL::X509::Store#add_file", ruby: "OpenSSL::X509::Store.new.add_file(path)"},
	{name: "OpenSSL::SSL::SSLContext#ca_file=", ruby: "OpenSSL::SSL::SSLContext.new.ca_file = path"},
	{name: "OpenSSL::SSL::SSLContext#setup", ruby: "c = OpenSSL::SSL::SSLContext.new\n c.instance_variable_set(:@ca_file, path)\n c.setup"},
	{name: "OpenSSL::Config.load", ruby: "OpenSSL::Config.load(path)"},
	{name: "OpenSSL::Config.new", ruby: "OpenSSL::Config.new(path)"},
	{name: "OpenSSL::Random.load_random_file", ruby: "OpenSSL::Random.load_random_file(path)"},
	{name: "Psych.load_file", ruby: "Psych.load_file(path)"},
	{name: "YAML.load_file", ruby: "YAML.load_file(path)"},
	{name: "JSON.load_file", ruby: "JSON.load_file(path)"},
	{name: "CSV", ruby: "require 'csv'\n CSV.read(path)"},
	{name: "PStore", ruby: "require 'pstore'\n PStore.new(path).transaction(true) { 1 }"},
	{name: "Digest", ruby: "require 'digest'\n Digest::SHA256.file(path).hexdigest"},
	{name: "Logger", ruby: "require 'logger'\n Logger.new(path)"},
	{name: "compile_file", ruby: "RubyVM::InstructionSequence.compile_file(path)"},
	{name: "parse_file", ruby: "RubyVM::AbstractSyntaxTree.parse_file(path)"},
	{name: "Puppet::Util.create_erb", ruby: "Puppet::Util.create_erb(Puppet::FileSystem.read_preserve_line_endings(path)).result"},
	{name: "Puppet::FileSystem.read", ruby: "Puppet::FileSystem.read(path)"},
	{name: "Puppet::FileSystem.exist?", ruby: "Puppet::FileSystem.exist?(path)"},
	{name: "Puppet::FileSystem.stat", ruby: "Puppet::FileSystem.stat(path)"},
	{name: "Puppet::FileSystem.pathname", ruby: "Puppet::FileSystem.pathname(path).realpath"},
	{name: "Puppet::Util::Yaml.load_file", ruby: "Puppet::Util::Yaml.safe_load_file(path)"},
	{name: "Puppet::Util::Json.load_file", ruby: "Puppet::Util::Json.load_file(path)"},
	{name: "Puppet::Parser::Files", ruby: "Puppet::FileSystem.read(Puppet::Parser::Files.find_file(path, Puppet.lookup(:current_environment)))"},
	{name: "FileTest as its own", ruby: "Class.new { include FileTest\n def go(x) = exist?(x) }.new.go(path)"},
	{name: "a delegator", ruby: "require 'delegate'\n SimpleDelegator.new(1).instance_exec(path) { |x| open(x, &:read) }"},
}

func TestFilesThatAreOpened(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "elsewhere.rb")
	if err := os.WriteFile(outside, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rows := inThisRuby(t, openingFiles)
	for _, tt := range []struct{ name, path, note string }{
		{"of the version", "scope.environment.module('rows').path + '/data/inside.rb'", "file modules/rows/data/inside.rb"},
		{"elsewhere", "'" + outside + "'", "volatile reads " + outside},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"modules/rows/data/inside.rb": "{}\n"}
			staleNodes(files, rows, "path = "+tt.path)
			pool := stalePool(t, files, outside)
			for i, row := range rows {
				for _, kind := range []string{"r", "e"} {
					notes := staleReads(t, pool, fmt.Sprintf("%s%d", kind, i))
					if !hasNote(notes, tt.note+row.want) {
						t.Errorf("%s (%s): %q is missing; there is %q", row.name, kind, tt.note+row.want, kindOf(notes, tt.note))
					}
					if also := kindOf(notes, "volatile "); tt.name == "of the version" && len(also) > 0 {
						t.Errorf("%s (%s): it reads something else, too: %q", row.name, kind, also)
					}
				}
			}
		})
	}
}

// notFollowed is Ruby that no input can stand for.
var notFollowed = []staleRow{
	{name: "ARGF.read", ruby: "ARGV.replace(['/etc/passwd'])\n ARGF.read", want: "reads its standard input"},
	{name: "ARGF.each_line", ruby: "ARGV.replace(['/dev/null'])\n ARGF.each_line { |l| l }", want: "reads its standard input"},
	{name: "ARGF's method unbound", ruby: "ARGF.class.instance_method(:lineno).bind(ARGF).call", want: "reads its standard input"},
	{name: "gets", ruby: "ARGV.replace(['/dev/null'])\n gets", want: "reads its standard input"},
	{name: "Kernel.readlines", ruby: "ARGV.replace(['/dev/null'])\n Kernel.readlines", want: "reads its standard input"},
	{name: "$stdin", ruby: "$stdin.read_nonblock(1)", want: "reads its standard input"},
	{name: "STDIN.dup", ruby: "STDIN.dup", want: "reads its standard input"},
	{name: "IO.for_fd", ruby: "IO.for_fd(0, autoclose: false)", want: "reads an open file"},
	{name: "IO.new", ruby: "IO.new(0, autoclose: false)", want: "reads an open file"},
	{name: "File.new of a descriptor", ruby: "File.new(1, 'w', autoclose: false)", want: "reads an open file"},
	{name: "File.open of a descriptor", ruby: "File.open(0, autoclose: false) { |f| f }", want: "reads an open file"},
	{name: "SDBM", needs: "require 'sdbm'", ruby: "require 'sdbm'\n SDBM.open('/none/x')", want: "reads a database"},
	{name: "IO.select", ruby: "IO.select([STDIN], nil, nil, 0)", want: "reads an open file"},
	{name: "Kernel#select", ruby: "select([STDIN], nil, nil, 0)", want: "reads an open file"},
	{name: "Date.parse of a day", ruby: "Date.parse('Mon')", want: "reads the clock"},
	{name: "Date.parse of a month", ruby: "Date.parse('3rd Feb')", want: "reads the clock"},
	{name: "Date.strptime", ruby: "Date.strptime('03', '%d')", want: "reads the clock"},
	{name: "Date.strptime of two years", ruby: "Date.strptime('2020 3 2', '%G %m %d')", want: "reads the clock"},
	{name: "Date.iso8601", ruby: "Date.iso8601('-w03-2')", want: "reads the clock"},
	{name: "DateTime.parse", ruby: "DateTime.parse('10:00')", want: "reads the clock"},
	{name: "DateTime.strptime", ruby: "DateTime.strptime('10', '%H')", want: "reads the clock"},
	{name: "Time.parse", ruby: "require 'time'\n Time.parse('10:00')", want: "reads the clock"},
	{name: "Time.strptime", ruby: "require 'time'\n Time.strptime('10', '%H')", want: "reads the clock"},
	{name: "the seed before", ruby: "x = srand(5)", want: "uses random numbers"},
	{name: "the seed before, by its name", ruby: "x = Random.public_send(:srand, 5)", want: "uses random numbers"},
	{name: "a delegator's chance", ruby: "require 'delegate'\n SimpleDelegator.new(1).instance_exec { rand }", want: "uses random numbers"},
	{name: "OpenSSL::X509::Store#verify", ruby: "OpenSSL::SSL::SSLContext::DEFAULT_CERT_STORE.verify(nil)", want: "reads the clock"},
	{name: "OpenSSL::X509::StoreContext", ruby: "OpenSSL::X509::StoreContext.new(OpenSSL::X509::Store.new).verify", want: "reads the clock"},
	{
		name: "a signature", ruby: "OpenSSL::PKey.read(\"-----BEGIN EC PRIVATE KEY-----\\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6tF1aY/PuoAoGCCqGSM49\\n" +
			"AwEHoUQDQgAEPR3tU2Fta9ktY+6P9G0cWO+0kETA6SFs38GecTyudlHz6xvCdz8q\\nEKTcWGekdmdDPsHloRNtsiCa697B2O9IFA==\\n-----END EC PRIVATE KEY-----\\n\").sign('SHA256', 'x')",
		want: "uses random numbers",
	},
	{name: "Zlib.gzip", ruby: "require 'zlib'\n Zlib.gzip('x')", want: "reads the clock"},
	{name: "Zlib::GzipWriter", ruby: "require 'zlib'\n Zlib::GzipWriter.wrap(StringIO.new) { |z| z.write('x') }", want: "reads the clock"},
	{name: "File.umask", ruby: "File.umask", want: "asks the server's system"},
	{name: "Process.uid", ruby: "Process.uid", want: "asks the server's system"},
	{name: "Process.euid", ruby: "Process.euid", want: "asks the server's system"},
	{name: "Process::UID.eid", ruby: "Process::UID.eid", want: "asks the server's system"},
	{name: "Process::Sys.getgid", ruby: "Process::Sys.getgid", want: "asks the server's system"},
	{name: "Process as its own", ruby: "Class.new { include Process\n def go = clock_gettime(Process::CLOCK_REALTIME) }.new.go", want: "reads the clock"},
	{name: "RubyVM.stat", ruby: "RubyVM.stat", want: "looks into Ruby's memory"},
	{name: "Dir.glob of no directory", ruby: "Dir.glob('*')", want: "asks for the working directory"},
	{name: "Dir.[] of no directory", ruby: "Dir['*/x']", want: "asks for the working directory"},
	{name: "File.read of no directory", ruby: "File.read('x')", want: "asks for the working directory"},
	{name: "Dir.children of no directory", ruby: "Dir.children('.')", want: "asks for the working directory"},
	{name: "syscall", ruby: "syscall(39)", want: "calls functions written in C"},
	{name: "Fiddle", ruby: "require 'fiddle'\n Fiddle.dlopen(nil)", want: "calls functions written in C"},
	{name: "Fiddle::Handle", ruby: "require 'fiddle'\n Fiddle::Handle.new(nil)", want: "calls functions written in C"},
	{
		name: "Fiddle::Pointer.read", needs: "require 'fiddle'; Fiddle::Pointer.method(:read)",
		ruby: "require 'fiddle'\n text = 'x' * 64\n Fiddle::Pointer.read(Fiddle::Pointer.to_ptr(text).to_i, 8)", want: "calls functions written in C",
	},
	{
		name: "Fiddle::Handle.sym_defined?", needs: "require 'fiddle'; Fiddle::Handle.method(:sym_defined?)",
		ruby: "require 'fiddle'\n Fiddle::Handle.sym_defined?('puts')", want: "calls functions written in C",
	},
	{
		name: "OpenSSL::Provider", needs: "require 'openssl'; OpenSSL::Provider",
		ruby: "OpenSSL::Provider.provider_names", want: "asks the server's system",
	},
	{
		name: "dump_shapes", needs: "require 'objspace'; ObjectSpace.method(:dump_shapes)",
		ruby: "require 'objspace'\n ObjectSpace.dump_shapes(output: :string)", want: "looks into Ruby's memory",
	},
	{name: "PTY", ruby: "require 'pty'\n PTY.open { 1 }", want: "runs a program"},
	{name: "IO.console", ruby: "require 'io/console'\n IO.console", want: "reads its standard input"},
	{name: "IO.read of a program", ruby: "IO.read('|echo')", want: "runs a program"},
	{name: "set_default_paths", ruby: "OpenSSL::X509::Store.new.set_default_paths", want: "reads the server's certificates"},
	{name: "OpenSSL::PKey.generate_key", ruby: "OpenSSL::PKey.generate_key('ED25519')", want: "uses random numbers"},
	{name: "Etc::Passwd", ruby: "require 'etc'\n Etc::Passwd.each { |x| break x }", want: "asks the server's system"},
	{name: "Etc.getpwnam", ruby: "Etc.getpwnam('root')", want: "asks the server's system"},
	{name: "Process.getpgid", ruby: "Process.getpgid(0)", want: "asks the server's system"},
	{name: "UNIXServer", ruby: "UNIXServer.new('/none/x')", want: "uses the network"},
	{name: "UNIXSocket", ruby: "UNIXSocket.new('/none/x')", want: "uses the network"},
	{name: "Socket.unix", ruby: "Socket.unix('/none/x')", want: "uses the network"},
	{name: "Socket.getservbyname", ruby: "Socket.getservbyname('http')", want: "uses the network"},
	{name: "GC", ruby: "GC.stat", want: "looks into Ruby's memory"},
	{name: "objspace", ruby: "require 'objspace'\n ObjectSpace.memsize_of('x')", want: "looks into Ruby's memory"},
	{name: "super_method", ruby: "File.method(:read).super_method.call('/etc/passwd')", want: "looks into Ruby's memory"},
	{name: "AbstractSyntaxTree.of", ruby: "RubyVM::AbstractSyntaxTree.of(method(:puts).to_proc)", want: "looks into Ruby's memory"},
	{name: "Dir#chdir", needs: "Dir.instance_method(:chdir)", ruby: "Dir.new('/etc').chdir { File.read('passwd') }", want: "reads /etc/passwd"},
	{name: "expand_path", ruby: "File.expand_path('x')", want: "asks for the working directory"},
	{name: "home", ruby: "File.expand_path('~/x')", want: "asks for the working directory"},
	{name: "Pathname#expand_path", ruby: "Pathname.new('x').expand_path", want: "asks for the working directory"},
	{name: "/proc", ruby: "File.read('/proc/self/stat')", want: "reads /proc/self/stat"},
	{name: "a way round", ruby: "File.read('/proc/self/root/etc/passwd')", want: "reads /proc/self/root"},
	{name: "ENV.inspect", ruby: "ENV.inspect", want: "reads the server's variables"},
	{name: "ENV.delete", ruby: "ENV.delete('HOME2')", want: "reads the server's variables"},
	{name: "Dir.entries", ruby: "Dir.entries('/etc')", want: "lists /etc"},
	{name: "Dir#initialize", ruby: "Dir.allocate.send(:initialize, '/etc')", want: "lists /etc"},
	{name: "Pathname#children", ruby: "Pathname.new('/etc').children", want: "lists /etc"},
	{name: "Pathname.glob", ruby: "Pathname.glob('/etc/*')", want: "lists /etc"},
	{name: "Find of a directory", ruby: "require 'find'\n Find.find('/etc/ssl') { |f| f }", want: "lists /etc/ssl"},
	{name: "Puppet::FileSystem.children", ruby: "Puppet::FileSystem.children('/etc')", want: "lists /etc"},
	{name: "Tempfile", ruby: "require 'tempfile'\n Tempfile.new('x').close!", want: "reads the server's variables"},
	{name: "Dir.home", ruby: "Dir.home", want: "asks for the working directory"},
	{name: "which", ruby: "Puppet::Util.which('sh')", want: "reads /"},
	{name: "open3", ruby: "require 'open3'\n Open3.capture2('/bin/echo')", want: "runs a program"},
}

func TestWhatNoInputStandsFor(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	rows := inThisRuby(t, notFollowed)
	staleNodes(files, rows, "")
	pool := stalePool(t, files)
	for i, row := range rows {
		for _, kind := range []string{"r", "e"} {
			if notes := staleReads(t, pool, fmt.Sprintf("%s%d", kind, i)); !hasNote(notes, "volatile "+row.want) {
				t.Errorf("%s (%s): %q is missing; there is %q", row.name, kind, row.want, kindOf(notes, "volatile "))
			}
		}
	}
}

// Where lookups by name cover what Puppet's loaders read, they do not cover what code
// reads of the same directories.
func TestCodeThatReadsWhereLoadersLook(t *testing.T) {
	t.Parallel()
	rows := []staleRow{}
	for _, dir := range []string{
		"modules/other/types", "modules/other/functions", "modules/other/lib/puppet/functions",
		"modules/other/lib/puppet/type", "types", "functions",
	} {
		path := "File.join(Puppet.lookup(:current_environment).modules.first.path, '../..', '" + dir + "')"
		file := "one." + map[bool]string{true: "rb", false: "pp"}[strings.Contains(dir, "lib")]
		rows = append(
			rows,
			staleRow{ruby: "Dir.children(" + path + ")", want: "list " + dir},
			staleRow{ruby: "Dir.glob(" + path + " + '/*')", want: "names " + dir},
			staleRow{ruby: "File.read(" + path + " + '/" + file + "')", want: "file " + dir + "/" + file},
			staleRow{ruby: "File.exist?(" + path + " + '/none.pp')", want: "file " + dir + "/none.pp"},
			staleRow{ruby: "Puppet::FileSystem.exist?(" + path + " + '/" + file + "')", want: "file " + dir + "/" + file},
			staleRow{ruby: "call_function('find_file', " + path + " + '/" + file + "')", want: "file " + dir + "/" + file},
		)
	}
	files := map[string]string{
		"types/one.pp": "type One = String\n", "functions/one.pp": "function one() { 1 }\n",
		"modules/other/types/one.pp": "type Other::One = String\n", "modules/other/functions/one.pp": "function other::one() { 1 }\n",
		"modules/other/lib/puppet/functions/one.rb": "# none\n", "modules/other/lib/puppet/type/one.rb": "# none\n",
		"manifests/site.pp": "node 'language.example.org' {\n" +
			"  if find_file(\"${settings::environmentpath}/production/modules/other/types/one.pp\") { notify { 'x': } } }\n" +
			"node 'lookups.example.org' { $x = 'a' =~ Other::One\n notify { 'y': message => String(other::one()) } }\n",
	}
	staleNodes(files, rows, "")
	pool := stalePool(t, files)
	for i, row := range rows {
		if notes := staleReads(t, pool, fmt.Sprintf("r%d", i)); !hasNote(notes, row.want) {
			t.Errorf("%s: %q is missing; there is %q", row.ruby, row.want, kindOf(notes, row.want))
		}
	}
	if notes := staleReads(t, pool, "language"); !hasNote(notes, "file modules/other/types/one.pp") {
		t.Errorf("a manifest that asks for a file of a type: there is %q", kindOf(notes, "file "))
	}
	if notes := staleReads(t, pool, "lookups"); !hasNote(notes, "tree modules/other/types") || hasNote(notes, "file modules/other/types/one.pp") {
		t.Errorf("lookups by name: there is %q", append(kindOf(notes, "tree "), kindOf(notes, "file ")...))
	}
}
