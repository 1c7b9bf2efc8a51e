Puppet::Type.newtype(:sample_native) do
  @doc = 'A type with a namevar, a property and a composite title.'
  ensurable
  newparam(:name, namevar: true)
  newproperty(:level) { newvalues(:low, :high) }
  newparam(:secret)
end
