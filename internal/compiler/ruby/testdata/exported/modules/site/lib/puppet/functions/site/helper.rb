# Asks as functions of modules do that use the terminus's own helper.
Puppet::Functions.create_function(:'site::helper') do
  dispatch(:ask) { param 'String', :query }

  def ask(query)
    require 'puppet/util/puppetdb'
    Puppet::Util::Puppetdb.query_puppetdb(query).map { |row| row['title'] }.sort
  end
end
