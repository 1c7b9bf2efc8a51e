# frozen_string_literal: true

require 'socket'
require 'wire'
require 'guesses'
require 'memory'
require 'privacy'

module Tutti
  # The warm parent: it loads Puppet and a version's code, learns from samples,
  # and forks workers. It never serves a compile itself.
  class Zygote
    MAX_REQUEST = 256 << 20

    def initialize(control)
      @control = control
      @wire = Wire.new(control, MAX_REQUEST)
      @lifeline, @held = IO.pipe # ends for the workers when this process ends
      @children = {}
    end

    def run
      Privacy.close
      Process.setproctitle('tutti zygote')
      Thread.new { watch }.report_on_exception = false
      while (message = @wire.read)
        handle(message)
      end
    ensure
      stop
    end

    private

    # Standard input ends when the server does.
    def watch
      IO.select([$stdin])
      stop
    end

    def stop
      @children.each_key { |pid| kill(pid) }
      exit!(0)
    end

    def kill(pid)
      Process.kill(:KILL, -pid)
    rescue Errno::ESRCH
      nil
    end

    def handle(message)
      case message['op']
      when 'hello' then @wire.write(hello(message))
      when 'warm' then @wire.write(warm(message['orders']))
      when 'fork' then fork_worker
      when 'reap' then @wire.write(reap(message['pid']))
      when 'stop' then stop
      else @wire.write('error' => "unknown operation #{message['op'].inspect}")
      end
    end

    def hello(message)
      @limits = message['limits']
      Guesses.off { load(message) }
      Time.at(0).zone # the time zone is read once: all workers have the same
      settle
      { 'puppet' => Puppet.version, 'ruby' => RUBY_VERSION, 'resident_bytes' => Memory.resident }
    rescue Puppet::Error => e # environment.conf cannot be used
      { 'error' => Logs.clean(e.message) }
    end

    def load(message)
      require 'compiler'
      require 'worker'
      @compiler = Compiler.new(name: message['environment'], version: message['version'], root: message['root'],
                               dir: message['dir'], limit: @limits['catalog_bytes'], answers: @limits['answer_bytes'],
                               settings: message['settings'] || {})
      @compiler.load
    end

    # Compiles samples so that what they load is shared by all workers.
    def warm(orders)
      headers = orders.map { |order| @compiler.compile(order, @wire)[:header] }
      return { 'error' => 'a sample left Puppet half way' } if headers.any? { |header| header['spent'] }

      failed = headers.count { |header| header.key?('error') }
      settle
      { 'warmed' => orders.size - failed, 'failed' => failed, 'resident_bytes' => Memory.resident }
    end

    # Garbage is better collected once here than in every child.
    def settle
      3.times { GC.start }
    end

    def fork_worker
      @wire.write('ready' => true)
      socket = @control.recv_io(UNIXSocket)
      pid = fork { become_worker(socket) }
      socket.close
      Process.setpgid(pid, pid) rescue nil # the child does it too: whoever is first
      @children[pid] = true
      @wire.write('pid' => pid)
    end

    def become_worker(socket)
      Process.setpgid(0, 0)
      Process.setproctitle('tutti worker')
      @control.close
      @held.close
      Worker.new(socket, [$stdin, @lifeline], @compiler, @limits).run
    rescue StandardError, NoMemoryError => e
      warn("worker: #{e.class}")
    ensure
      exit!(0)
    end

    # Until it is reaped a worker's number belongs to it, so that the server
    # never kills a stranger.
    def reap(pid)
      return { 'error' => "no child #{pid.inspect}" } unless @children.delete(pid)

      kill(pid)
      _, status = Process.wait2(pid)
      { 'exit' => status.exitstatus, 'signal' => status.termsig }
    end
  end
end
