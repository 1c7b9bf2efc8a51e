# Loaded into a Puppet run (RUBYOPT=-r): appends a line of JSON for each event of the run, as it happens, to
# TUTTI_EVENTS/TRANSACTION_UUID/NNNNNN.jsonl. Whatever goes wrong here ends the writing, never the run.
#
# What is written is what Puppet's report will say: the events are those that are added to the statuses of
# resources, and their values are made by Puppet's own conversion, so that what is sensitive is redacted already.
#
# The directory appears with its first file in it. Its file "lock" is held (flock) for as long as this process
# lives: who can lock it knows that nothing more comes.
module TuttiEvents
  SEGMENT_LINES = 1000    # of a file; then the next one begins
  SEGMENT_BYTES = 1 << 20
  SEGMENTS = 32           # files that are kept; of more, the oldest goes, read or not
  TEXT = 16 << 10         # characters of one value; its reader cuts further

  # Writer writes the events of one run.
  class Writer
    def initialize(root, uuid)
      @dir = File.join(root, uuid)
      @number = @lines = @bytes = 0
      @segments = []
      hidden = File.join(root, ".#{uuid}.#{Process.pid}")
      Dir.mkdir(hidden, 0o700)
      @lock = File.open(File.join(hidden, 'lock'), File::WRONLY | File::CREAT, 0o600)
      @lock.flock(File::LOCK_EX | File::LOCK_NB)
      @pending = hidden
    end

    def write(event)
      event['n'] = @number + 1
      text = "#{JSON.generate(event)}\n"
      if text.bytesize > SEGMENT_BYTES
        text = "#{JSON.generate(event.merge('old' => 'too long', 'new' => 'too long'))}\n"
      end
      rotate if @file.nil? || @lines >= SEGMENT_LINES || @bytes + text.bytesize > SEGMENT_BYTES
      @file.syswrite(text)
      @number += 1
      @lines += 1
      @bytes += text.bytesize
      publish if @pending
    end

    def close
      @file.close if @file
    end

    private

    def rotate
      @file.close if @file
      @index = (@index || 0) + 1
      name = format('%06d.jsonl', @index)
      @file = File.open(File.join(@pending || @dir, name), File::WRONLY | File::CREAT | File::EXCL | File::APPEND, 0o600)
      @lines = @bytes = 0
      @segments << name
      return if @segments.size <= SEGMENTS

      begin
        File.delete(File.join(@dir, @segments.shift))
      rescue Errno::ENOENT
        nil # its reader was quicker
      end
    end

    def publish
      File.rename(@pending, @dir)
      @pending = nil
    end
  end

  class << self
    # begin_run is called with the Puppet::Configurer of a run.
    def begin_run(configurer)
      guard do
        require 'json'
        require 'time'
        @uuid = configurer.instance_variable_get(:@transaction_uuid).to_s
        return unless @root && @uuid =~ /\A[0-9A-Za-z_-]{1,64}\z/

        @seen = {}
        @writer = Writer.new(@root, @uuid)
        start = { 'kind' => 'begin', 'at' => now, 'environment' => text(configurer.instance_variable_get(:@environment)), 'noop' => Puppet[:noop] ? true : false }
        start['transaction_id'] = @transaction if @transaction
        @writer.write(start)
      end
    end

    # ours says whether a report is that of the run: plugins and settings have transactions of their own.
    def ours?(report)
      @writer && report.respond_to?(:transaction_uuid) && report.transaction_uuid == @uuid
    end

    # during calls its block while a transaction runs.
    def during(transaction)
      (@transactions ||= []).push(ours?(transaction.report) && transaction.report)
      begin
        yield
      ensure
        @transactions.pop
      end
    end

    def event(status, event)
      guard { record(status, event.to_data_hash) } if current?
    end

    def skipped(status)
      return unless current?

      guard do
        return if @seen[status.resource]

        @seen[status.resource] = true
        record(status, 'status' => 'skipped', 'time' => status.time.iso8601(9))
      end
    end

    # finish is called when the report is complete, before it is sent.
    def finish(report)
      return unless ours?(report)

      guard do
        @writer.write('kind' => 'end', 'at' => now, 'environment' => text(report.environment), 'status' => report.status.to_s,
                      'version' => text(report.configuration_version), 'noop' => report.noop ? true : false, 'pending' => pending(report))
        @writer.close
        @writer = nil
      end
    end

    def start(root, transaction)
      @root = root
      @transaction = transaction
    end

    private

    def current?
      @writer && @transactions && @transactions.last
    end

    def record(status, event)
      return if status.resource_type == 'Whit'

      line = {
        'kind' => 'resource', 'at' => event['time'], 'environment' => text(@transactions.last.environment), 'status' => event['status'],
        'type' => text(status.resource_type), 'title' => text(status.title), 'property' => text(event['property']), 'name' => text(event['name']),
        'message' => text(event['message']), 'file' => text(status.file), 'line' => status.line,
        'containment' => (status.containment_path || []).map { |element| text(element) },
        'corrective' => event['corrective_change'] ? true : false, 'redacted' => event['redacted'] ? true : false,
        'old' => value(event['previous_value']), 'new' => value(event['desired_value'])
      }
      @writer.write(line.reject { |_, part| part.nil? })
    end

    # pending is how many resources noop kept from changing: those for which a report says noop_pending.
    def pending(report)
      report.resource_statuses.count { |_, status| status && status.events.any? { |event| event.status.to_s == 'noop' } }
    end

    def now
      Time.now.utc.iso8601(9)
    end

    # text is UTF-8 of a bounded length, or nil.
    def text(of)
      return nil if of.nil?

      clean = of.to_s.dup
      clean = clean.encode(Encoding::UTF_8, :invalid => :replace, :undef => :replace) unless [Encoding::UTF_8, Encoding::BINARY].include?(clean.encoding)
      clean.force_encoding(Encoding::UTF_8)
      clean = clean.scrub
      clean.length > TEXT ? "#{clean[0, TEXT]}…" : clean
    end

    # value is a value of a property: JSON as it is, if that is not too long.
    def value(of, depth = 0)
      return text(of.inspect) if depth > 20

      case of
      when nil, true, false, Integer then of
      when Float then of.finite? ? of : of.to_s
      when Array then of.first(1000).map { |element| value(element, depth + 1) }
      when Hash then Hash[of.first(1000).map { |key, element| [text(key), value(element, depth + 1)] }]
      else text(of)
      end
    end

    # guard keeps every failure from the run: after the first one nothing more is written.
    def guard
      yield
    rescue StandardError, SystemStackError, NoMemoryError => e
      @writer = nil
      warn("tutti: the events of this run are not streamed any more: #{e.class}: #{e.message}"[0, 400]) if $stderr
      nil
    end
  end

  # The places where Puppet passes by; the same in Puppet 6, 7 and 8.
  PLACES = {
    'Puppet::Configurer' => Module.new do
      def run(options = {})
        TuttiEvents.begin_run(self)
        super
      end
    end,
    'Puppet::Transaction' => Module.new do
      def evaluate(*args, &block)
        TuttiEvents.during(self) { super(*args, &block) }
      end
    end,
    'Puppet::Transaction::Report' => Module.new do
      def finalize_report
        done = super
        TuttiEvents.finish(self)
        done
      end
    end,
    'Puppet::Resource::Status' => Module.new do
      def add_event(event)
        done = super
        TuttiEvents.event(self, event)
        done
      end

      def skipped=(value)
        super
        TuttiEvents.skipped(self) if value
      end
    end
  }

  # Programs that the run starts must not load this: they are not Puppet.
  def self.forget_environment
    mine = "-r#{ENV.delete('TUTTI_EVENTS_HOOK')}"
    rest = ENV['RUBYOPT'].to_s.split(' ').reject { |option| option == mine }.join(' ')
    rest.empty? ? ENV.delete('RUBYOPT') : ENV['RUBYOPT'] = rest
    [ENV.delete('TUTTI_EVENTS'), ENV.delete('TUTTI_EVENTS_TRANSACTION')]
  end

  # attach waits until Puppet has defined its classes, and stands before their methods then.
  def self.attach
    left = PLACES.keys
    trace = TracePoint.new(:end) do |point|
      begin
        name = point.self.name
        if left.include?(name)
          left.delete(name)
          point.self.prepend(PLACES[name])
          trace.disable if left.empty?
        end
      rescue StandardError
        trace.disable
      end
    end
    trace.enable
  end

  begin
    root, transaction = forget_environment
    if root
      start(root, transaction)
      attach
    end
  rescue StandardError
    nil
  end
end
