# frozen_string_literal: true

require 'puppet/indirector/code'
require 'puppet/resource'
require 'puppet/pops'

module Tutti
  # Makes collectors of exported resources ask the inventory: storeconfigs are on,
  # with a backend of our own.
  module Collecting
    BACKEND = 'tutti'
    SETTINGS = ['--storeconfigs', '--storeconfigs_backend', BACKEND].freeze

    # With storeconfigs Puppet also caches facts and catalogs in their backend. Ours
    # has neither, and the server stores both itself.
    def self.install
      [Puppet::Node::Facts, Puppet::Resource::Catalog].each { |model| model.indirection.cache_class = nil }
      Puppet::Pops::Evaluator::CollectorTransformer.prepend(Placing)
      Puppet::Pops::Evaluator::Collectors::ExportedCollector.prepend(Placed)
    end

    # Tells collectors where they stand.
    module Placing
      def transform(expression, scope)
        super.tap { |collector| collector.place = [expression.file, expression.line] if collector.is_a?(Placed) }
      end
    end

    # Puppet evaluates collectors late: what the inventory refuses is told with the
    # place of the collector.
    module Placed
      attr_accessor :place

      def collect
        super
      rescue Questions::Refused => e
        raise Puppet::ParseError.new(e.message, *place)
      end
    end

    # The condition of a collector, as the AST query language has it.
    def self.condition(filter)
      return nil if filter.nil?

      left, operator, right = filter
      case operator
      when '==' then test(left, right)
      when '!=' then ['not', test(left, right)]
      when 'and', 'or' then [operator, condition(left), condition(right)]
      else raise Puppet::Error, "Operator #{operator} in #{filter.inspect} not supported"
      end
    end

    # Tags are kept in lower case. What is neither tag nor title is a parameter.
    def self.test(name, value)
      case name
      when 'tag' then ['=', 'tag', value.to_s.downcase]
      when 'title' then ['=', 'title', value.to_s]
      else ['=', ['parameter', name], value]
      end
    end
  end
end

# The backend, under the name that Puppet finds it by.
class Puppet::Resource::Tutti < Puppet::Indirector::Code
  desc 'Exported resources of the fleet, as its inventory has them.'

  def search(request)
    scope = request.options[:scope]
    condition = ::Tutti::Collecting.condition(request.options[:filter])
    ::Tutti::Questions.current.collect(request.key.to_s, condition).map { |row| resource(row, scope) }
  end

  private

  # As the collecting node's compiler takes it: it has the parameters of the
  # exporting one, and the collector's scope gives the rest. The id tells one
  # exporter's resource, found again, from another's of the same title.
  def resource(row, scope)
    type = Puppet::Pops::Evaluator::Runtime3ResourceSupport.find_resource_type(scope, row['type'])
    parameters = (row['parameters'] || {}).map { |name, value| Puppet::Parser::Resource::Param.new(name: name, value: value) }
    made = Puppet::Parser::Resource.new(type, row['title'], parameters: parameters, scope: scope)
    made.collector_id = "#{row['certname']}|#{row['type']}|#{row['title']}"
    made
  end
end
