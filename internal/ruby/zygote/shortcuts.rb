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

    # Stock Puppet asks each time whether this is a catalog preview, which it never is.
    module OneEvaluator
      def evaluator
        @tutti_evaluator ||= super
      end
    end
  end
end
