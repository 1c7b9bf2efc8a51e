# frozen_string_literal: true

require 'json'

module Tutti
  # JSON lines with a version and a bound (see PROTOCOL.md).
  class Wire
    VERSION = 1

    class Broken < StandardError; end

    def initialize(io, max_bytes)
      @io = io
      @max_bytes = max_bytes
    end

    # The next message, or nil at the end of the stream.
    def read
      text = line(@max_bytes)
      text && parse(text)
    end

    # The next line as it is.
    def line(max_bytes)
      line = @io.gets("\n", max_bytes)
      raise Broken, "a line has more than #{max_bytes} bytes" unless line.nil? || line.end_with?("\n")

      line
    end

    def parse(line, **options)
      message = JSON.parse(line, **options)
      raise Broken, 'a message is a JSON object' unless message.is_a?(Hash)
      raise Broken, "protocol version #{message['v'].inspect} is not #{VERSION}" unless message['v'] == VERSION

      message
    end

    # Sends a header line, and after it the given documents as they are.
    def write(header, *documents)
      @io.write(JSON.generate({ 'v' => VERSION }.merge(header)), "\n", *documents)
      @io.flush
    end
  end
end
