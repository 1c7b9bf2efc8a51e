# frozen_string_literal: true

# What queries PuppetDB: it answers what was recorded.
module Puppet::Util::Puppetdb
  def self.query_puppetdb(query)
    ::Recorded.answers.query(query)
  end
end
