# frozen_string_literal: true

module Tutti
  # Tells, from the lines that are running, whether Puppet is only loading a type or a
  # provider. All providers of a type are loaded with it; their bodies ask what this
  # machine has, which matters where they do their work. A type's body gives it its
  # parameters, so what it reads shapes catalogs; but real ones ask Facter for the
  # system that they run on, which stays as it is.
  class Loading
    AUTOLOAD = %r{/puppet/util/autoload\.rb\z}.freeze
    OWN = %r{/puppet/(?:type|provider)/}.freeze # of Puppet itself
    # Files below lib/ that are harmless while Puppet loads them, or Facter does; and the
    # one that is when it asks Facter.
    RESTING = %r{(?:\A|/)lib/(?:facter/|puppet/provider/[^/]+/)[^/]+\.rb\z}.freeze
    TYPE = %r{(?:\A|/)lib/puppet/type/[^/]+\.rb\z}.freeze
    FACTER = %r{/facter(?:/|\.rb\z)}.freeze

    class << self
      # Whether Puppet lists providers to load them: no code has asked for it.
      def lists_providers?(inside)
        return false unless inside.match?(%r{(?:\A|/)lib/puppet/provider(?:/|\z)}) && Lookups.of_module?(inside)

        by_puppet?(AUTOLOAD)
      end

      # Whether the nearest of Puppet's files that the pattern names runs below no line
      # of the environment's.
      def by_puppet?(pattern)
        nearest = caller_locations(2).find do |at|
          path = at.path
          path && (path.match?(pattern) || path.start_with?('(erb)') || (path.start_with?('/') && Inputs.places.below(path)))
        end
        !nearest.nil? && nearest.path.match?(pattern) && Outside.puppet?(nearest.path)
      end
    end

    def initialize(facter)
      @facter = facter
      @harmless = nil
      @first = ''
    end

    # Where code runs when all lines were seen; nil if Puppet itself asked Facter.
    def end
      @by_facter ? nil : @first
    end

    # Looks at one line, from the innermost outwards: says where code runs as soon as
    # that is sure, :loading when Puppet only loads something, nil to see more.
    def judge(path, inside, line)
      return own(path) unless inside

      @first = "#{inside}:#{line}" if @first.empty?
      @harmless = harmless?(inside) if @harmless.nil? || @harmless
      @harmless ? nil : @first
    end

    private

    def own(path)
      return @harmless && Outside.puppet?(path) ? :loading : nil if path.match?(AUTOLOAD)

      @facter = @by_facter = true if path.match?(FACTER)
      @harmless = true if @harmless.nil? && path.match?(OWN) && Outside.puppet?(path)
      nil
    end

    def harmless?(inside)
      return false unless Lookups.of_module?(inside)

      inside.match?(RESTING) || (@facter && inside.match?(TYPE))
    end
  end
end
