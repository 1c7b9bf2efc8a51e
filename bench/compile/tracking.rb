# frozen_string_literal: true

# What noting a compile's inputs costs: two processes compile the same orders in turns,
# one that notes and one without a single hook. A line of JSON for each size tells CPU
# (user and system) of reading the order, compiling and writing the answer, the garbage
# of all that collected.
#
# usage: ruby tracking.rb COMPILER_DIR ENVIRONMENT_DIR FACTS_FILE CATALOGS [SIZE ...]
code, ROOT, facts, catalogs, *sizes = ARGV
$LOAD_PATH.unshift(File.expand_path(code))
require 'json'
require 'socket'
require 'tmpdir'
require 'wire'
require 'memory'
require 'compiler'

FACTS = JSON.parse(File.read(facts))
COUNT = Integer(catalogs)
WARM = 4

# A wire that nobody asks over.
class Nobody
  def write(*); end
end

# The compiler without any hook.
module Untracked
  def observe(_root); end

  def compiled(order)
    run = Tutti::Compilation.new(order, @environment, @version, @paths).run
    [run.map { |document| @paths.show(JSON.generate(document)) }, {}]
  end
end

def order(node, serial)
  facts = Marshal.load(Marshal.dump(FACTS))
  facts['os']['release']['full'] = "12.#{1000 + serial}"
  host, domain = node.split('.', 2)
  facts.update('clientcert' => node, 'fqdn' => node, 'hostname' => host, 'domain' => domain)
  trusted = { 'certname' => node, 'authenticated' => 'remote', 'extensions' => {}, 'hostname' => host, 'domain' => domain }
  JSON.generate('node' => node, 'facts' => facts, 'trusted' => trusted)
end

def without_hooks
  Tutti::Compiler.prepend(Untracked)
  Tutti::FileReads.define_singleton_method(:seen) { |*| nil }
  Tutti::Inputs.define_singleton_method(:look) { |*_, &block| block.call }
  Tutti::Inputs.define_singleton_method(:deaf) { |&block| block.call }
end

def answer(compiler, line)
  result = compiler.compile(JSON.parse(line), Nobody.new)
  raise result[:header]['error'].inspect if result[:header]['error']

  JSON.generate({ 'v' => 1 }.merge(result[:header]))
end

# A process that answers lines with the nanoseconds they took.
def start(tracked)
  ours, theirs = UNIXSocket.pair
  fork do
    ours.close
    without_hooks unless tracked
    Dir.mktmpdir do |dir|
      compiler = Tutti::Compiler.new(name: 'production', version: 'v', root: File.realpath(ROOT), dir: dir, limit: 64 << 20, answers: 64 << 20)
      compiler.load
      while (line = theirs.gets)
        GC.start
        GC.disable
        before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
        answer(compiler, line)
        GC.enable
        GC.start
        theirs.puts(Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before)
      end
    end
    exit!(0)
  end
  theirs.close
  ours
end

def ask(process, line)
  process.puts(line)
  Integer(process.gets)
end

def median(list)
  list.sort[list.size / 2]
end

noting, plain = start(true), start(false)
sizes.each do |size|
  node = "#{size}-1.example.org"
  WARM.times { |i| [noting, plain].each { |process| ask(process, order(node, i)) } }
  pairs = (1..COUNT).map do |i|
    line = order(node, 100 + i)
    i.even? ? [ask(noting, line), ask(plain, line)] : [ask(plain, line), ask(noting, line)].reverse
  end
  puts JSON.generate('size' => size, 'catalogs' => COUNT, 'noted_ns' => median(pairs.map(&:first)), 'plain_ns' => median(pairs.map(&:last)),
                     'ratio' => median(pairs.map { |a, b| a.fdiv(b) }), 'ratio_of_least' => pairs.map(&:first).min.fdiv(pairs.map(&:last).min))
  $stdout.flush
end
