# frozen_string_literal: true

module Tutti
  # Ruby's functions written in C that open a file without Ruby's File, or show what
  # is no input at all. Libraries that are not loaded yet are watched once they are.
  module NativeReads
    STREAM = %i[read gets readline readlines each each_line each_char each_byte getc getbyte readchar readbyte readpartial read_nonblock
                sysread pread eof eof? dup clone].freeze
    MEMORY = "looks into Ruby's memory"
    INPUT = 'reads its standard input'
    IN_C = 'calls functions written in C'
    # Names of what has them, whether they are its own or its instances', what they are
    # called, and why that cannot be followed; :path for those that are given a path.
    FUNCTIONS = [
      ['Zlib::GzipReader', :own, %i[open], :path],
      ['Zlib::GzipWriter', :own, %i[open], :path],
      ['OpenSSL::X509::Store', :each, %i[add_file add_path], :path],
      ['OpenSSL::X509::Store', :each, %i[set_default_paths], "reads the server's certificates"],
      ['OpenSSL::Config', :own, %i[load new], :path],
      ['OpenSSL::Random', :own, %i[load_random_file write_random_file], :path],
      ['OpenSSL::Engine', :own, %i[load by_id], IN_C],
      ['OpenSSL::PKey', :own, %i[generate_key generate_parameters], 'uses random numbers'],
      ['Pathname', :each, %i[realpath realdirpath], :receiver],
      ['RubyVM::InstructionSequence', :own, %i[compile_file], :path],
      ['RubyVM::AbstractSyntaxTree', :own, %i[parse_file], :path],
      ['RubyVM::AbstractSyntaxTree', :own, %i[of], MEMORY],
      ['ARGF.class', :each, STREAM + %i[lineno file filename path skip to_a fileno], INPUT],
      ['IO', :own, %i[for_fd], 'reads an open file'],
      ['IO', :own, %i[console], INPUT],
      ['Dir', :own, %i[fchdir for_fd], 'reads an open file'],
      ['IO::Buffer', :own, %i[map], 'reads an open file'],
      ['Etc::Passwd', :own, %i[each], "asks the server's system"],
      ['Etc::Group', :own, %i[each], "asks the server's system"],
      ['Etc', :own, %i[setpwent setgrent endpwent endgrent getgrent systmpdir sysconfdir], "asks the server's system"],
      ['Process', :own, %i[getpgid getpgrp getsid getrlimit getpriority groups maxgroups last_status], "asks the server's system"],
      ['Fiddle', :own, %i[dlopen malloc], IN_C],
      ['Fiddle::Handle', :own, %i[new [] sym], IN_C],
      ['Fiddle::Pointer', :own, %i[new [] to_ptr malloc], IN_C],
      ['Fiddle::Function', :own, %i[new], IN_C],
      ['PTY', :own, %i[spawn getpty open], 'runs a program'],
      ['Readline', :own, %i[readline], INPUT],
      ['DBM', :own, %i[new open], 'reads a database'],
      ['GDBM', :own, %i[new open], 'reads a database'],
      ['SDBM', :own, %i[new open], 'reads a database'],
      ['Ractor', :own, %i[new], 'starts a thread'],
      ['ObjectSpace', :own, %i[each_object count_objects memsize_of memsize_of_all dump dump_all reachable_objects_from count_objects_size
                               count_nodes count_tdata_objects trace_object_allocations _id2ref], MEMORY],
      ['GC', :own, %i[stat count measure_total_time total_time latest_gc_info stat_heap], MEMORY],
      ['Method', :each, %i[super_method], MEMORY],
      ['UnboundMethod', :each, %i[super_method], MEMORY],
      ['UNIXServer', :own, %i[new open], 'uses the network'],
      ['Socket', :own, %i[unix getservbyname getservbyport getnameinfo gethostbyaddr], 'uses the network'],
      ['Addrinfo', :each, %i[getnameinfo], 'uses the network']
    ].freeze

    @pending = []

    class << self
      def install
        @pending = FUNCTIONS
        loaded
        STDIN.singleton_class.prepend(hooks(STREAM, INPUT))
        Outside.implicitly(Streams)
        IO.prepend(Descriptors)
      end

      # After more Ruby was loaded: watches what is there now, and keeps what is not.
      def loaded
        @pending = @pending.filter_map do |name, whose, functions, what|
          missing = functions - watch(name, whose, functions, what)
          [name, whose, missing, what] unless missing.empty?
        end
      end

      private

      # The functions that are there.
      def watch(name, whose, functions, what)
        there = name == 'ARGF.class' ? ARGF.class : constant(name) or return []
        there = there.singleton_class if whose == :own
        functions = functions.select { |function| there.method_defined?(function) || there.private_method_defined?(function) }
        there.prepend(hooks(functions, what)) unless functions.empty?
        functions
      end

      # Nothing is loaded by asking for it.
      def constant(name)
        name.split('::').reduce(Object) do |outer, inner|
          return nil if !outer.const_defined?(inner, outer.equal?(Object)) || outer.autoload?(inner)

          outer.const_get(inner)
        end
      end

      def hooks(functions, what)
        note = { path: "::Tutti::FileReads.seen('file', args[0])", receiver: "::Tutti::FileReads.seen('file', to_s)" }
               .fetch(what) { "::Tutti::Outside.seen_below_code(#{what.dump})" }
        Module.new do
          functions.each { |name| class_eval("def #{name}(*args, **options, &block); #{note}; super; end", __FILE__, __LINE__) }
        end
      end
    end

    # What every object can read of the standard input, and of the system.
    module Streams
      %i[gets readline readlines].each do |name|
        class_eval("def #{name}(*args, **options); ::Tutti::Outside.seen_below_code(::Tutti::NativeReads::INPUT); super; end", __FILE__, __LINE__)
      end

      def syscall(*)
        Outside.seen_below_code(IN_C)
        super
      end
    end

    # A file that somebody else has opened.
    module Descriptors
      def initialize(descriptor, *args, **options)
        Outside.seen_in_code('reads an open file') if descriptor.is_a?(Integer)
        super
      end
    end
  end
end
