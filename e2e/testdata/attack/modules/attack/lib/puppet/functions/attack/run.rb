# frozen_string_literal: true

# What somebody may write into a branch that is only previewed: it tries to get at the server, and names each attempt that
# succeeded though it should not, and each that was refused though it should succeed. Then it does what honest code does, and names what did not work.
Puppet::Functions.create_function(:'attack::run') do
  dispatch(:run) { param 'String', :targets }

  def run(targets)
    @at = JSON.parse(targets)
    require 'socket'
    require 'tempfile'
    tried = @at['only'] ? attempts.slice(*@at['only']) : attempts
    succeeded = tried.select { |_, attempt| succeeds(&attempt) }.keys
    failed = needs.reject { |_, need| succeeds(&need) }.keys
    { 'succeeded' => succeeded - @at['open'], 'refused' => @at['open'] - succeeded, 'failed' => failed }
  end

  def succeeds
    yield ? true : false
  rescue SystemCallError, SocketError, IOError, LoadError, Puppet::Error, NoMemoryError
    false
  end

  def others
    Dir.glob('/proc/[0-9]*') - ["/proc/#{$$}"]
  end

  # The zygote and other workers: by what they call themselves, since what they start is no worker.
  def workers
    others.select { |dir| succeeds { File.read("#{dir}/cmdline").start_with?('tutti ') } }
  end

  # How many programs a shell can start at once.
  def started
    script = 'n=0; while [ $n -lt 900 ]; do sleep 60 >/dev/null 2>&1 & n=$((n+1)); echo $n; done'
    IO.popen(['sh', '-c', script], err: File::NULL) { |io| io.each_line.count }
  ensure
    others.each { |dir| succeeds { File.read("#{dir}/comm") == "sleep\n" && Process.kill(:KILL, File.basename(dir).to_i) } }
    Process.waitall
  end

  def large
    IO.popen(['sh', '-c', 'head -c 200000000 /dev/zero > fill/large 2>/dev/null; wc -c < fill/large']).read.to_i
  end

  # One for all files: garbage would count as memory.
  def megabyte
    @megabyte ||= 'x' * 1_000_000
  end

  def fill
    Dir.mkdir('fill')
    yield
  ensure
    FileUtils.rm_rf('fill')
  end

  # Numbers of system calls: amd64, arm64. A complaint about the arguments means that the call was allowed.
  def kernel(amd, arm, *args)
    syscall(RbConfig::CONFIG['host_cpu'].start_with?('aarch64', 'arm64') ? arm : amd, *args)
    true
  rescue Errno::EPERM, Errno::EACCES, Errno::ENOSYS, Errno::ESRCH
    false
  rescue SystemCallError
    true
  end

  def attempts
    data = @at['data']
    server = @at['server']
    {
      "the administrator's token" => -> { File.read("#{data}/admin.token") },
      'the key of the CA' => -> { File.read("#{data}/ca/ca.pem") },
      'the seal' => -> { File.read("#{data}/seal.key") },
      'the files of the CA' => -> { Dir.children("#{data}/ca") },
      'the database' => -> { File.open("#{data}/tutti.db") },
      'the data directory' => -> { Dir.children(data) },
      'the blobs' => -> { Dir.children("#{data}/blobs") },
      'versions of others' => -> { Dir.children("#{data}/trees").size > 1 },
      'a file of another version' => -> { Dir.glob("#{data}/trees/*/manifests/secret.pp").any? },
      'directories of other compilers' => -> { Dir.children("#{data}/ruby").any? { |engine| (Dir.children("#{data}/ruby/#{engine}/zygotes") rescue []).size > 1 } },
      'a copy by a program' => -> { system('cp', "#{data}/admin.token", 'stolen', err: File::NULL) },
      'a new mode for the token' => -> { File.chmod(0o644, "#{data}/admin.token") },
      'a file in the data directory' => -> { File.write("#{data}/here", 'x') },
      'its own version' => -> { File.write("#{Dir.glob("#{data}/trees/*").first}/manifests/site.pp", 'x') },
      "the server's environment" => -> { File.read("/proc/#{server}/environ") },
      "the server's memory" => -> { File.open("/proc/#{server}/mem") },
      'the memory of another worker' => -> { workers.any? { |dir| succeeds { File.open("#{dir}/mem") } } },
      'the variables of another worker' => -> { workers.any? { |dir| succeeds { !File.read("#{dir}/environ").empty? } } },
      'command lines of others' => -> { Dir.glob('/proc/[0-9]*/cmdline').any? { |path| succeeds { File.read(path).include?('--data') } } },
      'home directories' => -> { (Dir.children('/root') + Dir.children('/home')).any? },
      'passwords' => -> { File.read('/etc/shadow') },
      'a secret below /etc' => -> { File.read(@at['secret']) },
      'a connection to the server' => -> { TCPSocket.new('127.0.0.1', @at['port'].to_i) },
      'a connection elsewhere' => -> { TCPSocket.new('127.0.0.1', @at['closed']) },
      'a signal to the server' => -> { Process.kill(:CONT, server) },
      'a signal to its guard' => -> { Process.kill(0, 1) },
      'a signal to another compiler or worker' => -> { @at['others'].any? { |pid| succeeds { Process.kill(0, pid) } } },
      'UDP' => -> { UDPSocket.new.send('x', 0, '127.0.0.1', @at['udp']) },
      'a socket with a path' => -> { UNIXSocket.new(@at['socket']) },
      'ptrace of the server' => -> { kernel(101, 117, 16, server, 0, 0) },
      'ptrace of the zygote' => -> { kernel(101, 117, 16, Process.ppid, 0, 0) },
      'limits of the server' => -> { kernel(302, 261, server, 7, 0, 0) },
      'a look into the memory of the server' => -> { kernel(310, 270, server, 0, 0, 0, 0, 0) },
      'a look into the memory of the zygote' => -> { kernel(310, 270, Process.ppid, 0, 0, 0, 0, 0) },
      'a change of the memory of the zygote' => -> { kernel(311, 271, Process.ppid, 0, 0, 0, 0, 0) },
      'a mount' => -> { kernel(165, 40, +'none', +'/no/such', +'tmpfs', 0, 0) },
      'keys of the kernel' => -> { kernel(250, 219, 0, -3, 0) },
      'BPF' => -> { kernel(321, 280, 0, 0, 0) },
      'userfaultfd' => -> { kernel(323, 282, 1) },
      'perf' => -> { kernel(298, 241, 0, 0, -1, -1, 0) },
      'namespaces' => -> { kernel(272, 97, 0x10000000) },
      'a full disk' => -> { fill { 200.times { |n| File.write("fill/#{n}", megabyte) } } },
      'a large file' => -> { fill { large >= 200_000_000 } },
      'many processes' => -> { started >= 900 }
    }
  end

  def needs
    return {} if @at['only']

    {
      'a program' => -> { call_function('generate', '/bin/echo', 'said') == "said\n" },
      'open files' => -> { Dir.children('/proc/self/fd').any? },
      'a temporary file' => -> { Tempfile.create('x') { |file| file.write('x') } },
      'a process that is left behind' => -> { system('setsid', 'sh', '-c', "setsid sleep #{@at['sleep']} & exit 0") },
      'its own module' => -> { File.exist?(__FILE__) && File.read(__FILE__) },
      'a key that is granted' => -> { File.read(@at['key']) == "key\n" },
      'a gem that is granted' => -> { require('granted') && GRANTED },
      'a variable that is granted' => -> { ENV['VAULT_ADDR'] == 'https://vault.example.test:8200' },
      'a port that is granted' => -> { @at['granted'].nil? || TCPSocket.new('127.0.0.1', @at['granted']) }
    }
  end
end
