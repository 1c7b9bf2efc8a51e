# frozen_string_literal: true

module Tutti
  # Manifests and EPP templates: parsed and validated as for a compile, all mistakes of a file together.
  class Code
    LEVELS = { error: 'mistake', warning: 'warning', deprecation: 'warning' }.freeze
    # Functions that read a file that they are given the path of.
    READERS = %w[file template epp find_file find_template binary_file].freeze

    def initialize(environment)
      @environment = environment
      @loaders = Puppet::Pops::Loaders.new(environment)
    end

    def manifest(path, text)
      read(Puppet::Pops::Parser::Parser.new, path, text)
    end

    # The classes of a manifest, and then their parameters, each with its class; unread for one that is none.
    def classes(path, text)
      parsed = Puppet.override({ current_environment: @environment, loaders: @loaders }, 'check of code') do
        Puppet::Pops::Parser::Parser.new.parse_string(text, path)
      end
      found = parsed ? parsed.model.definitions.grep(Puppet::Pops::Model::HostClassDefinition) : []
      found.flat_map { |type| [type.name] + type.parameters.map { |parameter| "#{type.name} #{parameter.name}" } }
           .map { |name| { 'level' => 'class', 'line' => 0, 'message' => name } }
    rescue Puppet::Error, ArgumentError, EncodingError
      [{ 'level' => 'unread', 'line' => 0, 'message' => '' }]
    end

    def epp(path, text)
      read(Puppet::Pops::Parser::EppParser.new, path, text)
    end

    private

    def read(parser, path, text)
      Puppet.override({ current_environment: @environment, loaders: @loaders }, 'check of code') do
        parsed = parser.parse_string(text, path)
        parsed ? diagnosed(parsed.model) + outside(parsed.model) : []
      end
    rescue Puppet::ParseError => e
      line = e.line.to_i.positive? ? e.line.to_i : [text.lines.size, 1].max # of the end of a file Puppet says no line
      [{ 'level' => 'mistake', 'line' => line, 'column' => e.pos.to_i, 'message' => plain(e.message) }]
    rescue Puppet::Error, ArgumentError, EncodingError => e
      [{ 'level' => 'mistake', 'line' => 0, 'column' => 0, 'message' => plain(e.message) }]
    end

    # Without the place, which is told apart.
    def plain(message)
      message.sub(/ ?\((?:file: [^()]*|line: [^()]*)\)\s*\z/, '')
    end

    def diagnosed(model)
      acceptor = Puppet::Pops::Validation::Acceptor.new
      Puppet::Pops::Validation::ValidatorFactory_4_0.new.validator(acceptor).validate(model)
      acceptor.diagnostics.reject { |found| found.severity == :ignore }.map do |found|
        { 'level' => LEVELS.fetch(found.severity, 'mistake'), 'line' => found.source_pos&.line.to_i, 'column' => found.source_pos&.pos.to_i,
          'message' => formatted(found) }
      end
    end

    def formatted(found)
      Puppet::Pops::Validation::DiagnosticFormatter.new.format_message(found)
    end

    # Calls that ask the server's machine: programs, and files outside the environment.
    def outside(model)
      found = []
      model._pcore_all_contents([]) do |part|
        next unless part.is_a?(Puppet::Pops::Model::CallNamedFunctionExpression)

        name = part.functor_expr.is_a?(Puppet::Pops::Model::QualifiedName) ? part.functor_expr.value : nil
        told = asks(name, part.arguments) or next
        found << { 'level' => 'outside', 'line' => part.line.to_i, 'column' => part.pos.to_i, 'message' => told }
      end
      found
    end

    def asks(name, arguments)
      first = arguments.first
      literal = first.is_a?(Puppet::Pops::Model::LiteralString) ? first.value : nil
      if name == 'generate'
        "generate(#{literal ? "'#{literal}'" : '…'}) runs a program on the server"
      elsif READERS.include?(name) && literal && literal.start_with?('/')
        "#{name}('#{literal}') reads a file outside the environment"
      end
    end
  end
end
