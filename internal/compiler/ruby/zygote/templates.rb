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
      Proc.prepend(Blocks)
      Puppet::Pops::Parser::EvaluatingParser::EvaluatingEppParser.prepend(Epp)
    end

    # EPP: keeps the syntax tree.
    module Epp
      PARSED = {}

      def parse_file(path)
        FileReads.seen('file', path)
        PARSED[path] ||= super
      end

      def parse_string(text, source = nil)
        key = [text, source]
        PARSED.clear if PARSED.size > MAX_INLINE && !PARSED.key?(key)
        PARSED[key] ||= super
      end
    end

    # The variables of a scope that a template names, as Scope#to_hash has them: an
    # inner one hides an outer one, and what was set to undef hides and is left out.
    # Made without the hash, which would copy all facts for each template.
    module Variables
      def self.of(scope, wanted)
        return {} if wanted.empty?

        odd = renamed(scope.compiler.topscope)
        return slowly(scope, wanted) if odd.any? { |name| wanted.key?(name) }

        found = {}
        collect(scope, wanted, found)
        # One more parameter with such a name may come, which is a variable that is nowhere now.
        Inputs.heard&.every_name if odd.any? && wanted.each_key.any? { |name| name.include?('_') && !found.key?(name) }
        found
      end

      # Node parameters may have names that Ruby has not, and have others in a template: these. Only the top scope has such parameters.
      # (What is local there while an EPP template is evaluated has such a name, too, for the template's output.)
      def self.renamed(top)
        unless @top == top.object_id # not the scope itself: it would keep a whole compile alive
          @top = top.object_id
          variables = top.instance_variable_get(:@symtable)
          @renamed = Inputs.deaf { variables.add_entries_to }.keys.grep(/\W/).map { |name| name.gsub(/\W/, '_') }
        end
        @renamed
      end

      def self.slowly(scope, wanted)
        scope.to_hash.each_with_object({}) do |(name, value), found|
          name = name.gsub(/\W/, '_') if name.match?(/\W/)
          found[name] = value if wanted[name]
        end
      end

      # From the outermost scope inwards, as Scope#to_hash goes.
      def self.collect(scope, wanted, found)
        if (outer = scope.enclosing_scope)
          collect(outer, wanted, found)
          inherited = scope.inherited_scope
          collect(inherited, wanted, found) if inherited
        end
        last = scope.instance_variable_get(:@ephemeral).last
        wanted.each_key do |name|
          table = nearest(last, name) or next
          value = table[name]
          value.nil? || value == :undef ? found.delete(name) : found[name] = value
        end
      end

      # Of the nested tables of one scope; match data and parameters that are
      # being evaluated are no variables yet.
      def self.nearest(table, name)
        table = table.parent until table.nil? || (table.instance_of?(Puppet::Parser::Scope::LocalScope) && table.bound?(name))
        table
      end
    end

    # ERB: keeps the template as a method, and gives it only the variables that it reads.
    module Erb
      Compiled = Struct.new(:render, :variables)
      COMPILED = {}
      IS_SET = Kernel.instance_method(:instance_variable_defined?)

      def result(string = nil)
        key = string || @__file__
        FileReads.seen('file', @__file__) if @__file__
        COMPILED.clear if COMPILED.size > MAX_INLINE && !COMPILED.key?(key)
        compiled = COMPILED.fetch(key) { COMPILED[key] = Erb.compile(string, @__file__) }
        return super unless compiled

        bind(compiled.variables)
        compiled.render.bind_call(self)
      end

      # nil for a template that only the stock way understands.
      def self.compile(string, file)
        erb = Puppet::Util.create_erb(string || Puppet::FileSystem.read_preserve_line_endings(file))
        variables = TemplateScan.variables(erb.src) or return nil

        holder = Puppet::Parser::TemplateWrapper
        erb.def_method(holder, '__tutti_render', file || '(erb)')
        render = holder.instance_method(:__tutti_render)
        holder.send(:remove_method, :__tutti_render)
        Compiled.new(render, variables)
      rescue SyntaxError
        nil
      end

      # Ruby that got hold of a template by other ways than its code shows finds all variables.
      %i[instance_variables instance_variable_get instance_variable_defined? instance_eval instance_exec inspect dup clone].each do |name|
        class_eval("def #{name}(...); tutti_bind_all; super; end", __FILE__, __LINE__)
      end

      # As the stock way binds them, but for what the template has set meanwhile.
      def tutti_bind_all
        return if @__tutti_bound || @__scope__.nil?

        @__tutti_bound = true
        scope.to_hash.each do |name, value|
          name = "@#{name.gsub(/[^\w]/, '_')}"
          instance_variable_set(name, value) unless IS_SET.bind_call(self, name)
        end
      end

      private

      def bind(wanted)
        Variables.of(scope, wanted).each do |name, value|
          Inputs.facts&.whole(value) if value.is_a?(Hash) && wanted[name] == :whole
          instance_variable_set("@#{name}", value)
        end
      end
    end

    # A block of a template takes its self along.
    module Blocks
      def binding
        super.tap { |made| made.receiver.tutti_bind_all if made.receiver.is_a?(Erb) }
      end
    end
  end
end
