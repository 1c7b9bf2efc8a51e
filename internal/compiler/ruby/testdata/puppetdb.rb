# frozen_string_literal: true

# Turns storeconfigs on in the reference, with the real PuppetDB terminus; only its
# connection is replaced: it speaks plain HTTP to the URL in PUPPETDB_URL.
require 'net/http'
require 'puppet/util/puppetdb'
require 'puppet/util/puppetdb/http'

Puppet[:storeconfigs_backend] = 'puppetdb'
Puppet[:storeconfigs] = true
# The reference submits nothing.
[Puppet::Node::Facts, Puppet::Resource::Catalog].each { |model| model.indirection.cache_class = nil }

# An answer with the methods that the terminus calls.
PlainAnswer = Struct.new(:answer) do
  def success?
    answer.is_a?(Net::HTTPSuccess)
  end

  def code
    answer.code.to_i
  end

  def reason
    answer.message
  end

  def body
    answer.body
  end

  def [](_header)
    nil
  end
end

# A client with the methods that the terminus calls.
class PlainClient
  def get(uri, headers:, **)
    PlainAnswer.new(Net::HTTP.get_response(uri, headers))
  end

  def post(uri, body, headers:, **)
    PlainAnswer.new(Net::HTTP.post(uri, body, headers))
  end
end

Puppet::Util::Puppetdb::Http.define_singleton_method(:action) do |path, _kind, &block|
  block.call(PlainClient.new, URI(ENV.fetch('PUPPETDB_URL') + path), nil)
end
