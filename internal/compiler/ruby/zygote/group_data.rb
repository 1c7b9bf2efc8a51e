# frozen_string_literal: true

require 'puppet/pops'

module Tutti
  # Values that groups give to parameters of classes: the topmost layer of every
  # lookup. They belong to the node of one compile, so nothing of them outlives it.
  module GroupData
    attr_accessor :group_data

    def self.give(node, values)
      node.extend(self)
      node.group_data = values
    end

    # Before the global layer of Hiera, and merged with it as the lookup says.
    module Layer
      def lookup_global(key, invocation, merge_strategy)
        values = @compiler.node.is_a?(GroupData) ? @compiler.node.group_data : {}
        return super unless values.key?(key.root_key)

        invocation.with(:global, 'groups') { invocation.report_found(key, values[key.root_key]) }
      end
    end

    Puppet::Pops::Lookup::LookupAdapter.prepend(Layer)
  end
end
