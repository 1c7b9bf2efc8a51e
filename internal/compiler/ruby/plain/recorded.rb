# frozen_string_literal: true

require 'json'
require 'puppet/parser/functions'

# What the inventory answered while a worker compiled the same order. A question that was not asked then
# has no answer: the worker's compile did not need it.
class Recorded
  class << self
    attr_accessor :answers

    # puppetdb_query, where the terminus package did not bring it.
    def offer(environment)
      return if $LOAD_PATH.any? { |dir| File.exist?(File.join(dir, 'puppet/functions/puppetdb_query.rb')) }

      Puppet::Parser::Functions.newfunction(:puppetdb_query, type: :rvalue, arity: 1, environment: environment) { |args| Recorded.answers.query(args[0]) }
    end
  end

  attr_reader :missing

  def initialize(node, answers)
    @node = node
    @answers = answers
    @missing = []
  end

  # Exported resources of a type that a collector's filter holds for.
  def collect(host, type, filter)
    return refuse("resources for #{host}") unless host == @node

    wanted = [type, condition(filter)]
    rows('collect', "exported #{type}") { |text| question = JSON.parse(text) and [question['type'], question['filter']] == wanted }
  end

  def query(query)
    rows('query', "query #{query}") { |text| query.is_a?(String) ? text == query : parsed(text) == query }
  end

  private

  def rows(kind, about)
    found = @answers.find { |answer| answer['kind'] == kind && yield(answer['text']) }
    found ? Marshal.load(Marshal.dump(found['rows'])) : refuse(about) # whoever asks may change what it is given
  end

  def parsed(text)
    JSON.parse(text)
  rescue JSON::ParserError # a query as text
    nil
  end

  def refuse(about)
    @missing << about
    raise Puppet::Error, "no answer is recorded for what the code asks of the inventory: #{about}"
  end

  # A filter in the language of PuppetDB's queries.
  def condition(filter)
    return nil if filter.nil?

    left, operator, right = filter
    case operator
    when 'and', 'or' then [operator, condition(left), condition(right)]
    when '!=' then ['not', equals(left, right)]
    when '==' then equals(left, right)
    else raise Puppet::Error, "Operator #{operator} in #{filter.inspect} not supported"
    end
  end

  def equals(name, value)
    return ['=', 'tag', value.to_s.downcase] if name == 'tag'
    return ['=', 'title', value.to_s] if name == 'title'

    ['=', ['parameter', name], value]
  end
end

# Gives collectors what was recorded.
class Puppet::Resource::Recorded < Puppet::Indirector::Code
  desc 'Exported resources as they were when a worker compiled the same order.'

  def search(request)
    rows = ::Recorded.answers.collect(request.options[:host], request.key.to_s, request.options[:filter])
    rows.map { |row| resource(row, request.options[:scope]) }
  end

  private

  def resource(row, scope)
    type = Puppet::Pops::Evaluator::Runtime3ResourceSupport.find_resource_type(scope, row['type'])
    parameters = (row['parameters'] || {}).map { |name, value| Puppet::Parser::Resource::Param.new(name: name, value: value) }
    Puppet::Parser::Resource.new(type, row['title'], parameters: parameters, scope: scope).tap do |made|
      made.collector_id = "#{row['certname']}|#{row['type']}|#{row['title']}"
    end
  end
end
