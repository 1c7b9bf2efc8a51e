# Makes Debian's agent 7.23 do with Retry-After what agents from 7.26 and 8.2 on
# do: the answer is read, and the connection is not closed, before it sleeps
# (PUP-11853). It also says that it is one of those.
require 'net/http'
require 'puppet'
require 'puppet/http'

def Puppet.version
  '7.26.0'
end

mended = Module.new do
  def retry_after_interval(request, response, retries)
    response.body
    Thread.current[:mended_open] = true
    super
  end
end
Puppet::HTTP::RetryAfterHandler.prepend(mended)

Net::HTTP.prepend(Module.new do
  def started?
    open = Thread.current[:mended_open]
    Thread.current[:mended_open] = false
    open ? false : super
  end
end)
