# frozen_string_literal: true

# A small host that drives the transport as OpenBolt's executor does, against a server with two agents, and says what does not hold:
#   host.rb URL CA-FILE TOKEN-FILE SCRATCH NODE NODE
# The agents run on this machine, so that files can be looked at.
require 'fileutils'
require 'json'

module Bolt
  # Result is what OpenBolt keeps of an action on a target: as much of it as the transport makes.
  class Result
    attr_reader :target, :value, :action

    def initialize(target, error: nil, message: nil, value: nil, action: 'action', object: nil)
      @target = target
      @value = value || {}
      @value['_error'] = error if error
      @value['_output'] = message if message
      @action = [action, object].compact
    end

    def self.from_exception(target, exception, action:, position:)
      new(target, error: { 'kind' => 'exception', 'msg' => exception.message, 'details' => position }, action: action)
    end

    def self.for_command(target, value, action, command, _position)
      value['_error'] = { 'kind' => 'command-error', 'msg' => "exit code #{value['exit_code']}" } unless value['exit_code'].zero?
      new(target, value: value, action: action, object: command)
    end

    def self.for_task(target, stdout, stderr, exit_code, task, _position)
      value = stdout.start_with?('{') ? JSON.parse(stdout) : { '_output' => stdout }
      value['_error'] ||= { 'kind' => 'task-error', 'msg' => stderr } unless exit_code.zero?
      new(target, value: value, action: 'task', object: task)
    end

    def self.for_upload(target, source, destination)
      new(target, message: "#{source} to #{destination}", action: 'upload', object: source)
    end

    def self.for_download(target, source, _destination, download)
      new(target, value: { 'path' => download }, action: 'download', object: source)
    end

    def error
      value['_error']
    end
  end

  module Transport
    # Base is what a transport has from OpenBolt.
    class Base
      def unwrap_sensitive_args(arguments)
        arguments
      end
    end
  end
end

require_relative '../lib/tutti_transport/transport'

url, cacert, token_file, scratch, *nodes = ARGV
Target = Struct.new(:host, :options) do
  alias_method :name, :host
  alias_method :safe_name, :host
end
Task = Struct.new(:name)
targets = nodes.map { |node| Target.new(node, { 'service-url' => url, 'cacert' => cacert, 'token-file' => token_file, 'job-poll-interval' => 0.2 }) }
stranger = Target.new('nobody.example', targets.first.options)
one = targets.take(1)
transport = Bolt::Transport::Tutti.new
events = []
seen = ->(event) { events << event[:type] }
wrong = []
holds = 0
check = lambda do |what, got, want|
  got == want ? holds += 1 : wrong << "#{what}: #{got.inspect}, want #{want.inspect}"
end
values = ->(results) { results.map { |result| [result.target.host, result.value] } }
errors = ->(results) { results.map { |result| result.error && result.error['kind'] } }

check['one job for all', transport.batches(targets), [targets]]
check['two servers', transport.batches(targets + [Target.new('x', { 'service-url' => 'https://other.example' })]).length, 2]
check['available', transport.batch_connected?(targets), true]
check['a stranger is not', transport.batch_connected?(targets + [stranger]), false]

said = { 'stdout' => "out\n", 'stderr' => "err\n", 'merged_output' => "out\nerr\n", 'exit_code' => 0 }
check['command', values[transport.batch_command(targets, 'echo out; echo err >&2', { description: 'try' }, &seen)], nodes.map { |node| [node, said] }]
check['events', events, %i[node_start node_start node_result node_result]]
failed = transport.batch_command(one, 'exit 7')
check['command that fails', [failed.first.value['exit_code'], errors[failed]], [7, ['command-error']]]
flood = transport.batch_command(one, "head -c 12000000 /dev/zero | tr '\\0' 'x'").first.value
check['output that is cut says so', [flood['stdout'].length < 12_000_000, flood['stderr'].include?('was cut off')], [true, true]]

File.write(script = File.join(scratch, 'two.sh'), "#!/bin/sh\necho \"$1/$2\"\n")
check['script', transport.batch_script(targets, script, ['one', 'two words']).map { |result| result.value['stdout'] }, ["one/two words\n"] * 2]

given = { 'user' => 'app', 'password' => 'correct-horse', '_task' => 'db::passwd', '_description' => 'x' }
check['task', values[transport.batch_task(targets, Task.new('db::passwd'), given)], nodes.map { |node| [node, { 'set' => true, 'user' => 'app' }] }]
each = targets.zip(%w[correct-horse wrong]).to_h { |target, password| [target, given.merge('password' => password)] }
check['task with', errors[transport.batch_task_with(targets, Task.new('db::passwd'), each)], [nil, 'task-error']]
check['noop', transport.batch_task(one, Task.new('db::tools'), { '_noop' => true }).first.value['_output'].to_s.include?('noop true'), true]
check['no such task', errors[transport.batch_task(one, Task.new('db::none'), {})], ['tutti/not_found']]
check['no such parameter', errors[transport.batch_task(one, Task.new('db::passwd'), { 'x' => 1 })], ['tutti/invalid']]

File.binwrite(file = File.join(scratch, 'bytes'), (0..255).map(&:chr).join * 50)
transport.batch_upload(one, file, there = File.join(scratch, 'there'))
check['upload', File.binread(there) == File.binread(file), true]
FileUtils.mkdir_p(File.join(deep = File.join(scratch, 'tree'), 'a/b'))
File.write(File.join(deep, 'a/b/.c'), 'C')
File.symlink('a/b', File.join(deep, 'l'))
check['upload of a tree', errors[transport.batch_upload(one, deep, copy = File.join(scratch, 'copy'))], [nil]]
check['the tree', [File.read(File.join(copy, 'l/.c')), File.readlink(File.join(copy, 'l'))], %w[C a/b]]
check['upload to nowhere', errors[transport.batch_upload(one, file, 'no/path')], ['tutti/invalid']]
got = transport.batch_download(targets, file, File.join(scratch, 'got'))
check['download', got.map { |result| File.binread(result.value['path']) == File.binread(file) }, [true, true]]
check['download of nothing', errors[transport.batch_download(one, File.join(scratch, 'none'), scratch)], ['tutti/failed']]
check['quotes in a name', errors[transport.batch_download(one, "#{scratch}/it's; exit 0", scratch)], ['tutti/failed']]

check['a stranger', errors[transport.batch_command([stranger], 'id')], ['tutti/not_found']]
check['another user', errors[transport.batch_command(one, 'id', { run_as: 'ann' })], ['exception']]
check['variables', errors[transport.batch_command(one, 'id', { env_vars: { 'A' => 'b' } })], ['exception']]
File.write(bad = File.join(scratch, 'bad-token'), "wrong\n")
check['wrong token', errors[Bolt::Transport::Tutti.new.batch_command([Target.new(nodes.first, one.first.options.merge('token-file' => bad))], 'id')], ['tutti/denied']]
check['another CA', errors[transport.batch_command([Target.new(nodes.first, one.first.options.merge('cacert' => bad))], 'id')], ['exception']]

puts wrong
puts "#{holds} hold, #{wrong.length} do not"
exit wrong.empty? ? 0 : 1
