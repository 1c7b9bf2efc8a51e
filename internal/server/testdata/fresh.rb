# frozen_string_literal: true

# Compiles orders in a process of its own each time, in which nothing was compiled
# before: what catalogs that are used again are compared with. A line of input names
# a root, an environment, a version and orders; each order is answered as a worker
# answers it.
#
# usage: ruby fresh.rb DIRECTORY_OF_THE_COMPILER
$LOAD_PATH.unshift(ARGV.fetch(0))
require 'json'
require 'socket'
require 'tmpdir'
require 'wire'
require 'memory'
require 'compiler'

# What is Puppet's own, and no environment of the test replaces, is loaded once.
require 'facter'
%w[os kernel osfamily operatingsystem operatingsystemrelease path].each { |name| Facter.value(name) }
%w[file package service user group exec].each { |name| require "puppet/type/#{name}" }

# Both streams as one.
class Streams
  def gets(*args)
    $stdin.gets(*args)
  end

  def write(*texts)
    $stdout.write(*texts)
  end

  def flush
    $stdout.flush
  end
end

wire = Tutti::Wire.new(Streams.new, 64 << 20)
while (line = $stdin.gets)
  request = JSON.parse(line)
  pid = fork do
    Dir.mktmpdir do |dir|
      Dir.chdir(dir)
      compiler = Tutti::Compiler.new(name: request['environment'], version: request['version'], root: request['root'], dir: dir,
                                     limit: 64 << 20, answers: 64 << 20)
      compiler.load
      request['orders'].each do |order|
        answer = compiler.compile(order, wire)
        wire.write(answer[:header], *answer[:documents])
      end
      Dir.chdir('/')
    end
    $stdout.flush
    exit!(0)
  end
  Process.wait(pid)
end
