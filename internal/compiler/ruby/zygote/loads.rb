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
        Puppet::Node::Environment.prepend(Main)
      end

      # The classes and defined types that an environment has loaded; nil for none.
      def kept(environment)
        environment.instance_variable_get(:@known_resource_types)
      end
    end

    # The main manifest is loaded whole, or nothing of it is kept. Puppet keeps the collection
    # of classes, and the loaders with functions and data types, when taking over what it
    # parsed fails: the next compile would find an empty or a half collection and no mistake.
    module Main
      def known_resource_types
        return super if @known_resource_types

        begin
          super
        rescue Exception # whatever stopped it
          @known_resource_types = @loaders = @parsed_code = nil
          raise
        end
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
