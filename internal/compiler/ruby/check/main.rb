# frozen_string_literal: true

# Says what is wrong with files of Puppet code, by Puppet's own parsers. A process of its own that runs none of the code: no hooks, no
# compiler. Standard input is lines of JSON, {"path", "kind", "bytes"}, each followed by that many bytes; the first line is
# {"modulepath", "manifest", "root", "dir", "memory", "seconds", "strict"}, strict if an operator chose it. Each answer is a line of JSON, a
# finding or the last one, {"done"}.
$LOAD_PATH.unshift(__dir__)
require 'json'
require 'files'

head = JSON.parse($stdin.gets)
$stdin.binmode
Process.setrlimit(:AS, head['memory']) if head['memory'].to_i.positive?
Process.setrlimit(:CPU, head['seconds']) if head['seconds'].to_i.positive?
files = Tutti::Files.new(head)
count = 0
while (line = $stdin.gets)
  file = JSON.parse(line)
  text = $stdin.read(file['bytes'])
  files.check(file['path'], file['kind'], text) { |finding| puts JSON.generate(finding) }
  count += 1
end
puts JSON.generate('done' => count)
