# frozen_string_literal: true

module Tutti
  # Pure computations that Puppet repeats for each function call and resource.
  # None depends on a node, so what is kept holds for all compiles of a process.
  module Shortcuts
    MAX_NAMES = 10_000

    def self.install
      require 'puppet/pops'
      Puppet::Pops::Loader::Loader.prepend(Names)
      Puppet::Pops::Parser::Locator::AbstractLocator.prepend(Lines)
      Puppet::Pops::Parser::EvaluatingParser.prepend(OneEvaluator)
      Puppet::Pops::Lookup::HieraConfig.prepend(SameFacts)
    end

    # Loaders are asked by names that are split, joined and frozen first. Code may
    # make names from data, so the number is bounded.
    module Names
      TYPED = Hash.new { |types, type| types[type] = {} }

      def load(type, name)
        names = TYPED[type]
        name = name.to_s
        typed = names[name]
        unless typed
          names.clear if names.size >= MAX_NAMES
          typed = names[name] = Puppet::Pops::Loader::TypedName.new(type, name)
        end
        load_typed(typed)&.value
      end
    end

    # The line of an offset: the same search, done by Ruby itself.
    module Lines
      def ary_bsearch_i(ary, value)
        ary.bsearch_index { |offset| offset > value }
      end
    end

    # Each lookup asks anew whether the variables in Hiera's paths are as they were when the
    # paths were made. Facts are frozen: while they are the same object, so is all within.
    module SameFacts
      FIXED = %w[facts trusted server_facts].freeze

      def scope_interpolations_stable?(invocation)
        all = @scope_interpolations
        return super if all.empty?
        return looked_at(all, invocation.scope) if !all.equal?(@tutti_all) && super
        return false unless all.equal?(@tutti_all)
        return super unless Inputs.deaf { @tutti_fixed.all? { |name, value| invocation.scope[name].equal?(value) } }
        return true if @tutti_others.empty?

        begin
          @scope_interpolations = @tutti_others
          super
        ensure
          @scope_interpolations = all
        end
      end

      private

      # They are as they were.
      def looked_at(all, scope)
        fixed, @tutti_others = all.partition { |_, name| FIXED.include?(name) }
        @tutti_fixed = Inputs.deaf { fixed.map { |_, name| name }.uniq.to_h { |name| [name, scope[name]] } }
        @tutti_all = all
        true
      end
    end

    # Stock Puppet asks each time whether this is a catalog preview, which it never is.
    module OneEvaluator
      def evaluator
        @tutti_evaluator ||= super
      end
    end
  end
end
