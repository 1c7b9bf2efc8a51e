# frozen_string_literal: true

require 'rbconfig'

module Tutti
  # What the kernel is asked for that Ruby has no words for. Where it cannot be asked, nothing is lost
  # that the cell around us does not hold.
  module Privacy
    PRCTL = { 'x86_64' => 157, 'aarch64' => 167, 'arm64' => 167 }[RbConfig::CONFIG['host_cpu']]
    DUMPABLE = 4
    CHILD_SUBREAPER = 36

    class << self
      # Other processes of the same user cannot look into this one, nor into what is forked from it.
      def close
        ask(DUMPABLE, 0)
      end

      # What loses its parent below this process becomes its child: so it is known whose it was.
      def adopt
        ask(CHILD_SUBREAPER, 1)
      end

      private

      def ask(option, value)
        return unless PRCTL

        verbose = $VERBOSE
        $VERBOSE = nil # it advises a library that costs more than all of this
        syscall(PRCTL, option, value, 0, 0, 0)
      rescue SystemCallError, NotImplementedError
        nil
      ensure
        $VERBOSE = verbose if PRCTL
      end
    end
  end
end
