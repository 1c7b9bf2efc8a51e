# frozen_string_literal: true

module Tutti
  # Ruby's functions written in C take what is in a hash without asking it. So those
  # that are given one are asked here whether it is one of facts. Ruby that no function
  # is called for, such as **hash: see Careless.
  module FactHashes
    class << self
      def install
        Hash.prepend(Receivers)
        Hash.singleton_class.prepend(Makers)
        ENV.singleton_class.prepend(Variables)
        Struct.prepend(Members)
        String.prepend(Fallbacks)
        UnboundMethod.prepend(Binding)
        Marshal.singleton_class.prepend(Dumps)
      end

      def given(values)
        values.each { |value| FactReads.whole(value) if value.is_a?(FactReads::Followed) } if Inputs.heard
      end

      # Somebody takes all that lies within some values.
      def within(values)
        values.each { |value| Dumps.look(value, {}.compare_by_identity) || Inputs.heard.everything_followed } if Inputs.heard
      end
    end

    # What a hash does with another one.
    module Receivers
      (%i[merge merge! update transform_keys transform_keys!] & Hash.public_instance_methods).each do |name|
        class_eval("def #{name}(*others, &block); ::Tutti::FactHashes.given(others); super; end", __FILE__, __LINE__)
      end
      %i[replace initialize_copy == eql? < <= > >=].each do |name|
        class_eval("def #{name}(other); ::Tutti::FactReads.whole(other) if ::Tutti::FactReads::Followed === other; super; end", __FILE__, __LINE__)
      end
      private :initialize_copy
    end

    # What makes a hash of another one.
    module Makers
      def [](*others)
        FactHashes.given(others)
        super
      end

      def ruby2_keywords_hash(other)
        FactReads.whole(other)
        super
      end
    end

    # The process's variables, taken from a hash.
    module Variables
      (%i[update merge! replace] & ENV.singleton_methods).each do |name|
        class_eval("def #{name}(*others, &block); ::Tutti::FactHashes.given(others); super; end", __FILE__, __LINE__)
      end
    end

    # A struct that is made of keywords takes a hash as well.
    module Members
      def initialize(*values, **options)
        FactHashes.given(values)
        super
      end
    end

    # Characters that a hash stands in for.
    module Fallbacks
      %i[encode encode!].each do |name|
        class_eval("def #{name}(*args, **options); ::Tutti::FactReads.whole(options[:fallback]) if options.key?(:fallback); super; end", __FILE__, __LINE__)
      end
    end

    # A method of all hashes, used on one of facts.
    module Binding
      def bind(receiver)
        FactReads.whole(receiver) if FactReads::Followed === receiver # rubocop:disable Style/CaseEquality
        super
      end

      def bind_call(receiver, *args, **options, &block)
        FactReads.whole(receiver) if FactReads::Followed === receiver # rubocop:disable Style/CaseEquality
        super
      end
    end

    # Marshal takes all that lies within what it is given.
    module Dumps
      MOST = 10_000
      PLAIN = [String, Symbol, Numeric, NilClass, TrueClass, FalseClass, Module, Regexp].freeze

      def dump(object, *)
        FactHashes.within([object])
        super
      end

      # False if it is more, or something else, than can be looked through.
      def self.look(object, seen)
        case object
        when *PLAIN then return true
        when FactReads::Followed
          FactReads.whole(object)
          return true
        end
        return true if seen.key?(object)

        seen[object] = true
        return false if seen.size > MOST || object.respond_to?(:marshal_dump, true) || object.respond_to?(:_dump, true)

        within(object).all? { |inner| look(inner, seen) }
      end

      def self.within(object)
        within = object.instance_variables.map { |name| object.instance_variable_get(name) }
        case object
        when Hash then within + object.to_a.flatten(1)
        when Array, Struct then within + object.to_a
        else within
        end
      end
    end
  end
end
