Puppet::Functions.create_function(:'story::spin') do
  dispatch :spin do
  end

  def spin
    loop { rand }
  end
end
