# frozen_string_literal: true

# What noting a compile's inputs costs: two processes compile the same orders in turns,
# one that notes and one without a single hook. A line of JSON for each size tells CPU
# (user and system) of reading the order, compiling, writing the answer, and collecting
# what is young of the garbage, as a worker's collector mostly does. Processes differ by luck
# (where their memory lies): each of several rounds has a pair of its own.
#
# usage: ruby tracking.rb COMPILER_DIR ENVIRONMENT_DIR FACTS_FILE CATALOGS [SIZE ...]
code, root, facts, catalogs, *sizes = ARGV
ROOT = File.realpath(root)
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
ROUNDS = 3

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

# A process that answers lines with the nanoseconds they took. It is in a directory of
# its own, as those of the server are.
def start(tracked)
  ours, theirs = UNIXSocket.pair
  fork do
    ours.close
    without_hooks unless tracked
    Dir.mktmpdir do |dir|
      Dir.chdir(dir)
      compiler = Tutti::Compiler.new(name: 'production', version: 'v', root: ROOT, dir: dir, limit: 64 << 20, answers: 64 << 20)
      compiler.load
      while (line = theirs.gets)
        theirs.puts(measured(compiler, line))
      end
    end
    exit!(0)
  end
  theirs.close
  ours
end

def measured(compiler, line)
  GC.start
  GC.disable
  before = cpu
  answer(compiler, line)
  GC.enable
  GC.start(full_mark: false)
  cpu - before
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
end

def ask(process, line)
  process.puts(line)
  Integer(process.gets)
end

# The value below which a part of a list is.
def part(list, share)
  list.sort[((list.size - 1) * share).round]
end

# The CPU of both for the same orders, one right after the other, first one and then the
# other first.
def pairs(noting, plain, size)
  node = "#{size}-1.example.org"
  WARM.times { |i| [noting, plain].each { |process| ask(process, order(node, i)) } }
  (1..[COUNT / ROUNDS, 1].max).map do |i|
    line = order(node, 100 + i)
    i.even? ? [ask(noting, line), ask(plain, line)] : [ask(plain, line), ask(noting, line)].reverse
  end
end

found = Hash.new { |all, size| all[size] = [] }
ROUNDS.times do
  processes = [start(true), start(false)]
  sizes.each { |size| found[size] << pairs(*processes, size) }
  processes.each(&:close)
  Process.waitall
end
sizes.each do |size|
  all = found[size].flatten(1)
  ratios = all.map { |a, b| a.fdiv(b) }
  puts JSON.generate('size' => size, 'catalogs' => all.size, 'noted_ns' => part(all.map(&:first), 0.5), 'plain_ns' => part(all.map(&:last), 0.5),
                     'ratio' => part(ratios, 0.5), 'lower' => part(ratios, 0.25), 'upper' => part(ratios, 0.75),
                     'ratio_of_least' => all.map(&:first).min.fdiv(all.map(&:last).min),
                     'rounds' => found[size].map { |round| part(round.map { |a, b| a.fdiv(b) }, 0.5) })
  $stdout.flush
end
