# frozen_string_literal: true

# Compiles one order as a stock Puppet Server would, in a process of its own: the second
# opinion that catalogs of the workers are compared with. It takes nothing from the
# workers' code (../zygote), so that it does not share its mistakes.
#
# Standard input gives one line of JSON, the order, and stays open: when it ends, the server is gone.
# File descriptor 3 takes one JSON object: catalog and exported, or error.
require 'json'
require 'fileutils'
require 'yaml'

# What generate() starts stays in this process's group, so that it ends with it.
module OneGroup
  def setsid
    Process.pid
  end
end
Process.singleton_class.prepend(OneGroup)

order = JSON.parse($stdin.gets, max_nesting: false)
Thread.new do
  IO.select([$stdin])
  Process.kill(:KILL, -Process.pid)
end

$LOAD_PATH.unshift(__dir__) # puppet/util/puppetdb is found here before that of the terminus package
require 'puppet'
require 'puppet/node'
require 'puppet/parser'
require 'puppet/resource/catalog'
require 'puppet/indirector/catalog/compiler'
require 'puppet/indirector/code'
require_relative 'recorded'

# The directory of the environment. It is the version's tree itself, unless environment.conf
# names directories that lie elsewhere on this machine, or a command for config_version, whose
# output is no part of what is compared.
class Place
  BASE_MODULES = %w[/etc/puppetlabs/code/modules /opt/puppetlabs/puppet/modules].freeze
  SETTING = /^\s*(modulepath|config_version)\s*=\s*(.*?)\s*$/.freeze

  def initialize(order)
    @order = order
    @root = order['root']
    @conf = File.join(@root, 'environment.conf')
  end

  def make(path)
    return File.symlink(@root, path) unless foreign?

    Dir.mkdir(path)
    Dir.children(@root).each { |name| File.symlink(File.join(@root, name), File.join(path, name)) unless name == 'environment.conf' }
    lines = File.readlines(@conf).reject { |line| line.match?(SETTING) }
    modules = @order['modulepath'].map { |dir| dir.start_with?('/') ? dir : File.join(path, dir) }
    File.write(File.join(path, 'environment.conf'), "modulepath = #{modules.join(':')}\n#{lines.join}")
  end

  # The values of settings that name the modules' directories, and what they are on a Puppet Server
  # whose administrator did not change them.
  def settings(path, real)
    conf = File.exist?(@conf) ? File.read(@conf) : ''
    entries = (conf[/^\s*modulepath\s*=\s*(.*?)\s*$/, 1] || 'modules:$basemodulepath').split(':')
    shown = entries.flat_map do |entry|
      next BASE_MODULES if entry.match?(/\A\$\{?basemodulepath\}?\z/)
      next entry if entry.start_with?('/', '$')

      entry.match?(/[*?\[{]/) ? Dir.glob(File.join(path, entry)).sort : File.join(path, entry)
    end
    { real => shown.join(':'), base.join(':') => BASE_MODULES.join(':') }
  end

  def base
    @order['modulepath'].select { |dir| dir.start_with?('.base_modules/') }.map { |dir| File.join(@root, dir) }
  end

  private

  def foreign?
    return false unless File.exist?(@conf)

    File.read(@conf).scan(SETTING).any? do |name, value|
      name == 'config_version' || value.split(':').any? { |dir| dir.start_with?('/') || dir.start_with?('$') && !dir.match?(/\A\$\{?basemodulepath\}?\z/) }
    end
  end
end

# Code sees other values of a few settings.
module Shown
  class << self
    attr_accessor :settings
  end

  def transform_setting(value)
    super(Shown.settings.fetch(value, value))
  end
end

# Values of groups are the topmost layer of lookups: a global hiera.yaml gives them, above the
# levels of the operator's own.
module Groups
  def self.write(data, own, dir)
    return own || File.join(dir, 'no-hiera.yaml') if data.nil? || data.empty?

    File.write(File.join(dir, 'groups.json'), JSON.generate(verbatim(data)))
    level = { 'name' => 'groups', 'data_hash' => 'json_data', 'path' => 'groups.json', 'datadir' => dir }
    levels = [level, *(own ? levels_of(own) : [])]
    File.join(dir, 'hiera.yaml').tap { |path| File.write(path, JSON.generate('version' => 5, 'hierarchy' => levels)) }
  end

  # Each level of a hiera.yaml with all that it takes from the defaults, and from where the file is.
  def self.levels_of(path)
    config = YAML.safe_load(File.read(path))
    defaults = { 'datadir' => 'data', 'data_hash' => 'yaml_data' }.merge(config['defaults'] || {})
    (config['hierarchy'] || []).map do |level|
      level = defaults.reject { |name, _| name == 'data_hash' && level.keys.any? { |key| %w[lookup_key data_dig].include?(key) } }.merge(level)
      level.merge('datadir' => File.expand_path(level['datadir'], File.dirname(path)))
    end
  end

  # Hiera would interpolate what groups give as it is.
  def self.verbatim(value)
    case value
    when String then value.gsub('%{', "%{literal('%')}{")
    when Array then value.map { |item| verbatim(item) }
    when Hash then value.to_h { |key, item| [verbatim(key), verbatim(item)] }
    else value
    end
  end
end

dir = Dir.pwd
name = order['environment']
settings = order['settings'] || {}
%w[conf var code/environments].each { |path| FileUtils.mkdir_p(File.join(dir, path)) }
place = Place.new(order)
place.make(File.join(dir, 'code', 'environments', name))
directories = { 'confdir' => 'conf', 'vardir' => 'var', 'codedir' => 'code', 'environmentpath' => 'code/environments', 'logdir' => 'var', 'rundir' => 'var',
                'ssldir' => 'conf/ssl' }
Puppet.initialize_settings(
  directories.flat_map { |setting, path| ["--#{setting}", File.join(dir, path)] } +
    ['--certname', settings.fetch('certname', 'puppet')] +
    (settings['strict'] ? ['--strict', settings['strict']] : []) +
    (settings.key?('strict_variables') ? [settings['strict_variables'] ? '--strict_variables' : '--no-strict_variables'] : []) +
    ['--config', '/dev/null', '--hiera_config', Groups.write(order['data'], settings['hiera_config'], File.join(dir, 'conf')), '--basemodulepath', place.base.join(':'),
     '--environment', name, '--storeconfigs'],
  false
)
Puppet.settings.preferred_run_mode = :server
Puppet::Util::Log.level = :crit

# Gives the node of the order, as a classifier would.
class Puppet::Node::Ordered < Puppet::Indirector::Code
  desc 'The node of the order.'

  class << self
    attr_accessor :order
  end

  def find(request)
    order = self.class.order
    node = Puppet::Node.new(request.key, environment: request.environment)
    node.parameters = order['parameters'] || {}
    node.classes = order['classes'] || {}
    node.fact_merge(request.options[:facts])
    node
  end
end
Puppet::Node::Ordered.order = order

# Keeps the catalog as a stock server stores it: before exported resources are taken out.
class Puppet::Resource::Catalog::Kept < Puppet::Indirector::Code
  desc 'The catalog with its exported resources.'

  class << self
    attr_accessor :catalog
  end

  def find(_request)
    nil
  end

  def save(request)
    self.class.catalog = request.instance
  end
end

Recorded.answers = Recorded.new(order['node'], order['answers'] || [])
Puppet::Node.indirection.terminus_class = :ordered
Puppet::Node::Facts.indirection.terminus_class = :memory
Puppet::Node::Facts.indirection.cache_class = nil
Puppet::Resource.indirection.terminus_class = :recorded
catalogs = Puppet::Resource::Catalog.indirection
catalogs.terminus_class = :compiler
catalogs.cache_class = :kept

# The machine that compiled for Tutti is named in the order.
given = (order['server_facts'] || {}).reject { |fact, _| fact == 'environment' } # Puppet adds it, and warns of a second one
Puppet::Resource::Catalog::Compiler.define_method(:set_server_facts) { @server_facts = given }

Puppet::Parser::Scope.prepend(Shown)

compile = lambda do
  environment = Puppet.lookup(:environments).get!(name)
  Shown.settings = place.settings(File.join(dir, 'code', 'environments', name), Puppet.settings.value(:modulepath, name))
  trusted = Struct.new(:to_h).new(order['trusted'] || {})
  Puppet.override({ current_environment: environment, trusted_information: trusted }, 'second opinion') do
    Recorded.offer(environment)
    facts = Puppet::Node::Facts.new(order['node'], order['facts'] || {})
    catalog = catalogs.find(order['node'], environment: environment, facts: facts, facts_format: 'application/json', code_id: order['version'])
    exported = Puppet.override({ stringify_rich: true }, 'second opinion') do
      JSON.generate(Puppet::Resource::Catalog::Kept.catalog.resources.select(&:exported).map(&:to_data_hash))
    end
    { 'catalog' => catalog.render(environment.rich_data? ? :rich_data_json : :json), 'exported' => exported }
  end
end

utf8 = ->(text) { text.dup.force_encoding(Encoding::UTF_8).scrub("\uFFFD") }
answer =
  begin
    compile.call.transform_values { |text| text.dup.force_encoding(Encoding::UTF_8) }
  rescue StandardError, ScriptError, SystemExit, NoMemoryError, SystemStackError, UncaughtThrowError => e
    { 'error' => utf8.call(e.message.to_s), 'unrecorded' => Recorded.answers.missing }
  end
out = IO.new(3, 'w', encoding: Encoding::UTF_8)
if answer.key?('error')
  out.write(JSON.generate(answer))
else
  out.write('{"catalog":', answer['catalog'], ',"exported":', answer['exported'], ',"unrecorded":', JSON.generate(Recorded.answers.missing), '}')
end
out.close
exit!(0)
