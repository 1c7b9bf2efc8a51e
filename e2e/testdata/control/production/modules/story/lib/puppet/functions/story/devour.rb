Puppet::Functions.create_function(:'story::devour') do
  dispatch :devour do
  end

  def devour
    eaten = []
    loop { eaten << ('x' * 1_048_576) }
  end
end
