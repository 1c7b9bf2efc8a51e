Puppet::Functions.create_function(:'story::dawdle') do
  dispatch :dawdle do
    param 'Integer', :seconds
  end

  def dawdle(seconds)
    sleep(seconds)
    'worth the wait'
  end
end
