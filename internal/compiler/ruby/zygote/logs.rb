# frozen_string_literal: true

module Tutti
  # What Puppet logs while it compiles, bounded in number and size.
  class Logs
    MAX_COUNT = 500
    MAX_BYTES = 4096

    def initialize(paths)
      @paths = paths
      @entries = []
      @dropped = 0
    end

    # Puppet calls this with each message.
    def <<(message)
      if @entries.size >= MAX_COUNT
        @dropped += 1
      else
        @entries << entry(message)
      end
      self
    end

    def to_a
      return @entries if @dropped.zero?

      @entries + [{ 'level' => 'warning', 'message' => "#{@dropped} more messages were dropped" }]
    end

    private

    def entry(message)
      text = @paths.show(Logs.clean(message.to_s))
      data = { 'level' => message.level.to_s, 'message' => text }
      if message.file
        data['file'] = @paths.show(message.file.to_s).sub(%r{\A#{Paths::ENVIRONMENTS}/[^/]+/}, '')
      end
      data['line'] = message.line.to_i if message.line
      data
    end

    # Lists of texts that JSON can carry.
    def self.clean_all(lists)
      lists.transform_values { |texts| texts.map { |text| text.valid_encoding? && text.encoding == Encoding::UTF_8 ? text : clean(text) } }
    end

    # Text that JSON can carry, of at most MAX_BYTES.
    def self.clean(text)
      text = text.dup.force_encoding(Encoding::UTF_8)
      text = text.byteslice(0, MAX_BYTES) if text.bytesize > MAX_BYTES
      text.scrub('?')
    end
  end

  # Hands Puppet's messages to the Logs of the compilation at hand.
  module LogDestination
    def self.install
      Puppet::Util::Log.newdesttype(:tutti) do
        match 'Tutti::Logs'

        def initialize(logs)
          @logs = logs
        end

        def handle(message)
          @logs << message
        end
      end
    end
  end
end
