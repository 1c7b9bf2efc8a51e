# frozen_string_literal: true

# Makes `tutti` a transport of OpenBolt in this process. OpenBolt lists its transports in frozen constants and asks no plugin for more, so
# the lists are replaced by longer ones, before anything else of OpenBolt has copied them.
require 'bolt/config/options'
require 'bolt/config/transport/base'

module Bolt
  class Config
    module Transport
      # Tutti is the options of the transport in an inventory.
      class Tutti < Base
        OPTIONS = %w[cacert host job-poll-interval read-timeout service-url task-environment token-file].freeze
        DEFAULTS = { 'task-environment' => 'production' }.freeze
        whole = { type: Integer, minimum: 1, _plugin: true }
        TRANSPORT_OPTIONS = superclass::TRANSPORT_OPTIONS.merge(
          'job-poll-interval' => whole.merge(description: 'Seconds between two questions whether a job is over.', _default: 1, _example: 2),
          'read-timeout' => whole.merge(description: 'Seconds that the server may take to answer.', _default: 120, _example: 300)
        ).freeze
      end
    end

    # The lists of the configuration.
    module Options
      raise 'load tutti_transport/register before bolt/inventory' if defined?(Bolt::Inventory::Group)

      longer = {
        TRANSPORT_CONFIG: TRANSPORT_CONFIG.merge('tutti' => Transport::Tutti),
        INVENTORY_OPTIONS: INVENTORY_OPTIONS.merge(
          'transport' => INVENTORY_OPTIONS['transport'].merge(enum: TRANSPORT_CONFIG.keys + ['tutti']),
          'tutti' => { description: 'A map of configuration options for the tutti transport.', type: Hash, _plugin: true,
                       _example: { 'service-url' => 'https://tutti.example.com:8140' } }
        )
      }
      longer.each do |name, list|
        remove_const(name)
        const_set(name, list.freeze)
      end
    end
  end
end

require 'bolt/executor'
require_relative 'transport'

module Bolt
  all = TRANSPORTS.merge(tutti: Transport::Tutti)
  remove_const(:TRANSPORTS)
  TRANSPORTS = all.freeze
end
