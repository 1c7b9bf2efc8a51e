# Says it louder.
Puppet::Functions.create_function(:'sample::shout') do
  dispatch(:shout) { param 'String', :text }
  def shout(text)
    call_function('upcase', text) + '!'
  end
end
