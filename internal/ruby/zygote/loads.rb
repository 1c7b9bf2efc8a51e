# frozen_string_literal: true

module Tutti
  # One lookup of a class may load several files. Puppet takes each for loaded once it
  # is parsed, but learns what is in them only after the last: a mistake in one file
  # would hide the classes of the others from all later compiles of the process.
  module Loads
    class << self
      # Whether a mistake may have left some of a file's classes known and others not.
      def broken?
        @broken
      end

      def broken!
        @broken = true
      end

      def install
        require 'puppet/parser/type_loader'
        Puppet::Parser::TypeLoader.prepend(Whole)
      end
    end

    # All files of a lookup are loaded, or none.
    module Whole
      def load_files(_modname, files)
        @loaded ||= {}
        fresh = files.reject { |file| @loaded[file] }
        begin
          super
        rescue StandardError, ScriptError
          parsed = fresh.all? { |file| @loaded[file] }
          parsed ? Loads.broken! : fresh.each { |file| @loaded.delete(file) }
          raise
        end
      end
    end
  end
end
