# frozen_string_literal: true

require 'puppet/pops'

module Tutti
  # Remembers in which file Hiera found what a compile looked up, and where it was when a lookup failed: Puppet's errors about data
  # seldom say it. Messages stay as Puppet words them.
  class DataPlaces
    # A value that does not fit the parameter it was looked up for.
    PARAMETER = /\b[Cc]lass\[(?<class>[\w:]+)\]: parameter '(?<name>\w+)' expects /.freeze
    # The largest file that a line is looked for in, in bytes.
    MOST = 4 << 20

    class << self
      attr_accessor :current

      def install
        [Puppet::Pops::Lookup::DataHashFunctionProvider, Puppet::Pops::Lookup::DataDigFunctionProvider,
         Puppet::Pops::Lookup::LookupKeyFunctionProvider].each { |provider| provider.prepend(Noted) }
      end
    end

    # Hiera asks one file for a key.
    module Noted
      def invoke_with_location(invocation, location, key, *)
        value = super
        DataPlaces.current&.found(key, location)
        value
      rescue Puppet::Error => e
        DataPlaces.current&.failed(e, key, location)
        raise
      end
    end

    def initialize
      @found = {}
      @failed = {}.compare_by_identity
    end

    # The first layer that has a key counts most.
    def found(key, location)
      @found[key.to_s] ||= location.location if location
    end

    # An error that has a place of its own, such as one in a function that gives data, keeps that.
    def failed(error, key, location)
      @failed[error] ||= [location.location, key.to_s] if location && !error.message.include?('(file: ')
    end

    # The file and the line that an error is about; nil: it is not about data, or nobody knows.
    def of(error, message)
      cause = error
      cause = cause.cause while cause && !@failed.key?(cause)
      file, key = cause ? @failed[cause] : asked_for(message)
      file && [file.to_s, line(file.to_s, key)]
    end

    private

    def asked_for(message)
      return [@found['lookup_options'], 'lookup_options'] if message.include?('lookup_options') && !message.include?('(file: ')

      wrong = message.match(PARAMETER)
      key = wrong && "#{wrong['class'].downcase}::#{wrong['name']}"
      [@found[key], key]
    end

    # Where a key of YAML or JSON begins.
    def line(file, key)
      return 0 unless key && File.size(file) <= MOST

      begins = /\A\s*(?:[{,]\s*)?(["']?)#{Regexp.escape(key)}\1\s*:/
      File.foreach(file).with_index(1) { |text, number| return number if text.scrub.match?(begins) }
      0
    rescue SystemCallError
      0
    end
  end
end
