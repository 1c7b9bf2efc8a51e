# frozen_string_literal: true

# Plain Puppet, as a Puppet Server runs it, for one compilation after the other:
# each in a process of its own, forked from one that loaded Puppet's library and
# nothing else. It shares no code with the zygotes.
#
# A line of input is one compilation: root (the environment's directory),
# environment, order, exported, which others export, as PuppetDB would give it, and
# static: whether an agent that takes metadata of files asks; arguments: more settings.
# A line of output is its catalog and what it exports, or its error.
require 'puppet'
require 'puppet/parser'
require 'puppet/pops'
require 'puppet/node'
require 'puppet/resource/catalog'
require 'puppet/indirector/catalog/compiler'
require 'puppet/indirector/node/exec'
require 'puppet/indirector/facts/memory'
require 'puppet/indirector/code'
require 'puppet/indirector/catalog/store_configs'
require 'puppet/indirector/facts/store_configs'
require 'puppet/indirector/resource/store_configs'
require 'puppet/indirector/file_metadata/file_server'
require 'puppet/file_serving/configuration'
require 'puppet/file_serving/mount/file'
require 'puppet/parser/e4_parser_adapter'
require 'puppet/datatypes/impl/error'
require 'digest/sha2'
require 'json'
require 'tmpdir'
require 'facter'
# A provider asks for them before the first type is there; Puppet Server knows them long before.
%w[os kernel osfamily operatingsystem operatingsystemrelease path].each { |name| Facter.value(name) }

# What PuppetDB's terminus does when code collects.
class Puppet::Resource::Plain < Puppet::Indirector::Code
  desc 'What other nodes export.'

  class << self
    attr_accessor :rows
  end

  def search(request)
    rows = self.class.rows.select { |row| row['type'] == request.key.to_s && holds?(request.options[:filter], row) }
    rows.sort_by { |row| [row['certname'], row['title']] }.map { |row| resource(row, request.options[:scope]) }
  end

  private

  def holds?(filter, row)
    return true if filter.nil?

    left, operator, right = filter
    case operator
    when 'and' then holds?(left, row) && holds?(right, row)
    when 'or' then holds?(left, row) || holds?(right, row)
    when '==' then same?(left, right, row)
    when '!=' then !same?(left, right, row)
    else raise Puppet::Error, "no operator #{operator}"
    end
  end

  def same?(name, value, row)
    case name
    when 'tag' then row['tags'].include?(value.to_s.downcase)
    when 'title' then row['title'] == value.to_s
    else row['parameters'][name] == value
    end
  end

  def resource(row, scope)
    parameters = row['parameters'].map { |name, value| Puppet::Parser::Resource::Param.new(name: name, value: value) }
    made = Puppet::Parser::Resource.new(row['type'], row['title'], parameters: parameters, scope: scope)
    made.collector_id = "#{row['certname']}|#{row['type']}|#{row['title']}"
    made
  end
end

# Keeps the catalog that the compiler gives before what is virtual is taken out.
module Whole
  attr_reader :whole

  def filter(catalog)
    @whole = catalog
    super
  end
end

# One compilation.
class Plain
  # The directories of a Puppet Server. Code sees their names, and takes them apart, so no other can stand for them. They are set when Puppet has
  # read its settings: before, it would read a puppet.conf there, and make what is missing of their paths.
  SHOWN = {
    confdir: '/etc/puppetlabs/puppet', ssldir: '/etc/puppetlabs/puppet/ssl', vardir: '/opt/puppetlabs/server/data/puppetserver'
  }.freeze

  def initialize(request, dir)
    @request = request
    @order = request['order']
    @name = request['environment']
    @dir = dir
  end

  def run
    settle
    environment = Puppet.lookup(:environments).get!(@name)
    Puppet.override({ current_environment: environment, trusted_information: trusted }, 'plain') { compile(environment) }
  rescue StandardError, ScriptError, SystemStackError => e
    { 'error' => shown(e.message.dup.force_encoding('UTF-8').scrub('?')) }
  end

  private

  def settle
    environments = File.join(@dir, 'environments')
    %w[environments conf var].each { |name| Dir.mkdir(File.join(@dir, name)) }
    File.symlink(@request['root'], File.join(environments, @name))
    Puppet.initialize_settings(
      ['--confdir', "#{@dir}/conf", '--vardir', "#{@dir}/var", '--environmentpath', environments, '--environment', @name, '--basemodulepath', '',
       '--hiera_config', groups, '--node_terminus', 'exec', '--external_nodes', '/bin/cat', '--certname', 'puppet',
       '--storeconfigs', '--storeconfigs_backend', 'plain', '--default_file_terminus', 'file_server', *@request['arguments']]
    )
    SHOWN.each { |name, dir| Puppet[name] = dir }
    Puppet.settings.preferred_run_mode = :server
    Puppet::Util::Log.newdestination(:console)
    Puppet::Util::Log.level = :crit
    termini
  end

  def termini
    Puppet::Resource::Plain.rows = @request['exported'] || []
    [Puppet::Node::Facts, Puppet::Resource::Catalog, Puppet::Node].each { |model| model.indirection.cache_class = nil }
    Puppet::Resource::Catalog.indirection.terminus_class = :compiler
    Puppet::Node.indirection.terminus_class = :exec
    Puppet::Node::Facts.indirection.terminus_class = :memory
    File.write("#{@dir}/#{@order['node']}", { 'classes' => @order['classes'] || {}, 'parameters' => @order['parameters'] || {} }.to_yaml)
    Dir.chdir(@dir) # the exec terminus gives cat the node's name
  end

  # What groups say of classes' parameters is the first layer of every lookup.
  def groups
    data = @order['data'] || {}
    return "#{@dir}/none.yaml" if data.empty?

    File.write("#{@dir}/groups.yaml", data.to_yaml)
    hierarchy = { 'version' => 5, 'hierarchy' => [{ 'name' => 'groups', 'data_hash' => 'yaml_data', 'datadir' => @dir, 'path' => 'groups.yaml' }] }
    File.write("#{@dir}/hiera.yaml", hierarchy.to_yaml)
    "#{@dir}/hiera.yaml"
  end

  def trusted
    given = @order['trusted'] || {}
    Puppet::Context::TrustedInformation.new(given['authenticated'], given['certname'], given['extensions'] || {}, given['external'] || {})
  end

  def compile(environment)
    terminus = Puppet::Resource::Catalog.indirection.terminus(:compiler)
    terminus.extend(Whole)
    terminus.instance_variable_set(:@server_facts, @order['server_facts'] || {})
    facts = Puppet::Node::Facts.new(@order['node'], @order['facts'])
    catalog = Puppet::Resource::Catalog.indirection.find(@order['node'], environment: environment, facts: facts, facts_format: 'application/json', **static)
    text = Puppet.override({ rich_data: true }, 'plain') { JSON.generate(catalog.to_data_hash) }
    { 'catalog' => JSON.parse(shown(text), max_nesting: false), 'exported' => exported(terminus.whole) }
  end

  # What agents ask with by default, and the version of the code that a Puppet Server adds.
  def static
    @request['static'] ? { static_catalog: 'true', checksum_type: 'sha256.sha384', code_id: 'one' } : {}
  end

  def exported(catalog)
    rows = Puppet.override({ stringify_rich: true }, 'plain') { catalog.resources.select(&:exported).map(&:to_data_hash) }
    rows = JSON.parse(shown(JSON.generate(rows)), max_nesting: false)
    rows.map do |row|
      (row['sensitive_parameters'] || []).each { |name| row['parameters'].delete(name) } # as PuppetDB's terminus does
      { 'certname' => @order['node'], 'type' => row['type'], 'title' => row['title'], 'tags' => row['tags'] || [], 'parameters' => row['parameters'] || {} }
    end
  end

  # Where a Puppet Server has the code.
  def shown(text)
    text.gsub(%r{(?:#{Regexp.escape(@dir)}/environments/#{@name}|#{Regexp.escape(@request['root'])})}, "/etc/puppetlabs/code/environments/#{@name}")
        .gsub("#{@dir}/environments", '/etc/puppetlabs/code/environments')
  end
end

# Puppet's own types, with what provides them: a Puppet Server, too, loads each once, for all environments.
Puppet.override({ current_environment: Puppet::Node::Environment.create(:none, []) }, 'types') do
  Dir.glob('type/*.rb', base: File.dirname($LOADED_FEATURES.grep(%r{/puppet/type\.rb\z}).first)).sort.each { |file| require "puppet/#{file}" }
end

3.times { GC.start } # what is old is left alone by the children
while (line = $stdin.gets)
  reader, writer = IO.pipe
  pid = fork do
    GC.disable # a collection would copy every page of the parent
    reader.close
    Dir.mktmpdir('plain') do |dir|
      answer = Plain.new(JSON.parse(line, max_nesting: false), File.realpath(dir)).run
      Dir.chdir('/')
      writer.write(JSON.generate(answer))
    end
    writer.close
    $stdout.flush
    exit!(0)
  end
  writer.close
  answer = reader.read
  reader.close
  Process.wait(pid)
  answer = JSON.generate('error' => 'the process ended') if answer.empty?
  $stdout.write(answer, "\n")
  $stdout.flush
end
