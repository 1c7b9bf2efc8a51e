# frozen_string_literal: true

module Tutti
  # Pure computations that Puppet repeats for each function call and resource.
  # None depends on a node, so what is kept holds for all compiles of a process.
  module Shortcuts
    MAX_NAMES = 10_000

    def self.install
      require 'puppet/pops'
      require 'puppet/util/autoload'
      Puppet::Util::Autoload.singleton_class.prepend(OwnFiles)
      Puppet::Pops::Loader::Loader.prepend(Names)
      Puppet::Pops::Parser::Locator::AbstractLocator.prepend(Lines)
      Puppet::Pops::Parser::EvaluatingParser.prepend(OneEvaluator)
      Puppet::Pops::Lookup::HieraConfig.prepend(SameFacts)
    end

    # Puppet's types and providers are loaded once, and never again: by require. Puppet loads them so that they could be loaded
    # again, and writes each into $LOADED_FEATURES itself, whereupon Ruby resolves the links of every file that it loaded before:
    # 760 000 calls of readlink for the types that every zygote loads, more than half of its start.
    module OwnFiles
      DIRECTORY = "#{File.dirname($LOADED_FEATURES.grep(%r{/puppet/pops\.rb\z}).first.to_s)}/"

      def load_file(name, env)
        file = get_file(name.to_s, env)
        return super unless file&.start_with?(DIRECTORY) && !$LOADED_FEATURES.include?(file)

        begin
          loaded[cleanpath(name).chomp('.rb')] = [file, File.mtime(file)]
          require file
          true
        rescue StandardError, ScriptError
          super # in Puppet's words
        end
      end
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
