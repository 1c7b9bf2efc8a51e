# Answers questions to Puppet's own file server, for the tests that compare.
# Reads one JSON document on standard input and writes one on standard output:
#   {root, basemodulepath, cases: [{mount, path, search, options}], catalogs: [[resource]], fnmatch: [[pattern, name]]}
require 'json'
require 'puppet'
require 'puppet/indirector/catalog/compiler'

ask = JSON.parse($stdin.read)
root = ask['root']
Puppet.initialize_settings([
  '--confdir', "#{root}/conf", '--vardir', "#{root}/var", '--codedir', "#{root}/code",
  '--environmentpath', "#{root}/code/environments", '--basemodulepath', ask['basemodulepath'],
  '--default_file_terminus', 'file_server', '--log_level', 'err'
])
environment = Puppet.lookup(:environments).get!('production')

def options(given, environment)
  given.to_h { |k, v| [k.to_sym, %w[links checksum_type source_permissions].include?(k) ? v.to_sym : v] }
       .merge(environment: environment)
end

def guarded
  yield
rescue StandardError => e
  { 'error' => "#{e.class}: #{e.message}" }
end

answers = ask['cases'].map do |c|
  guarded do
    uri = "puppet:///#{c['mount']}/#{c['path']}".sub(%r{/+$}, '')
    opts = options(c['options'] || {}, environment)
    indirection = Puppet::FileServing::Metadata.indirection
    found = c['search'] ? indirection.search(uri, opts) : indirection.find(uri, opts)
    found.is_a?(Array) ? found.map(&:to_data_hash) : found&.to_data_hash
  end
end

catalogs = ask['catalogs'].map do |resources|
  guarded do
    catalog = Puppet::Resource::Catalog.new('node.example', environment)
    resources.each { |r| catalog.add_resource(Puppet::Resource.new(r['type'], r['title'], parameters: r['parameters'])) }
    before = catalog.to_data_hash.to_json
    inlined = guarded do
      Puppet::Resource::Catalog::Compiler.allocate.send(:inline_metadata, catalog, :sha256)
      catalog.to_data_hash
    end
    { 'before' => before, 'after' => inlined }
  end
end

matches = ask['fnmatch'].map { |pattern, name| File.fnmatch?(pattern, name) }
puts JSON.generate('answers' => answers, 'catalogs' => catalogs, 'matches' => matches)
