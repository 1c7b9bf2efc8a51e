# frozen_string_literal: true

module Tutti
  # Parses every template once per process. The files of a version never change,
  # so a path is a good key; texts of inline templates are their own key.
  module Templates
    MAX_INLINE = 1000

    def self.install
      require 'puppet/parser/templatewrapper'
      require 'puppet/pops/evaluator/epp_evaluator'
      Puppet::Parser::TemplateWrapper.prepend(Erb)
      Puppet::Pops::Parser::EvaluatingParser::EvaluatingEppParser.prepend(Epp)
    end

    # EPP: keeps the syntax tree.
    module Epp
      PARSED = {}

      def parse_file(path)
        PARSED[path] ||= super
      end

      def parse_string(text, source = nil)
        key = [text, source]
        PARSED.clear if PARSED.size > MAX_INLINE && !PARSED.key?(key)
        PARSED[key] ||= super
      end
    end

    # ERB: keeps the template as a method, and gives it only the variables that
    # its text names.
    module Erb
      Compiled = Struct.new(:render, :variables)
      COMPILED = {}
      # What could reach a variable without writing its name.
      INDIRECT = /instance_variable|binding|eval|send|@\#|local_variables/.freeze
      NAME = /@([a-zA-Z_]\w*)/.freeze

      def result(string = nil)
        key = string || @__file__
        COMPILED.clear if COMPILED.size > MAX_INLINE && !COMPILED.key?(key)
        compiled = COMPILED.fetch(key) { COMPILED[key] = Erb.compile(key, string, @__file__) }
        return super unless compiled

        bind(compiled.variables)
        compiled.render.bind_call(self)
      end

      # nil for a template that only the stock way understands.
      def self.compile(_key, string, file)
        text = string || Puppet::FileSystem.read_preserve_line_endings(file)
        return nil if text.match?(INDIRECT)

        erb = Puppet::Util.create_erb(text)
        holder = Puppet::Parser::TemplateWrapper
        erb.def_method(holder, '__tutti_render', file || '(erb)')
        render = holder.instance_method(:__tutti_render)
        holder.send(:remove_method, :__tutti_render)
        Compiled.new(render, text.scan(NAME).to_h { |name,| [name, true] })
      rescue SyntaxError
        nil
      end

      private

      def bind(wanted)
        return if wanted.empty?

        scope.to_hash.each do |name, value|
          name = name.gsub(/\W/, '_') if name.match?(/\W/)
          instance_variable_set("@#{name}", value) if wanted[name]
        end
      end
    end
  end
end
