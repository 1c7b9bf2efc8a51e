# frozen_string_literal: true

module Tutti
  # Which facts, trusted data and server facts one compile reads, as JSON pointers
  # (RFC 6901) into an object of all three.
  #
  # Hashes of facts are extended, not wrapped, so that Puppet takes them for what
  # they are. A value is read at its leaf. Whatever looks at a hash as a whole reads
  # all of it; so does whoever is handed one and never asks it for a member: then it
  # was used in some way that cannot be seen.
  class FactReads
    ROOTS = %w[facts trusted server_facts].freeze

    attr_reader :values, :present

    def initialize(order)
      @values = {}
      @present = {}
      @pointers = {}.compare_by_identity
      @handed = Hash.new(0)
      @parameters = order['parameters'] || {}
      @names = {}
    end

    # Before the node's values become variables; they are as Puppet has tidied them.
    def begin_with(node)
      thaw(node, :@trusted_data)
      thaw(node, :@server_facts)
      @facts = node.facts ? node.facts.values : {}
      @served = node.server_facts || {}
      @names = pointers(@served, 'server_facts').merge(pointers(@facts, 'facts'))
      { facts: @facts, trusted: node.trusted_data, server_facts: @served }.each do |root, values|
        follow(values, "/#{root}") if values.is_a?(Hash)
      end
    end

    # What was read: two lists of pointers, of values and of mere presence.
    def to_h
      @handed.each { |pointer, count| @values[pointer] = true if count.positive? }
      values = @values.keys.sort
      covered = values.to_h { |pointer| [pointer, true] }
      kept = values.reject { |pointer| inside?(pointer, covered) }
      present = @present.keys.reject { |pointer| covered[pointer] || inside?(pointer, covered) }
      { 'values' => kept, 'present' => present.sort }
    end

    # A variable of the top scope is looked at.
    def variable(name)
      return if ROOTS.include?(name) || name == 'environment' || @parameters.key?(name)

      pointer = @names[name]
      if pointer.nil?
        @present["/facts/#{escape(name)}"] = true
      elsif !@pointers.key?(value_of(name))
        @values[pointer] = true
      else
        @present[pointer] = true
      end
    end

    # Only whether it is there.
    def named(name)
      return if ROOTS.include?(name) || name == 'environment' || @parameters.key?(name)

      @present[@names[name] || "/facts/#{escape(name)}"] = true
    end

    # All variables at once.
    def everything
      @values['/facts'] = @values['/server_facts'] = @values['/trusted'] = true
    end

    # Code has got hold of a value, which may be a hash of facts.
    def hand(value)
      pointer = @pointers[value]
      @handed[pointer] += 1 if pointer
      value
    end

    def stored(value)
      pointer = @pointers[value]
      taken(pointer) if pointer
    end

    # A member of a hash is read, or its absence.
    def member(hash, key, value)
      pointer = @pointers[hash] or return value
      taken(pointer)
      below = "#{pointer}/#{escape(key)}"
      if @pointers.key?(value)
        @present[below] = true
        @handed[below] += 1
      else
        @values[below] = true
      end
      value
    end

    def presence(hash, key)
      pointer = @pointers[hash] or return
      taken(pointer)
      @present["#{pointer}/#{escape(key)}"] = true
    end

    # All of a hash is read, or may be.
    def whole(hash)
      pointer = @pointers[hash] or return
      taken(pointer)
      @values[pointer] = true
    end

    private

    # What is frozen cannot be extended: a copy is as good.
    def thaw(node, name)
      values = node.instance_variable_get(name)
      node.instance_variable_set(name, Marshal.load(Marshal.dump(values))) if values.is_a?(Hash)
    end

    def follow(hash, pointer)
      return @values[pointer] = true if hash.frozen? # nobody would notice that it is read

      hash.extend(Followed)
      @pointers[hash] = pointer
      Inputs.deaf { hash.to_a }.each { |key, value| follow(value, "#{pointer}/#{escape(key)}") if value.is_a?(Hash) }
    end

    # Where each variable comes from: facts first, then what the server adds.
    def pointers(values, root)
      values.keys.to_h { |name| [name, "/#{root}/#{escape(name)}"] }
    end

    def value_of(name)
      Inputs.deaf { @facts.fetch(name) { @served[name] } }
    end

    def taken(pointer)
      count = @handed[pointer]
      @handed[pointer] = count - 1 if count.positive?
    end

    def escape(key)
      key = key.to_s
      key.match?(%r{[~/]}) ? key.gsub('~', '~0').gsub('/', '~1') : key
    end

    def inside?(pointer, covered)
      at = pointer.length
      while (at = pointer.rindex('/', at - 1)) && at.positive?
        return true if covered[pointer[0, at]]
      end
      false
    end

    # A hash of facts, or of a part of them.
    module Followed
      PRECISE = %i[[] fetch dig keys key? has_key? include? member?].freeze
      # What every object has and what tells of a hash's content.
      COMPARING = %i[== != === eql? <=>].freeze
      TELLING = %i[hash to_s inspect dup clone to_json to_yaml to_enum enum_for then tap pretty_print].freeze
      all = Hash.public_instance_methods - Object.public_instance_methods + (TELLING & Hash.public_instance_methods)
      all += %i[to_json to_yaml]
      (all - PRECISE - COMPARING - %i[freeze]).uniq.each do |name|
        class_eval("def #{name}(*args, &block); ::Tutti::FactReads.whole(self); super; end", __FILE__, __LINE__)
      end

      # With another hash; everything is compared with undef now and then.
      COMPARING.each do |name|
        define_method(name) do |other|
          FactReads.whole(self) if other.is_a?(Hash)
          super(other)
        end
      end

      def [](key)
        FactReads.member(self, key, super)
      end

      def fetch(key, *)
        return super unless FactReads.listening?

        FactReads.member(self, key, Inputs.deaf { Hash.instance_method(:[]).bind_call(self, key) })
        super
      end

      # Which facts there are, whatever their values.
      def keys
        FactReads.presence(self, '')
        super
      end

      def dig(key, *others)
        value = self[key]
        others.empty? || value.nil? ? value : value.dig(*others)
      end

      PRECISE.last(4).each do |name|
        define_method(name) do |key|
          FactReads.presence(self, key)
          super(key)
        end
      end
    end

    class << self
      def listening?
        Inputs.facts && Inputs.listening?
      end

      def member(hash, key, value)
        listening? ? Inputs.facts.member(hash, key, value) : value
      end

      def presence(hash, key)
        Inputs.facts.presence(hash, key) if listening?
      end

      def whole(hash)
        Inputs.facts.whole(hash) if listening?
      end

      def install
        Puppet::Parser::Compiler.prepend(InCompiler)
        Puppet::Parser::Scope.prepend(InScope)
        Puppet::Pops::Evaluator::EvaluatorImpl.prepend(InEvaluator)
      end
    end

    # Node parameters are set first; from then on what reads them is noted.
    module InCompiler
      def set_node_parameters
        Inputs.deaf do
          Inputs.facts&.begin_with(node)
          super
        end
        topscope.instance_variable_get(:@symtable).extend(TopTable)
        qualified_variables.extend(ByQualifiedName)
      end
    end

    # The variables of the top scope, where every lookup ends that inner scopes do
    # not answer.
    module TopTable
      def [](name)
        Inputs.facts.variable(name) if FactReads.listening?
        super
      end

      def []=(name, value)
        Inputs.facts.named(name) if FactReads.listening?
        super
      end

      def include?(name)
        Inputs.facts.named(name) if FactReads.listening?
        super
      end

      def bound?(name)
        Inputs.facts.named(name) if FactReads.listening?
        super
      end

      def add_entries_to(*)
        Inputs.facts.everything if FactReads.listening?
        super
      end
    end

    # Variables by full name; those without a namespace are of the top scope.
    module ByQualifiedName
      def [](name)
        Inputs.facts.variable(name) if !name.include?('::') && FactReads.listening?
        super
      end

      def include?(name)
        Inputs.facts.named(name) if !name.include?('::') && FactReads.listening?
        super
      end
    end

    # Ruby code gets hold of a variable; or one gets hold of a hash, which is no use of
    # it yet.
    module InScope
      def setvar(_name, value, *)
        Inputs.facts.stored(value) if value.is_a?(Hash) && FactReads.listening?
        super
      end

      def [](*)
        value = super
        Inputs.facts.hand(value) if value.is_a?(Hash) && FactReads.listening?
        value
      end
    end

    # Puppet code gets hold of a variable.
    module InEvaluator
      def get_variable_value(*)
        value = super
        Inputs.facts.hand(value) if value.is_a?(Hash) && FactReads.listening?
        value
      end
    end
  end
end
