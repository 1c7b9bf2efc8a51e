# frozen_string_literal: true

module Tutti
  # What one compile asks of the fleet's inventory. The server answers over the
  # socket that the order came by (see PROTOCOL.md), each question once: within one
  # compile the answer stays the same.
  class Questions
    MAX_QUERY = 1 << 20
    MAX_NESTING = 1000

    # There is no answer; the message is for the code's author.
    class Refused < Puppet::Error; end

    class << self
      # Of the compile at hand.
      def current
        @current or raise Refused, 'the inventory can only be asked while a catalog is compiled'
      end

      def during(questions)
        @current = questions
        yield
      ensure
        @current = nil
      end
    end

    def initialize(wire, node, max_bytes)
      @wire = wire
      @node = node
      @max_bytes = max_bytes
      @answers = {}
      @collected = {}
    end

    # The exported resources of a type that a condition on resources holds for, as
    # hashes that must not be changed: Puppet evaluates each collector repeatedly.
    def collect(type, filter)
      @collected[[type, filter]] ||= parse(ask('ask' => 'collect', 'type' => type, 'filter' => filter))
    end

    # The rows of a query: PQL, or an array in the AST language.
    def query(query)
      text = query.is_a?(String) ? query : JSON.generate(query)
      raise Refused, "the query has #{text.bytesize} bytes, at most #{MAX_QUERY} are allowed" if text.bytesize > MAX_QUERY

      parse(ask('ask' => 'query', 'query' => text))
    end

    private

    # The answer's line.
    def ask(question)
      @answers[question] ||= begin
        @wire.write(question.merge('node' => @node))
        @wire.line(@max_bytes) or raise EOFError, 'the server is gone'
      end
    end

    def parse(line)
      answer = @wire.parse(line, max_nesting: MAX_NESTING)
      raise Refused, answer['error'] if answer['error']

      answer['rows']
    end
  end
end
