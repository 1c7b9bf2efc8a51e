Puppet::Functions.create_function(:'story::spin') do
  dispatch :spin do
  end

  def spin
    loop { sleep 1 } # what computes for ever is stopped by its memory on a quick machine
  end
end
