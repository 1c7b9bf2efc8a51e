# frozen_string_literal: true

require 'puppet/pops'

module Tutti
  # One question to Hiera, as `puppet lookup` asks it: for a node, with its facts and trusted data, and for an explanation.
  # Without 'compile' no manifest is read, so that variables of manifests have no value; groups' values and variables count.
  class HieraQuestion < Compilation
    # What stands for a value that is not shown.
    HIDDEN_SENSITIVE = '[value redacted: it is Sensitive]'
    HIDDEN_DECRYPTED = '[value redacted: it is decrypted by eyaml]'

    # question: 'keys', and unless empty 'merge' (options of lookup()), 'default', 'explain', 'compile'.
    def initialize(order, question, environment, version, paths)
      super(order, environment, version, paths)
      raise BadOrder, 'the question must have keys' unless question.is_a?(Hash) && question['keys'].is_a?(Array)

      @question = question
    end

    private

    def compile
      Decrypted.watch
      Puppet[:code] = 'undef' unless @question['compile'] # a main manifest that cannot be parsed keeps nobody from a lookup
      answer = nil
      compiler = (@question['compile'] ? Puppet::Parser::Compiler : WithoutCode).new(node)
      compiler.compile do |catalog|
        answer = ask(compiler.topscope)
        catalog
      end
      answer
    ensure
      Puppet::Type.clear_misses
    end

    def object(key)
      key == 'classes' && !@question['compile'] ? {} : super
    end

    # As Puppet::Application::Lookup does it.
    def ask(scope)
      explainer = @question['explain'] ? Puppet::Pops::Lookup::Explainer.new(false, false) : nil
      invocation = Puppet::Pops::Lookup::Invocation.new(scope, {}, {}, explainer)
      found = true
      begin
        value = Puppet::Pops::Lookup.lookup(@question['keys'], nil, nil, false, @question['merge'], invocation) do |names|
          found = false
          @question.fetch('default') { Puppet::Pops::Lookup.send(:fail_lookup, Array(names)) }
        end
      rescue Puppet::DataBinding::LookupError => e
        raise unless explainer || !found

        problem = e.message if found
        found = false
        invocation.report_text { e.message }
      end
      found ||= problem.nil? && @question.key?('default')
      shown(found, value, explainer, problem)
    end

    def shown(found, value, explainer, problem)
      hidden = Hidden.new(value)
      answer = { 'found' => found }
      answer['value'] = data(hidden.in(value)) if found
      answer['problem'] = problem if problem
      if explainer
        hidden.in_branches(explainer)
        answer['explanation'] = explainer.explain
      end
      answer.merge('hidden' => hidden.any?)
    end

    # Rich data as text.
    def data(value)
      Puppet::Pops::Serialization::ToDataConverter.convert(value, rich_data: false, symbol_as_string: true, message_prefix: 'lookup')
    end

    # Puppet's compiler without a main manifest, nodes and classes.
    class WithoutCode < Puppet::Parser::Compiler
      def evaluate_main
        @main = Puppet::Resource::Type.new(:hostclass, '')
        @topscope.source = @main
        @main_resource = Puppet::Parser::Resource.new('class', :main, scope: @topscope, source: @main)
        @topscope.resource = @main_resource
      end

      def evaluate_ast_node; end

      def evaluate_node_classes; end

      def finish; end
    end

    # What eyaml decrypted in this process. One process answers one question.
    module Decrypted
      @secrets = []

      class << self
        attr_reader :secrets

        # Data that nobody decrypts needs no gem.
        def watch
          require 'hiera/backend/eyaml/parser/encrypted_tokens'
          Hiera::Backend::Eyaml::Parser::EncToken.prepend(Token)
        rescue LoadError
          nil
        end
      end

      # What was between ENC[ and ].
      module Token
        def to_plain_text
          super.tap { |text| Decrypted.secrets << text.chomp unless text.chomp.empty? }
        end
      end
    end

    # Takes values out of an answer that are not to be shown: where the value is Sensitive, or holds something that is, all
    # that Hiera found on the way to it; everywhere, what holds something that eyaml decrypted.
    class Hidden
      def initialize(value)
        @sensitive = sensitive?(value)
        @any = false
      end

      # Whether something was or is taken out.
      def any?
        @sensitive || @any
      end

      def in(value)
        case value
        when Puppet::Pops::Types::PSensitiveType::Sensitive then HIDDEN_SENSITIVE
        when Hash then value.to_h { |name, inner| [self.in(name), self.in(inner)] }
        when Array then value.map { |inner| self.in(inner) }
        else secret?(value) ? HIDDEN_DECRYPTED : value
        end
      end

      def in_branches(node)
        if node.instance_variable_defined?(:@value)
          found = node.instance_variable_get(:@value)
          node.instance_variable_set(:@value, @sensitive ? HIDDEN_SENSITIVE : self.in(found))
        end
        node.branches.each { |branch| in_branches(branch) }
      end

      private

      def sensitive?(value)
        case value
        when Puppet::Pops::Types::PSensitiveType::Sensitive then true
        when Hash then value.any? { |name, inner| sensitive?(name) || sensitive?(inner) }
        when Array then value.any? { |inner| sensitive?(inner) }
        else false
        end
      end

      def secret?(value)
        case value
        when nil, true, false then false
        else
          text = value.to_s
          Decrypted.secrets.any? { |secret| value.is_a?(Numeric) ? text == secret.strip : text.include?(secret) }.tap { |is| @any ||= is }
        end
      end
    end
  end
end
