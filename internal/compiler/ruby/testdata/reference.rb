# frozen_string_literal: true

# Compiles orders with the stock compiler, in a plain Puppet that knows nothing
# of ours: the reference that workers are compared with.
#
# With PUPPETDB_URL set it collects exported resources, by the real terminus. An
# order that does not compile gives {"error": message}. With FRESH set each order
# has a process of its own, in which nothing was compiled before. PUPPET_ARGS are
# more settings.
#
# usage: ruby reference.rb ENVIRONMENTPATH ENVIRONMENT SCRATCH < orders.json > catalogs.json
require 'puppet'
require 'json'

environmentpath, name, scratch = ARGV
Puppet.initialize_settings(
  ['--confdir', "#{scratch}/conf", '--vardir', "#{scratch}/var", '--environmentpath', environmentpath,
   '--environment', name, '--hiera_config', "#{scratch}/none.yaml", '--node_terminus', 'exec',
   '--external_nodes', "/bin/cat #{scratch}", *ENV.fetch('PUPPET_ARGS', '').split]
)
Puppet.settings.preferred_run_mode = :server
Puppet::Util::Log.newdestination(:console)
Puppet::Util::Log.level = :err

catalogs = Puppet::Resource::Catalog.indirection
catalogs.terminus_class = :compiler
Puppet::Node.indirection.terminus_class = :exec
Puppet::Node::Facts.indirection.terminus_class = :memory

require_relative 'puppetdb' if ENV['PUPPETDB_URL']

# What the block gives, made by a process of its own.
def apart
  reader, writer = IO.pipe
  pid = fork do
    reader.close
    writer.write(JSON.generate(yield))
    writer.close
    exit!(0)
  end
  writer.close
  text = reader.read
  Process.wait(pid)
  JSON.parse(text)
end

compile = lambda do |order|
  node = order['node']
  File.write("#{scratch}/#{node}", { 'classes' => order['classes'] || {}, 'parameters' => order['parameters'] || {} }.to_yaml)
  Puppet[:external_nodes] = "/bin/cat"
  # The exec terminus appends the node's name: let it be read from the scratch directory.
  Dir.chdir(scratch)
  catalogs.terminus(:compiler).instance_variable_set(:@server_facts, order['server_facts'])
  environment = Puppet.lookup(:environments).get!(name)
  known = order['trusted']
  trusted = Puppet::Context::TrustedInformation.new(known['authenticated'], known['certname'], known['extensions'], known['external'])
  Puppet.override({ current_environment: environment, trusted_information: trusted }, 'reference') do
    catalog = catalogs.find(node, environment: environment, facts: Puppet::Node::Facts.new(node, order['facts']), facts_format: 'application/json')
    Puppet.override({ rich_data: true }, 'reference') { JSON.parse(catalog.to_json) }
  rescue Puppet::Error => e
    { 'error' => e.message }
  end
end
orders = JSON.parse($stdin.read)
result = orders.map { |order| ENV['FRESH'] ? apart { compile.call(order) } : compile.call(order) }
$stdout.write(JSON.generate(result))
