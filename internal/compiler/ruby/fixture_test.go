package ruby

// badCode is an environment in which everything goes wrong, one node each.
var badCode = map[string]string{
	"environment.conf": "modulepath = modules\n",
	"manifests/site.pp": `
node 'unknown-class.example.org' { include nothing::here }
node 'raises.example.org' {
  notify { 'before': }
  $x = bad::raise('the reason')
}
node 'bad-parameter.example.org' {
  class { 'bad': port => 'not a number' }
}
node 'fails.example.org' { fail('because I say so') }
node 'loops.example.org' { bad::loop() }
node 'ruby-recursion.example.org' { bad::recurse() }
node 'recursion.example.org' { bad::deep(1) }
node 'eats.example.org' { bad::eat() }
node 'gulps.example.org' { bad::gulp() }
node 'broods.example.org' { bad::brood() }
node 'scatters.example.org' { bad::scatter() }
node 'exits.example.org' { bad::leave() }
node 'throws.example.org' { bad::toss() }
node 'dies.example.org' { bad::die() }
node 'sleeps.example.org' { $x = generate('/bin/sleep', '300') }
node 'prints.example.org' { bad::say() notify { 'said': } }
node 'talks.example.org' {
  warning('careful')
  notice("undefined: ${not_there}")
  Integer[1, 2000].each |$n| { notice("line ${n}") }
}
node 'missing-library.example.org' { notify { 'x': message => inline_template('<%= require "jsn" %>') } }
node 'template.example.org' { notify { 'x': message => template('bad/broken.erb') } }
node 'syntax-in-module.example.org' { include bad::syntax }
node 'environment.example.org' { notify { 'env': message => bad::env() } }
node 'settings.example.org' {
  notify { 'settings': message => [$settings::confdir, $settings::vardir, $settings::environmentpath, $settings::ssldir] }
  notify { 'file': message => file("${settings::environmentpath}/${environment}/modules/bad/files/a.txt") }
  notify { 'module path': message => module_directory('bad') }
}
node default { notify { 'fine': } @@notify { 'exported': message => 'to others' } @notify { 'virtual': } }
`,
	"modules/bad/files/a.txt":                         "read by its shown path\n",
	"modules/bad/manifests/init.pp":                   "class bad (Integer $port) { }\n",
	"modules/bad/manifests/syntax.pp":                 "class bad::syntax {\n  notify { 'x' message => }\n}\n",
	"modules/bad/templates/broken.erb":                "fine\n<%= nil.missing_method %>\n",
	"modules/bad/functions/deep.pp":                   "function bad::deep($n) { bad::deep($n + 1) }\n",
	"modules/bad/lib/puppet/functions/bad/raise.rb":   function("raise", "reason", "raise Puppet::Error, reason"),
	"modules/bad/lib/puppet/functions/bad/loop.rb":    function("loop", "", "loop {}"),
	"modules/bad/lib/puppet/functions/bad/recurse.rb": function("recurse", "", "act"),
	"modules/bad/lib/puppet/functions/bad/eat.rb":     function("eat", "", "held = []; loop { held << ('x' * 1_000_000) }"),
	"modules/bad/lib/puppet/functions/bad/gulp.rb":    function("gulp", "", "'x' * 8_000_000_000"),
	"modules/bad/lib/puppet/functions/bad/brood.rb":   function("brood", "", "2.times { fork { "+holdsMemory+" } }; sleep"),
	"modules/bad/lib/puppet/functions/bad/scatter.rb": function("scatter", "",
		"2.times { system('setsid', 'sh', '-c', 'setsid ruby -e \"$0\" & exit 0', '"+holdsMemory+"') }; sleep"),
	"modules/bad/lib/puppet/functions/bad/leave.rb": function("leave", "", "exit 3"),
	"modules/bad/lib/puppet/functions/bad/toss.rb":  function("toss", "", "throw :ball"),
	"modules/bad/lib/puppet/functions/bad/die.rb":   function("die", "", "Process.kill(:KILL, $$); sleep"),
	"modules/bad/lib/puppet/functions/bad/say.rb":   function("say", "", "puts '{\"v\":1}'; warn 'x' * 100_000; $stdout.write('no end')"),
	"modules/bad/lib/puppet/functions/bad/env.rb":   function("env", "", "ENV.keys.sort"),
}

// holdsMemory takes all that it gets, and keeps it.
const holdsMemory = `held = []; begin; loop { held << ("x" * 1_000_000) }; rescue NoMemoryError; sleep; end`

// function is a Ruby function of module bad.
func function(name, argument, body string) string {
	param := ""
	if argument != "" {
		param = "    param 'String', :" + argument + "\n"
	}
	return "Puppet::Functions.create_function(:'bad::" + name + "') do\n  dispatch(:act) do\n" + param +
		"  end\n  def act(" + argument + ")\n    " + body + "\n  end\nend\n"
}
