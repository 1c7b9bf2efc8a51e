Puppet::Type.newtype(:story_line) do
  @doc = 'A file with one line.'

  newparam(:path, namevar: true) do
    desc 'The file.'
  end

  newproperty(:text) do
    desc 'Its line.'
  end
end
