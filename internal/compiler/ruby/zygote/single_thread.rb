# frozen_string_literal: true

module Tutti
  # What Puppet does for servers with many threads and for profilers, and what a
  # worker has no use for: one thread of a process compiles, and nobody profiles.
  module SingleThread
    def self.install
      require 'puppet/pops'
      Puppet::Pops::Loader::Loader.prepend(Unlocked)
      Puppet::Pops::Loader::BaseLoader.prepend(Direct)
      Puppet::Util::Profiler.singleton_class.prepend(Unprofiled)
    end

    # The environment's lock does nothing outside JRuby.
    module Unlocked
      def synchronize
        yield
      end
    end

    # The stock method without the lock.
    module Direct
      def load_typed(typed_name)
        last = @last_result
        return last unless last.nil? || typed_name != last.typed_name

        @last_result = internal_load(typed_name)
      end
    end

    # No profiler is ever registered here.
    module Unprofiled
      def profile(_message, _metric_id)
        yield
      end
    end
  end
end
