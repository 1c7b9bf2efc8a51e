# frozen_string_literal: true

module Tutti
  # What this process holds, and when the garbage collector may run.
  #
  # A compile is short and most of what it makes lives until its end, so the
  # collector stays off until the process has grown by a bound.
  class Memory
    PAGE = 4096

    def self.resident
      File.read('/proc/self/statm').split[1].to_i * PAGE
    end

    def self.peak
      File.read('/proc/self/status')[/^VmHWM:\s+(\d+)/, 1].to_i * 1024
    end

    # Leaves the process room to grow by bytes; then memory runs out.
    def self.limit(bytes)
      now = File.read('/proc/self/statm').split[0].to_i * PAGE
      Process.setrlimit(:AS, now + bytes)
    end

    # headroom: the bound, 0 for none: then Ruby collects as it likes.
    def initialize(headroom)
      @patient = headroom.positive?
      @ceiling = Memory.resident + headroom
      @compiling = false
    end

    def during_compile
      return yield unless @patient

      @compiling = true
      GC.disable
      yield
    ensure
      @compiling = false
      GC.enable
    end

    # Called now and then by another thread.
    def check
      GC.enable if @compiling && Memory.resident > @ceiling
    end
  end
end
