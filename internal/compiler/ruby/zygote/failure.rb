# frozen_string_literal: true

module Tutti
  # Says what kept a catalog from being made: cause, message, file, line, column.
  class Failure
    # What Puppet names in the middle of a message: files of data and of hierarchies that it cannot read.
    DATA = Regexp.union(/Unable to parse \((?<file>[^()]+)\):(?:.* at line (?<line>\d+) column (?<pos>\d+))?/m,
                        /\((?<file>[^()]+\.ya?ml)\): .* at line (?<line>\d+) column (?<pos>\d+)/,
                        /Lookup Configuration at '(?<file>[^']+)' has wrong type/,
                        /(?<file>\S+\.ya?ml): file does not contain a valid yaml hash/,
                        /when using location '(?<file>[^']+)'/).freeze
    # How Ruby begins what it says of a file that it cannot parse.
    RUBY = %r{\A(?<file>/[^:\n]+\.rb):(?<line>\d+): }.freeze
    LOCATION = /\(file: (?<file>[^,)]+)(?:, line: (?<line>\d+))?(?:, column: (?<pos>\d+))?\)/.freeze

    def initialize(error, paths)
      @error = error
      @paths = paths
    end

    def to_h
      message = @paths.show(Logs.clean(@error.message))
      { 'cause' => cause, 'message' => message }.merge(location(message))
    end

    # What was no mistake of the code's author may have left Puppet half way, say
    # in the middle of loading a file: such a process must not be used again.
    def spent?
      error = @error
      return true unless error.is_a?(Puppet::Error) || error.is_a?(Compilation::BadOrder)

      error = error.cause while error&.cause && error.is_a?(StandardError)
      !error.is_a?(StandardError) && !error.is_a?(ScriptError)
    end

    private

    def cause
      case @error
      when NoMemoryError then 'memory'
      when Compilation::BadOrder, JSON::NestingError then 'input'
      else 'code'
      end
    end

    # Puppet gives the place in the message; some errors only carry it along. A mistake in data is where the data is, and not where a
    # manifest asked for them.
    def location(message)
      place = message.match(DATA)
      found = place ? place.named_captures : in_data(message)
      place = message.match(LOCATION) || message.match(RUBY) unless found
      found ||= place ? place.named_captures : carried
      { 'file' => relative(found['file']), 'line' => found['line'].to_i, 'pos' => found['pos'].to_i }
    end

    def in_data(message)
      file, line = DataPlaces.current&.of(@error, message)
      file && { 'file' => file, 'line' => line }
    end

    def carried
      %w[file line pos].to_h { |name| [name, @error.respond_to?(name) ? @error.public_send(name) : nil] }
    end

    def relative(file)
      @paths.show(file.to_s).sub(%r{\A#{Paths::ENVIRONMENTS}/[^/]+/}, '')
    end
  end
end
