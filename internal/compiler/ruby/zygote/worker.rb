# frozen_string_literal: true

module Tutti
  # Keeps what generate() starts in the worker's process group, so that it ends
  # with the worker; Puppet would give it a session of its own.
  module OneGroup
    def setsid
      Process.pid
    end
  end

  # A forked process that compiles the orders it is sent, one at a time.
  class Worker
    CHECK_EVERY = 0.1 # seconds between looks at the memory

    def initialize(socket, lifelines, compiler, limits)
      @socket = socket
      @lifelines = lifelines
      @compiler = compiler
      @limits = limits
      @memory = Memory.new(limits['gc_headroom_bytes'])
    end

    def run
      prepare
      @wire = Wire.new(@socket, @limits['request_bytes'])
      loop do
        message = begin
          @wire.read or break
        rescue JSON::ParserError # too deep: the server sends no other mistake
          { 'op' => 'compile', 'order' => nil }
        end
        @wire.write(*answer(message))
      end
    end

    private

    def prepare
      srand
      Privacy.adopt
      Process.singleton_class.prepend(OneGroup)
      Memory.limit(@limits['memory_bytes'])
      Thread.new { watch }.report_on_exception = false
    end

    # Ends the whole process group when the zygote or the server is gone.
    def watch
      loop do
        break if IO.select(@lifelines, nil, nil, CHECK_EVERY)

        @memory.check
      end
      Process.kill(:KILL, -Process.pid)
    end

    def answer(message)
      case message['op']
      when 'compile' then compile(message['order'])
      when 'lookup' then lookup(message['order'], message['lookup'])
      else [failure("unknown operation #{message['op'].inspect}")]
      end
    end

    def failure(message)
      { 'error' => { 'cause' => 'input', 'message' => message } }
    end

    def compile(order)
      return [failure('the order is no JSON object, or nested too deep')] unless order.is_a?(Hash)

      started = Worker.cpu
      known = @compiler.known_types
      result = @memory.during_compile { @compiler.compile(order, @wire) }
      header = result[:header].merge('cpu_ns' => Worker.cpu - started,
                                     'peak_bytes' => Memory.peak, 'resident_bytes' => Memory.resident,
                                     'new_types' => @compiler.known_types - known)
      [header, *result[:documents]]
    end

    def lookup(order, question)
      return [failure('the order is no JSON object, or nested too deep')] unless order.is_a?(Hash)

      result = @memory.during_compile { @compiler.lookup(order, question, @wire) }
      [result[:header].merge('peak_bytes' => Memory.peak, 'resident_bytes' => Memory.resident), *result[:documents]]
    end

    # CPU nanoseconds of this process and of its ended children.
    def self.cpu
      children = Process.times
      own = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
      own + ((children.cutime + children.cstime) * 1e9).to_i
    end
  end
end
