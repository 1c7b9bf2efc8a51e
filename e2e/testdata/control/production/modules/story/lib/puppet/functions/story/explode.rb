Puppet::Functions.create_function(:'story::explode') do
  dispatch :explode do
    param 'String', :what
  end

  def explode(what)
    raise ArgumentError, "#{what} blew up"
  end
end
