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

    # A hash of facts, or a member of one.
    class Place
      attr_reader :pointer, :members
      attr_accessor :value, :present # it was read; it was asked whether it is there
      attr_accessor :handed # how often somebody got hold of it who has not asked it for a member
      attr_accessor :touched # by Ruby code that is not Puppet's
      attr_accessor :hash_of_facts # nil while that is not known
      attr_accessor :closed # all that lies within is frozen, too

      def initialize(pointer)
        @pointer = pointer
        @members = {}
        @handed = 0
      end

      def taken
        @handed -= 1 if @handed.positive?
      end
    end

    def initialize(order)
      @values = {}
      @present = {}
      @places = {}.compare_by_identity # by hash
      @noticed = [] # all places
      @facts = @served = {}
      # Variables that need no note (any more); what groups give is an input of its own.
      @read = [*ROOTS, 'environment', *order['parameters']&.keys].to_h { |name| [name, true] }
      @asked = @read.dup
    end

    # Before the node's values become variables; they are as Puppet has tidied them.
    def begin_with(node)
      thaw(node, :@trusted_data)
      thaw(node, :@server_facts)
      facts = node.facts ? node.facts.values : {}
      served = node.server_facts || {}
      @facts = facts.dup # to look into without being noticed
      @served = served.dup
      { facts: facts, trusted: node.trusted_data, server_facts: served }.each do |root, values|
        follow(values, place("/#{root}")) if values.is_a?(Hash)
      end
    end

    # What was read: two lists of pointers, of values and of mere presence.
    def to_h
      @noticed.each do |place|
        @values[place.pointer] = true if place.value || place.handed.positive? || (place.touched && @careless)
        @present[place.pointer] = true if place.present
      end
      kept = @values.keys.reject { |pointer| inside?(pointer, @values) }
      present = @present.keys.reject { |pointer| @values[pointer] || inside?(pointer, @values) }
      { 'values' => kept.sort, 'present' => present.sort }
    end

    # What Ruby code touched it may have taken whole.
    def careless
      @careless = true
    end

    def everything_followed
      @places.each_value { |place| place.value = true }
    end

    def everything_touched
      @places.each_value { |place| place.touched = true }
    end

    def touched(hash)
      @places[hash]&.touched = true
    end

    # By the nearest of some lines that is not ours.
    def touched_by(hash, lines)
      place = @places[hash]
      return if place.nil? || place.touched

      nearest = lines.find { |at| at.path && !at.path.start_with?(__dir__, '<internal:') }
      place.touched = true unless nearest && Outside.puppet?(nearest.path)
    end

    # A variable of the top scope is looked at.
    def variable(name)
      return if @read.key?(name)

      @read[name] = @asked[name] = true
      pointer = pointer_of(name)
      value = @facts.fetch(name) { @served[name] }
      known = @facts.key?(name) || @served.key?(name)
      known && !(value.is_a?(Hash) && follow(value, place(pointer))) ? @values[pointer] = true : @present[pointer] = true
    end

    # A value of the node is looked at; symbols are no names of facts.
    def parameter(name)
      variable(name)
      hand(@facts.fetch(name) { @served[name] })
    end

    # Which variables there are.
    def every_name
      @present['/facts/'] = @present['/server_facts/'] = true
    end

    # Only whether it is there.
    def named(name)
      return if @asked.key?(name)

      @asked[name] = true
      @present[pointer_of(name)] = true
    end

    # All variables at once.
    def everything
      @values['/facts'] = @values['/server_facts'] = @values['/trusted'] = true
      @places.each { |hash, place| close(hash, place) }
    end

    # All that the node's certificate says.
    def all_trusted
      @values['/trusted'] = true
    end

    # Code has got hold of a value, which may be a hash of facts.
    def hand(value)
      place = @places[value]
      place.handed += 1 if place
      value
    end

    def stored(value)
      @places[value]&.taken
    end

    # A member of a hash is read, or its absence. The hash is frozen: what a member is,
    # it stays.
    def member(hash, key, value)
      place = @places[hash] or return value
      place.taken
      touched_by(hash, caller_locations(2, 6)) if Careless.any
      below = place.members[key] || below(place, key)
      below.hash_of_facts = value.is_a?(Hash) && follow(value, below) if below.hash_of_facts.nil?
      if below.hash_of_facts
        below.present = true
        hand(value)
      else
        below.value = true
      end
      value
    end

    def presence(hash, key)
      place = @places[hash] or return
      place.taken
      touched_by(hash, caller_locations(2, 6)) if Careless.any
      (place.members[key] || below(place, key)).present = true
    end

    # All of a hash is read, or may be.
    def whole(hash)
      place = @places[hash] or return
      place.taken
      place.value = true
      close(hash, place)
    end

    private

    # What is frozen cannot be extended: a copy is as good.
    def thaw(node, name)
      values = node.instance_variable_get(name)
      node.instance_variable_set(name, values.dup) if values.is_a?(Hash)
    end

    # Notices from here on what is read of a hash. Hashes within follow when somebody
    # gets hold of them.
    def follow(hash, place)
      return true if @places.key?(hash)
      return false if hash.frozen? # nobody would notice that it is read

      hash.extend(Followed).freeze
      @places[hash] = place
      true
    end

    # Somebody gets hold of what lies within, too, which is frozen for them as it is in Puppet.
    def close(hash, place)
      return if place.closed

      place.closed = true
      Inputs.deaf { FactReads.freeze_within(hash, follows: false) }
    end

    # Where a variable comes from: facts first, then what the server adds.
    def pointer_of(name)
      "/#{@served.key?(name) && !@facts.key?(name) ? 'server_facts' : 'facts'}/#{escape(name)}"
    end

    def place(pointer)
      Place.new(pointer).tap { |made| @noticed << made }
    end

    def below(place, key)
      place.members[key] = place("#{place.pointer}/#{escape(key)}")
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

    PRECISE = %i[[] fetch dig keys key? has_key? include? member?].freeze
    # What every object has and what tells of a hash's content.
    COMPARING = %i[== != === eql? <=>].freeze
    TELLING = %i[hash to_s inspect dup clone to_json to_yaml to_enum enum_for then tap pretty_print].freeze
    TOLD = (Hash.public_instance_methods - Object.public_instance_methods + (TELLING & Hash.public_instance_methods) + %i[to_json to_yaml] -
            PRECISE - COMPARING - %i[freeze default default_proc]).uniq.freeze # Ruby asks for a default when a member is missing
    NO_OPTIONS = {}.freeze

    # A hash of facts, or of a part of them. It has no constants of its own: a module
    # with some empties Ruby's cache of all constants each time it extends something.
    module Followed
      TOLD.each do |name|
        class_eval("def #{name}(*args, &block); ::Tutti::FactReads.whole(self); super; end", __FILE__, __LINE__)
      end

      # With another hash; everything is compared with undef now and then.
      COMPARING.each do |name|
        class_eval("def #{name}(other); ::Tutti::FactReads.whole(self) if other.is_a?(Hash); super; end", __FILE__, __LINE__)
      end

      def [](key)
        value = super
        facts = Inputs.heard
        facts ? facts.member(self, key, value) : value
      end

      def fetch(key, *)
        Inputs.heard&.member(self, key, super(key) { nil })
        super
      end

      # Which facts there are, whatever their values.
      def keys
        Inputs.heard&.presence(self, '')
        super
      end

      def dig(key, *others)
        value = self[key]
        others.empty? || value.nil? ? value : value.dig(*others)
      end

      PRECISE.last(4).each do |name|
        class_eval("def #{name}(key); ::Tutti::Inputs.heard&.presence(self, key); super; end", __FILE__, __LINE__)
      end
    end

    # What the node's values are kept in, by the names of variables.
    module NodeTable
      (TOLD - %i[[]= store]).each do |name|
        class_eval("def #{name}(*args, &block); ::Tutti::Inputs.heard&.everything; super; end", __FILE__, __LINE__)
      end

      %i[[] fetch dig].each do |name|
        class_eval("def #{name}(key, *others, &block); ::Tutti::Inputs.heard&.parameter(key); super; end", __FILE__, __LINE__)
      end

      PRECISE.last(4).each do |name|
        class_eval("def #{name}(key); ::Tutti::Inputs.heard&.named(key.to_s); super; end", __FILE__, __LINE__)
      end

      def keys
        Inputs.heard&.every_name
        super
      end
    end

    class << self
      # Freezes what is in a hash of facts, but for hashes directly within, which are
      # frozen once they are followed.
      def freeze_within(value, follows: true)
        case value
        when Hash
          value.each_value { |inner| freeze_within(inner, follows: follows) }
          follows ? value : value.freeze
        when Array then value.each { |inner| freeze_within(inner, follows: false) }.freeze
        else value.freeze
        end
      end

      def whole(hash)
        Inputs.heard&.whole(hash)
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
        node.parameters.extend(NodeTable)
      end
    end

    # The variables of the top scope, where every lookup ends that inner scopes do
    # not answer.
    module TopTable
      def [](name)
        Inputs.heard&.variable(name)
        super
      end

      def []=(name, value)
        Inputs.heard&.named(name)
        super
      end

      def include?(name)
        Inputs.heard&.named(name)
        super
      end

      def bound?(name)
        Inputs.heard&.named(name)
        super
      end

      def add_entries_to(*)
        Inputs.heard&.everything
        super
      end
    end

    # Variables by full name; those without a namespace are of the top scope.
    module ByQualifiedName
      def [](name)
        Inputs.heard&.variable(name) unless name.include?('::')
        super
      end

      def include?(name)
        Inputs.heard&.named(name) unless name.include?('::')
        super
      end
    end

    # Ruby code gets hold of a variable; or one gets hold of a hash, which is no use of
    # it yet.
    module InScope
      def setvar(name, value, options = NO_OPTIONS)
        Inputs.heard&.stored(value) if value.is_a?(Hash)
        super
      end

      private def deep_freeze(object)
        Inputs.facts && object.is_a?(Hash) ? FactReads.freeze_within(object).freeze : super
      end

      def [](varname, options = NO_OPTIONS)
        value = super
        Inputs.heard&.hand(value) if value.is_a?(Hash)
        value
      end
    end

    # Puppet code gets hold of a variable.
    module InEvaluator
      def get_variable_value(name, expression, scope)
        value = super
        Inputs.heard&.hand(value) if value.is_a?(Hash)
        value
      end
    end
  end
end
