# frozen_string_literal: true

# Tries what code in a cell must not be able to do, and prints each attempt that succeeded.
require 'socket'
require 'json'
require 'etc'

T = JSON.parse(ARGV[0])
ARM = RbConfig::CONFIG['host_cpu'].start_with?('aarch64', 'arm64')
REFUSED = [Errno::EPERM, Errno::EACCES, Errno::ENOSYS, Errno::ESRCH].freeze

# Numbers of system calls: amd64, arm64. A complaint about the arguments means that the call was allowed.
def call(amd, arm, *args)
  syscall(ARM ? arm : amd, *args.map(&:dup)) # strings are where the kernel may write
rescue *REFUSED
  raise
rescue SystemCallError
  true
end

def succeeds
  yield
  true
rescue SystemCallError, SocketError, IOError
  false
end

server = T['server']
attempts = {
  'read a file' => -> { File.read(T['secret']) },
  'write a file' => -> { File.write(T['secret'], 'x') },
  'write beside' => -> { File.write(File.join(T['outside'], 'new'), 'x') },
  'list a directory' => -> { Dir.children(T['outside']) },
  'make a file readable' => -> { File.chmod(0o777, T['secret']) },
  'date a file' => -> { File.utime(0, 0, T['secret']) },
  'read shadow' => -> { File.read('/etc/shadow') },
  'list a home directory' => -> { raise IOError if Dir.children('/root').empty? },
  'connect by TCP' => -> { TCPSocket.new('127.0.0.1', T['tcp']) },
  'send by UDP' => -> { UDPSocket.new.send('x', 0, '127.0.0.1', T['udp']) },
  'connect to a socket' => -> { UNIXSocket.new(T['socket']) },
  'connect to an abstract socket' => -> { UNIXSocket.new("\0#{T['abstract']}") },
  'listen' => -> { TCPServer.new('127.0.0.1', 0) },
  'ptrace' => -> { call(101, 117, 16, server, 0, 0) },
  'ptrace a parent' => -> { call(101, 117, 16, Process.ppid, 0, 0) },
  'read memory' => -> { call(310, 270, server, 0, 0, 0, 0, 0) },
  'signal the server' => -> { Process.kill(:CONT, server) },
  'limit the server' => -> { call(302, 261, server, 7, 0, 0) },
  'limit a parent' => -> { call(302, 261, Process.ppid, 7, 0, 0) },
  'environment of the server' => -> { File.read("/proc/#{server}/environ") },
  'memory of the server' => -> { File.open("/proc/#{server}/mem") },
  'maps of the server' => -> { File.read("/proc/#{server}/maps") },
  'memory of a parent' => -> { File.open("/proc/#{Process.ppid}/mem", 'r+') },
  'become another user' => -> { Process::Sys.setuid(Process.uid.zero? ? 12_345 : 0) },
  'mount' => -> { call(165, 40, 'tmpfs', '/mnt', 'tmpfs', 0, 0) },
  'make namespaces' => -> { call(272, 97, 0x10000000) },
  'run a program in namespaces' => -> { system('unshare', '-r', 'true', err: File::NULL) or raise IOError },
  'kernel keys' => -> { call(250, 219, 0, -3, 0) },
  'BPF' => -> { call(321, 280, 0, 0, 0) },
  'perf' => -> { call(298, 241, 0, 0, -1, -1, 0) },
  'userfaultfd' => -> { call(323, 282, 1) },
  'io_uring' => -> { call(425, 425, 1, 0) },
  'virtual sockets' => -> { Socket.new(40, 1, 0) },
  'new privileges' => -> { raise IOError if File.read('/proc/self/status')[/^NoNewPrivs:\s+(\d)/, 1] == '1' },
  'capabilities' => -> { raise IOError if File.read('/proc/self/status').scan(/^Cap(?:Prm|Eff|Inh|Amb):\s+(\h+)/).flatten.all? { |set| set.hex.zero? } },
  'many open files' => lambda {
    held = []
    begin
      100.times { held << File.open('/dev/null') }
    ensure
      held.each(&:close)
    end
  },
  'more open files' => -> { Process.setrlimit(:NOFILE, 1 << 20, 1 << 20) },
  'a core dump' => -> { raise IOError if Process.getrlimit(:CORE) == [0, 0] },
  'a device' => -> { call(259, 33, -100, File.join(T['private'], 'device'), 0o20666, 0x103) },
  'a large file' => lambda {
    system('sh', '-c', 'head -c 3000000 /dev/zero > "$0"', File.join(T['private'], 'large'), err: File::NULL)
    raise IOError if File.size(File.join(T['private'], 'large')) <= 1_048_576
  },
  'a full disk' => lambda {
    32.times { |n| File.write(File.join(T['private'], "f#{n}"), 'x' * 1_000_000) }
  },
  'many processes' => lambda {
    count = `sh -c 'n=0; while [ $n -lt 600 ]; do sleep 60 >/dev/null 2>&1 & n=$((n+1)); echo $n; done' 2>/dev/null`.lines.size
    raise IOError if count < 600
  }
}
done = attempts.select { |_, attempt| succeeds(&attempt) }.keys
File.delete(*Dir.glob(File.join(T['private'], '*')))

needs = {
  'reading what is allowed' => -> { File.read(T['allowed']) },
  'writing what is private' => -> { File.write(File.join(T['private'], 'mine'), 'x') },
  'open files' => -> { Dir.children('/proc/self/fd') },
  'its own memory' => -> { File.read('/proc/self/statm') },
  'users' => -> { Etc.getpwuid(0).name == 'root' or raise IOError },
  'a device of nothing' => -> { File.write('/dev/null', 'x') },
  'chance' => -> { File.read('/dev/urandom', 8) }
}
failed = needs.reject { |_, need| succeeds(&need) }.keys
puts JSON.generate('succeeded' => done, 'failed' => failed)
$stdout.flush
Process.kill(:KILL, Process.pid)
