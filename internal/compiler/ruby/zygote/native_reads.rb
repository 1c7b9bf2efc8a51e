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
    CLOCK = 'reads the clock'
    CHANCE = 'uses random numbers'
    SYSTEM = "asks the server's system"
    CERTIFICATES = "reads the server's certificates"
    SEEN = '::Tutti::FileReads.seen'
    # What is noted instead, by what the table below has for a reason.
    NOTES = {
      path: "#{SEEN}('file', args[0])",
      tree: "#{SEEN}('tree', args[0])",
      receiver: "#{SEEN}('file', to_s)",
      authorities: "#{SEEN}('file', ca_file); #{SEEN}('tree', ca_path)",
      within: '::Tutti::FactHashes.within(args)',
      signs: '::Tutti::NativeReads.signs(self, args)',
      user: '::Tutti::Outside.seen_by_code(::Tutti::NativeReads::SYSTEM)' # Puppet asks whether it is root
    }.freeze
    # Names of what has them, whether they are its own or its instances', what they are
    # called, and why that cannot be followed, or one of the notes above. Functions are a
    # module's own and those of whoever includes it.
    FUNCTIONS = [
      ['Zlib::GzipReader', :own, %i[open], :path],
      ['Zlib::GzipWriter', :own, %i[open], :path],
      ['OpenSSL::X509::Store', :each, %i[add_file], :path],
      ['OpenSSL::X509::Store', :each, %i[add_path], :tree],
      ['OpenSSL::X509::Store', :each, %i[set_default_paths], CERTIFICATES],
      ['OpenSSL::X509::Store', :each, %i[verify], CLOCK], # and looks for certificates by then
      ['OpenSSL::X509::StoreContext', :each, %i[verify], CLOCK],
      ['OpenSSL::PKCS7', :each, %i[verify], CLOCK],
      ['OpenSSL::OCSP::BasicResponse', :each, %i[add_status verify], CLOCK],
      ['OpenSSL::OCSP::SingleResponse', :each, %i[check_validity], CLOCK],
      ['Zlib::GzipWriter', :each, %i[initialize], CLOCK], # the time is in what it writes
      ['Zlib', :functions, %i[gzip], CLOCK],
      ['OpenSSL::SSL::SSLContext', :each, %i[ca_file=], :path],
      ['OpenSSL::SSL::SSLContext', :each, %i[ca_path=], :tree],
      ['OpenSSL::SSL::SSLContext', :each, %i[setup freeze], :authorities],
      ['OpenSSL::Config', :own, %i[load new], :path],
      ['OpenSSL::Random', :functions, %i[load_random_file write_random_file], :path],
      ['OpenSSL::Engine', :own, %i[load by_id], IN_C],
      ['OpenSSL::Provider', :own, %i[load], IN_C],
      ['OpenSSL::Provider', :own, %i[provider_names], SYSTEM], # its configuration names them
      ['OpenSSL::PKey', :functions, %i[generate_key generate_parameters], CHANCE],
      ['OpenSSL::PKey::PKey', :each, %i[sign sign_raw], :signs],
      ['OpenSSL::PKey::PKey', :each, %i[encrypt], CHANCE],
      ['OpenSSL::PKey::RSA', :each, %i[sign_pss public_encrypt], CHANCE],
      ['OpenSSL::PKey::EC', :each, %i[generate_key generate_key! dsa_sign_asn1], CHANCE],
      ['OpenSSL::PKey::DSA', :each, %i[syssign generate_key generate_key!], CHANCE],
      ['OpenSSL::PKey::DH', :each, %i[generate_key generate_key!], CHANCE],
      ['OpenSSL::PKey::DH', :own, %i[generate], CHANCE],
      ['OpenSSL::X509::Certificate', :each, %i[sign], :signs],
      ['OpenSSL::X509::Request', :each, %i[sign], :signs],
      ['OpenSSL::X509::CRL', :each, %i[sign], :signs],
      ['OpenSSL::PKCS7', :own, %i[sign encrypt], CHANCE],
      ['OpenSSL::PKCS12', :own, %i[create], CHANCE],
      ['OpenSSL::Timestamp::Factory', :each, %i[create_timestamp], CHANCE],
      ['Pathname', :each, %i[realpath realdirpath], :receiver],
      ['RubyVM::InstructionSequence', :own, %i[compile_file compile_file_prism], :path],
      ['RubyVM::AbstractSyntaxTree', :own, %i[parse_file], :path],
      ['Prism', :own, %i[dump_file lex_file parse_file parse_file_comments parse_file_failure? parse_file_success? parse_lex_file], :path],
      ['Prism::Debug', :own, %i[profile_file], :path],
      ['RubyVM::AbstractSyntaxTree', :own, %i[of], MEMORY],
      ['ARGF.class', :each, STREAM + %i[lineno file filename path skip to_a fileno], INPUT],
      ['IO', :own, %i[for_fd], 'reads an open file'],
      ['IO', :own, %i[console], INPUT],
      ['Dir', :own, %i[fchdir for_fd], 'reads an open file'],
      ['IO::Buffer', :own, %i[map], 'reads an open file'],
      ['Etc::Passwd', :own, %i[each], SYSTEM],
      ['Etc::Group', :own, %i[each], SYSTEM],
      ['Etc', :functions, %i[setpwent setgrent endpwent endgrent getgrent systmpdir sysconfdir], SYSTEM],
      ['File', :own, %i[umask], SYSTEM],
      ['Marshal', :each, %i[dump], :within],
      ['IO', :own, %i[select], 'reads an open file'],
      ['Process', :functions, %i[getpgid getpgrp getsid getrlimit getpriority groups maxgroups last_status kill clock_getres
                                 argv0 wait wait2 waitpid waitpid2 waitall detach], SYSTEM],
      ['Process', :functions, %i[uid gid euid egid], :user],
      ['Process::Sys', :functions, %i[getuid getgid geteuid getegid issetugid], :user],
      ['Process::UID', :functions, %i[rid eid from_name re_exchangeable? sid_available?], :user],
      ['Process::GID', :functions, %i[rid eid from_name re_exchangeable? sid_available?], :user],
      ['RubyVM', :own, %i[stat], MEMORY],
      ['RubyVM::YJIT', :own, %i[runtime_stats], MEMORY],
      ['MessagePack::Packer', :each, %i[write pack write_hash write_array write_extension], :within],
      ['RBTree', :own, %i[[] new], :within],
      ['RBTree', :each, %i[update merge! merge replace], :within],
      ['Shadow::Passwd', :functions, %i[getspnam getspent sgetspent fgetspent setspent endspent], SYSTEM],
      ['Augeas', :own, %i[open open3 create], SYSTEM],
      ['Fiddle', :functions, %i[dlopen malloc], IN_C],
      ['Fiddle::Handle', :own, %i[new [] sym sym_defined?], IN_C],
      ['Fiddle::Pointer', :own, %i[new [] to_ptr malloc read write], IN_C],
      ['Fiddle::Function', :own, %i[new], IN_C],
      ['PTY', :functions, %i[spawn getpty open], 'runs a program'],
      ['Readline', :functions, %i[readline], INPUT],
      ['DBM', :own, %i[new open], 'reads a database'],
      ['GDBM', :own, %i[new open], 'reads a database'],
      ['SDBM', :own, %i[new open], 'reads a database'],
      ['Ractor', :own, %i[new], 'starts a thread'],
      ['ObjectSpace', :functions, %i[each_object count_objects memsize_of memsize_of_all dump dump_all dump_shapes reachable_objects_from count_objects_size
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
        Outside.implicitly(%i[gets readline readlines], Outside.hook(INPUT, 'seen_below_code'))
        Outside.implicitly(%i[select], Outside.hook('reads an open file', 'seen_below_code'))
        Outside.implicitly(%i[syscall], Outside.hook(IN_C, 'seen_below_code'))
        IO.prepend(Descriptors)
      end

      # All keys but those of RSA sign with random numbers.
      def signs(object, args)
        key = object.is_a?(OpenSSL::PKey::PKey) ? object : args[0]
        Outside.seen_below_code(CHANCE) unless key.is_a?(OpenSSL::PKey::RSA) && args.size < 3
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
        there = there.singleton_class unless whose == :each
        functions = functions.select { |function| there.method_defined?(function) || there.private_method_defined?(function) }
        return functions if functions.empty?

        whose == :functions ? Outside.implicitly(functions, note(what), constant(name)) : prepend(there, hooks(functions, what))
        functions
      end

      # Nothing is loaded by asking for it.
      def constant(name)
        name.split('::').reduce(Object) do |outer, inner|
          return nil if !outer.const_defined?(inner, outer.equal?(Object)) || outer.autoload?(inner)

          outer.const_get(inner)
        end
      end

      def prepend(there, hooks)
        hooks.send(:private, *hooks.instance_methods.select { |name| there.private_method_defined?(name) })
        there.prepend(hooks)
      end

      def note(what)
        NOTES.fetch(what) { Outside.hook(what, 'seen_below_code') }
      end

      def hooks(functions, what)
        note = note(what)
        Module.new do
          functions.each { |name| class_eval("def #{name}(*args, **options, &block); #{note}; super; end", __FILE__, __LINE__) }
        end
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
