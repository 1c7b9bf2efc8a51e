# frozen_string_literal: true

module Tutti
  # Says what kept a catalog from being made: cause, message, file, line, column.
  class Failure
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

    # Puppet gives the place in the message; some errors only carry it along.
    def location(message)
      place = message.match(LOCATION)
      found = place ? place.named_captures : carried
      { 'file' => relative(found['file']), 'line' => found['line'].to_i, 'pos' => found['pos'].to_i }
    end

    def carried
      %w[file line pos].to_h { |name| [name, @error.respond_to?(name) ? @error.public_send(name) : nil] }
    end

    def relative(file)
      @paths.show(file.to_s).sub(%r{\A#{Paths::ENVIRONMENTS}/[^/]+/}, '')
    end
  end
end
