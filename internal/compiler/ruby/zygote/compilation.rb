# frozen_string_literal: true

module Tutti
  # One order, compiled by Puppet's own compiler.
  class Compilation
    # An order that cannot be used.
    class BadOrder < StandardError; end

    def initialize(order, environment, version, paths)
      @order = order
      @environment = environment
      @version = version
      @paths = paths
    end

    # The catalog that an agent is given and the exported resources: two hashes.
    def run
      Puppet.override({ current_environment: @environment, trusted_information: method(:trusted_information).to_proc }, 'tutti') do
        @environment.with_text_domain { compile }
      end
    end

    private

    def compile
      full = Puppet::Parser::Compiler.compile(node, @version)
      # The filter copies every resource and edge; without a virtual resource the copy is the same.
      served = full.resources.any?(&:virtual?) ? full.filter(&:virtual?) : full
      # The context in which a server writes a catalog for an agent.
      Puppet.override({ rich_data: @environment.rich_data? }, 'tutti') do
        [served.to_data_hash.merge('version' => @version), exported(full)]
      end
    ensure
      Puppet::Type.clear_misses
    end

    # As PuppetDB is given them: who collects them gets text for rich data.
    def exported(catalog)
      Puppet.override({ stringify_rich: true }, 'tutti') { catalog.resources.select(&:exported).map(&:to_data_hash) }
    end

    # As a node terminus and the compiler terminus make it.
    def node
      name = @order['node']
      node = Puppet::Node.new(name, environment: @environment)
      node.parameters = object('parameters')
      node.classes = object('classes')
      node.fact_merge(Puppet::Node::Facts.new(name, object('facts')))
      node.add_server_facts(object('server_facts').reject { |fact, _| fact == 'environment' }) # Puppet adds it, and warns of a second one
      node.trusted_data = object('trusted')
      GroupData.give(node, object('data'))
      node
    end

    # What code finds by Puppet.lookup(:trusted_information). Whoever asks for it has read all
    # of it. The node's own hashes stay as they are: these are frozen.
    def trusted_information
      Inputs.heard&.all_trusted
      known = JSON.parse(JSON.generate(object('trusted')))
      Puppet::Context::TrustedInformation.new(*known.values_at(*%w[authenticated certname extensions external]))
    end

    def object(key)
      value = @order[key]
      return {} if value.nil?
      raise BadOrder, "#{key} must be a JSON object, not #{value.class}" unless value.is_a?(Hash)

      value
    end
  end
end
