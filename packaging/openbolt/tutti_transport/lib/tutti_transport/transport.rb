# frozen_string_literal: true

require 'base64'
require 'fileutils'
require 'shellwords'
require_relative 'client'

module Bolt
  module Transport
    # Tutti runs what Bolt is asked for as jobs of a Tutti server: one job for all targets of a server. Tasks come from the code of an
    # environment on the server, not from Bolt's module path.
    class Tutti < Base
      # MAX_DOWNLOAD is how large a file may be that comes back as the output of a command, in bytes.
      MAX_DOWNLOAD = 6_000_000

      def initialize
        super
        @clients = {}
        @lock = Mutex.new
      end

      def provided_features
        ['puppet-agent']
      end

      # Targets of one server, with one token and one environment, are one job.
      def batches(targets)
        targets.group_by { |target| target.options.to_h.slice('service-url', 'cacert', 'token-file', 'task-environment') }.values
      end

      def batch_connected?(targets)
        (names(targets) - client(targets).connected(names(targets))).empty?
      end

      def batch_command(targets, command, options = {}, position = [], &callback)
        in_events(targets, 'command', position, callback) do
          refuse(options)
          outcomes = client(targets).run('command', names(targets), described(options).merge(command: command))
          each_target(targets, outcomes, 'command', command, position) { |target, out| for_program(target, out, 'command', command, position) }
        end
      end

      def batch_script(targets, script, arguments, options = {}, position = [], &callback)
        in_events(targets, 'script', position, callback) do
          refuse(options)
          order = { name: File.basename(script), digest: client(targets).upload(script), arguments: unwrap_sensitive_args(arguments).map(&:to_s) }
          outcomes = client(targets).run('script', names(targets), described(options).merge(order))
          each_target(targets, outcomes, 'script', script, position) { |target, out| for_program(target, out, 'script', script, position) }
        end
      end

      def batch_task(targets, task, arguments, options = {}, position = [], &callback)
        in_events(targets, 'task', position, callback) do
          refuse(options)
          given = unwrap_sensitive_args(arguments)
          order = { task: task.name, environment: targets.first.options['task-environment'] || 'production', noop: given['_noop'] ? true : false,
                    params: given.reject { |name, _| name.start_with?('_') } }
          outcomes = client(targets).run('task', names(targets), described(options).merge(order))
          each_target(targets, outcomes, 'task', task.name, position) do |target, out|
            Bolt::Result.for_task(target, out[:stdout], out[:stderr], out[:exit_code], task.name, position)
          end
        end
      end

      # Each target has its own parameters, so each has its own job.
      def batch_task_with(targets, task, target_mapping, options = {}, position = [], &callback)
        targets.flat_map { |target| batch_task([target], task, target_mapping[target], options, position, &callback) }
      end

      def batch_upload(targets, source, destination, options = {}, position = [], &callback)
        in_events(targets, 'upload', position, callback) do
          refuse(options)
          outcomes = client(targets).run('file', names(targets), described(options).merge(files: entries(targets, source, destination)))
          each_target(targets, outcomes, 'upload', source, position) { |target, _| Bolt::Result.for_upload(target, source, destination) }
        end
      end

      def batch_download(targets, source, destination, options = {}, position = [], &callback)
        in_events(targets, 'download', position, callback) do
          refuse(options)
          outcomes = client(targets).run('command', names(targets), described(options).merge(command: fetching(source)))
          each_target(targets, outcomes, 'download', source, position) { |target, out| keep(target, out, source, destination, position) }
        end
      end

      private

      def client(targets)
        options = targets.first.options
        url = options['service-url'] or raise ArgumentError, 'the tutti transport needs a service-url, such as https://tutti.example.com:8140'
        token = File.expand_path(options['token-file'] || '~/.puppetlabs/token')
        cacert = File.expand_path(options['cacert'] || '/etc/puppetlabs/puppet/ssl/certs/ca.pem')
        poll = options['job-poll-interval'] || 1
        read_timeout = options['read-timeout'] || 120
        @lock.synchronize do
          @clients[[url, token, cacert, poll, read_timeout]] ||= TuttiTransport::Client.new(
            url, token: File.read(token).strip, cacert: cacert, poll: poll, read_timeout: read_timeout
          )
        end
      end

      def names(targets)
        targets.map { |target| target.host || target.name }
      end

      def described(options)
        { description: options[:description] || '' }
      end

      # Agents run what they are told as the user that they are; a silent other user would be worse than an error.
      def refuse(options)
        raise NotImplementedError, 'the tutti transport does not set environment variables: put them into the command' unless (options[:env_vars] || {}).empty?
        raise NotImplementedError, 'the tutti transport has no run-as: agents run everything as their own user' if options[:run_as]
      end

      # in_events tells of the beginning and the end of each target, and makes results of what goes wrong for all.
      def in_events(targets, action, position, callback)
        targets.each { |target| callback&.call(type: :node_start, target: target) }
        results = begin
          yield
        rescue TuttiTransport::Refused => e
          targets.map { |target| failure(target, e.kind, e.message, action, nil, position) }
        rescue StandardError, NotImplementedError => e
          targets.map { |target| Bolt::Result.from_exception(target, e, action: action, position: position) }
        end
        results.each { |result| callback&.call(type: :node_result, result: result) }
      end

      # each_target makes a result of each outcome: of a program that ran, or of why it did not.
      def each_target(targets, outcomes, action, object, position)
        targets.zip(names(targets)).map do |target, name|
          out = outcomes[name]
          ran = out && (out[:state] == 'succeeded' || (out[:state] == 'failed' && out[:exit_code] && %w[command script task].include?(action)))
          next yield(target, out) if ran

          failure(target, out ? out[:state] : 'missing', problem(out), action, object, position)
        end
      end

      def problem(out)
        return 'the server knows of no run on this node' unless out

        said = out[:stderr].strip
        said.empty? ? out[:reason] : "#{out[:reason]}: #{said}"
      end

      def failure(target, kind, message, action, object, position)
        error = { 'kind' => "tutti/#{kind}", 'issue_code' => 'TUTTI_ERROR', 'msg' => message || kind, 'details' => %w[file line].zip(position).to_h.compact }
        Bolt::Result.new(target, error: error, action: action, object: object)
      end

      def for_program(target, out, action, object, position)
        value = { 'stdout' => out[:stdout], 'stderr' => out[:stderr], 'merged_output' => out[:merged], 'exit_code' => out[:exit_code] || 0 }
        Bolt::Result.for_command(target, value, action, object, position)
      end

      # entries is what nodes make of a file, or of a directory with all that is in it.
      def entries(targets, source, destination)
        return [{ destination: destination, digest: client(targets).upload(source) }] unless File.directory?(source)

        [{ kind: 'directory', destination: destination }] + Dir.glob('**/*', File::FNM_DOTMATCH, base: source).sort.filter_map do |name|
          path = File.join(source, name)
          at = { destination: File.join(destination, name) }
          if File.symlink?(path)
            at.merge(kind: 'symlink', source: File.readlink(path))
          elsif File.directory?(path)
            at.merge(kind: 'directory') unless File.basename(name) == '.'
          else
            at.merge(digest: client(targets).upload(path))
          end
        end
      end

      # fetching is a command that prints a file's SHA-256 and its content as base64, both of one reading.
      def fetching(source)
        <<~SH
          f=#{Shellwords.escape(source)}
          [ -f "$f" ] || { echo 'there is no such regular file' >&2; exit 3; }
          n=$(wc -c <"$f") && [ "$n" -le #{MAX_DOWNLOAD} ] || { echo "it has $n bytes, at most #{MAX_DOWNLOAD} can be fetched" >&2; exit 3; }
          b=$(head -c #{MAX_DOWNLOAD} <"$f" | base64 | tr -d '\\n') && s=$(printf %s "$b" | base64 -d | sha256sum) || exit 3
          printf '%s\\n%s\\n' "${s%% *}" "$b"
        SH
      end

      # keep writes what came of a target below a directory of its own.
      def keep(target, out, source, destination, position)
        digest, text = out[:stdout].split("\n", 2)
        content = Base64.decode64(text.to_s)
        unless !out[:cut] && Digest::SHA256.hexdigest(content) == digest
          return failure(target, 'damaged', "what came is not the whole of #{source}: its SHA-256 is another one", 'download', source, position)
        end
        directory = File.join(destination, target.safe_name.gsub(/[^A-Za-z0-9._-]/) { |c| c.bytes.map { |b| format('%%%02X', b) }.join })
        FileUtils.mkdir_p(directory)
        File.binwrite(download = File.join(directory, File.basename(source)), content)
        Bolt::Result.for_download(target, source, destination, download)
      end
    end
  end
end
