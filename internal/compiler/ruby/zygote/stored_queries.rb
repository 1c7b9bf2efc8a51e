# frozen_string_literal: true

require 'puppet/pops'
require 'puppet/functions'
require 'uri'

module Tutti
  # The function puppetdb_query, for environments that do not bring their own. It
  # stands where Puppet's own functions do, so all modules see it, and hides one that
  # the terminus package may have put there.
  module StoredQueries
    NAME = 'puppetdb_query'
    FILES = ["lib/puppet/functions/#{NAME}.rb", "lib/puppet/parser/functions/#{NAME}.rb"].freeze
    ORIGIN = URI('puppet:Tutti/StoredQueries')

    def self.install
      Puppet::Pops::Loaders.prepend(Loaders)
    end

    # Whether a module or the environment itself has a function of that name.
    def self.brought?(environment, root)
      own = FILES + ["functions/#{NAME}.pp"]
      environment.modules.any? { |mod| FILES.any? { |file| File.exist?(File.join(mod.path, file)) } } ||
        (!root.nil? && own.any? { |file| File.exist?(File.join(root, file)) })
    end

    def self.function(loader)
      made = Puppet::Functions.create_loaded_function(:puppetdb_query, loader) do
        dispatch :puppetdb_query do
          required_param 'Variant[String[1], Array[Data, 1]]', :query
        end

        def puppetdb_query(query)
          ::Tutti::Questions.current.query(query)
        end
      end
      made.new({}, loader)
    end

    # Each environment's loaders have a system loader of their own.
    module Loaders
      def initialize(environment, *others)
        super
        root = Puppet.lookup(:environments).get_conf(environment.name)&.path_to_env
        brought = Inputs.deaf { StoredQueries.brought?(environment, root) }
        @puppet_system_loader.extend(brought ? Hidden : Offered)
      end
    end

    # The system loader without the function.
    module Hidden
      def find(typed_name)
        typed_name.type == :function && typed_name.name == NAME ? nil : super
      end
    end

    # The system loader with ours.
    module Offered
      def find(typed_name)
        return super unless typed_name.type == :function && typed_name.name == NAME

        set_entry(typed_name, StoredQueries.function(self), ORIGIN)
      end
    end
  end
end
