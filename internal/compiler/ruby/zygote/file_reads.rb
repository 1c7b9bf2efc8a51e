# frozen_string_literal: true

module Tutti
  # Notes of files that Ruby code opens, lists or looks for. What is outside of the
  # environment cannot be followed, except for what Ruby and Puppet are made of.
  module FileReads
    OPENING = %i[read binread readlines foreach].freeze # open and new: see Initialized
    ASKING = %i[exist? exists? file? directory? readable? executable? symlink? size size? zero? empty? stat lstat mtime ctime atime birthtime
                ftype realpath realdirpath readlink world_readable? readable_real? writable? writable_real? world_writable? executable_real?
                owned? grpowned? identical? pipe? socket? blockdev? chardev? setuid? setgid? sticky?].freeze
    LISTING = %i[entries children each_child foreach open new empty?].freeze
    # They change what is there, or fail: that tells whether it is there.
    CHANGING = %i[unlink delete rename link symlink chmod chown lchown lchmod utime lutime truncate mkfifo].freeze
    LOADERS = %r{/puppet/(?:pops/loader/|util/autoload\.rb|parser/type_loader\.rb)}.freeze

    class << self
      def install
        prepend_to(File.singleton_class, OPENING | ASKING | CHANGING, 'file')
        prepend_to(IO.singleton_class, %i[read binread readlines foreach sysopen copy_stream write binwrite], 'file')
        Outside.implicitly(ASKING, "args.each { |path| ::Tutti::FileReads.seen('file', path) }", FileTest)
        prepend_to(Dir.singleton_class, LISTING, 'list')
        prepend_to(Dir.singleton_class, %i[exist? exists? chdir mkdir rmdir unlink delete], 'file')
        [File, File::Stat].each { |kind| kind.prepend(Initialized) }
        Dir.prepend(InitializedDir)
        IO.prepend(Reopened)
        Dir.singleton_class.prepend(Globs)
        Module.prepend(Autoloads)
        functions
      end

      def seen(kind, path)
        return unless Inputs.listening? && Inputs.places

        path = path.to_path if path.respond_to?(:to_path)
        return unless path.is_a?(String)
        return Outside.seen_below_code('runs a program') if path.start_with?('|')

        inside = Inputs.places.below(path)
        return seen_inside(kind, inside) if inside
        return Outside.seen_below_code('asks for the working directory') if relative?(path)

        path = Places::ABSOLUTE.call(path)
        Outside.seen("#{%w[list names].include?(kind) ? 'lists' : 'reads'} #{path}") unless Inputs.places.known?(path)
      end

      # A name that Kernel#open is given.
      def opened(path)
        seen('file', path) unless path.respond_to?(:to_open)
      end

      # Whether a path is one below the process's own directory, of which no code knows.
      def relative?(path)
        !path.empty? && !path.start_with?('/') && Inputs.places.known?(Places::ABSOLUTE.call(path))
      end

      # The directory that a pattern begins with, with all that is below.
      def seen_pattern(pattern)
        pattern = pattern.to_path if pattern.respond_to?(:to_path)
        return unless pattern.is_a?(String)

        plain = pattern[/\A[^*?\[{\\]*/]
        plain == pattern ? seen('file', plain) : seen('names', plain[%r{\A.*/}] || '.')
      end

      private

      # Kernel's own ways to files.
      def functions
        noted = '::Tutti::FileReads::Requires.note(args[0])'
        Outside.implicitly(%i[require], noted, call: '%s.tap { |fresh| ::Tutti::NativeReads.loaded if fresh }')
        Outside.implicitly(%i[require_relative], 'args[0] = ::Tutti::FileReads::Requires.beside(args[0], caller_locations(1, 4))', instead: :require)
        Outside.implicitly(%i[load], noted)
        # Ruby's own would take the module around our line for the one around the code's.
        Outside.implicitly(%i[autoload], '', call: '::Tutti::FileReads::Autoloads.of(self).autoload(*args)')
        Outside.implicitly(%i[open], '::Tutti::FileReads.opened(args[0])')
        Outside.implicitly(%i[test], "args.drop(1).each { |path| ::Tutti::FileReads.seen('file', path) }")
      end

      # What Puppet's loaders look at is noted by the names that they look up, and what
      # others read of the same directories by itself.
      def seen_inside(kind, inside)
        return if kind != 'file' && Loading.lists_providers?(inside)

        Careless.used(inside)
        direct = Lookups.covered?(inside) && !Loading.by_puppet?(LOADERS)
        Inputs.note(direct ? "direct:#{kind}:#{inside}" : "#{kind}:#{inside}")
      end

      def prepend_to(singleton, names, kind)
        hooks = Module.new
        names.each do |name|
          next unless singleton.method_defined?(name) || singleton.private_method_defined?(name)

          paths = CHANGING.include?(name) || name == :identical? ? 'args.each { |path| ::Tutti::FileReads.seen(%p, path) }' : '::Tutti::FileReads.seen(%p, args[0])'
          hooks.class_eval("def #{name}(*args, **options, &block); #{format(paths, kind)}; super; end", __FILE__, __LINE__)
        end
        singleton.prepend(hooks)
      end
    end

    # However a file is opened: File.open makes an object, too.
    module Initialized
      def initialize(path, *args, **options)
        path.is_a?(Integer) ? Outside.seen_in_code('reads an open file') : FileReads.seen('file', path)
        super
      end
    end

    # A directory that is opened by hand.
    module InitializedDir
      def initialize(path, *args, **options)
        FileReads.seen('list', path)
        super
      end
    end

    # A stream that becomes another file.
    module Reopened
      def reopen(other, *args, **options)
        FileReads.seen('file', other)
        super
      end
    end

    # Dir.glob and Dir[].
    module Globs
      def glob(patterns, *args, base: nil, **options, &block)
        Globs.note(base ? [base.to_s + '/*'] : patterns)
        base.nil? ? super(patterns, *args, **options, &block) : super
      end

      def [](*patterns, **options)
        Globs.note(options[:base] ? [options[:base].to_s + '/*'] : patterns)
        super
      end

      def self.note(patterns)
        patterns = [patterns] unless patterns.is_a?(Array)
        patterns.flatten.each { |pattern| FileReads.seen_pattern(pattern) }
      end
    end

    # Ruby that is loaded once somebody names what is in it, or was loaded by another compile.
    module Autoloads
      CLASS = Kernel.instance_method(:class)

      # The module that code of an object names its constants in.
      def self.of(object)
        Kernel.equal?(object) ? Object : CLASS.bind_call(object)
      end

      def autoload(name, path)
        Requires.note(path)
        super
      end
    end

    # Ruby that is loaded: it belongs to the lookup that loads it, and may be part of
    # whatever uses its module.
    module Requires
      def self.note(path)
        return unless Inputs.listening? && Inputs.places

        path = path.to_path if path.respond_to?(:to_path)
        return unless path.is_a?(String)

        found = path.start_with?('/', './', '../') ? path : resolved(path)
        return missed(path) unless found

        inside = Inputs.places.below(found)
        Careless.used(inside) if inside
        return FileReads.seen('file', found) if inside.nil? && !found.end_with?('.so')

        Inputs.note(inside.sub(%r{\A(.*?/lib)/.*}) { "tree:#{Regexp.last_match(1)}" }.then { |note| note.start_with?('tree:') ? note : "file:#{note}" }) if inside
      end

      # It may be found once there is such a file in a directory that code has added.
      def self.missed(path)
        $LOAD_PATH.each do |dir|
          inside = Inputs.places.below(dir) or next
          %w[.rb .so].each { |ending| Inputs.note("file:#{inside}/#{path.delete_suffix('.rb')}#{ending}") }
        end
      end

      def self.resolved(path)
        $LOAD_PATH.resolve_feature_path(path)&.last
      rescue LoadError
        nil
      end

      # Ruby's own would look beside our file.
      def self.beside(path, lines)
        line = lines.find { |at| !at.path.start_with?(__dir__) }
        File.expand_path(path, File.dirname(line.absolute_path || line.path))
      end
    end
  end
end
