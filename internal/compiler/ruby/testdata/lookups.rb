# frozen_string_literal: true

# Runs the stock program `puppet lookup`, once for each list of arguments on standard input, and prints what each printed. Puppet
# is loaded once.
require 'json'
require 'puppet'
require 'puppet/util/command_line'
require 'puppet/application/lookup'

texts = JSON.parse($stdin.read).map do |arguments|
  out, bad = Array.new(2) { IO.pipe }
  child = fork do
    $stdout.reopen(out[1])
    $stderr.reopen(bad[1])
    Puppet::Util::CommandLine.new('puppet', arguments).execute
  end
  [out, bad].each { |pipe| pipe[1].close }
  read = [out, bad].map { |pipe| Thread.new { pipe[0].read } }.map(&:value)
  Process.wait(child)
  read
end
puts JSON.generate(texts)
