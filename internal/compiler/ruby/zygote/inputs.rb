# frozen_string_literal: true

module Tutti
  # What a compile reads, so that its catalog can be used again while all of it is
  # as it was.
  #
  # A note is a text: a kind, a colon and a path below the environment or a name.
  #
  #   file:P      the file at P was read, or looked for and not there
  #   list:P      the names in the directory P were listed
  #   names:P     all names below P were listed
  #   tree:P      all files at and below P, with their content
  #   module:N    which directory the module N is in, if any
  #   anywhere:P  which modules have a file at P below them
  #   direct:K:P  the same as K:P, though a lookup by name may say more of P
  #   volatile:W  something was used that cannot be followed; W says what
  #
  # Much is read once and kept by the process: classes, functions, types. So each
  # lookup is a unit that remembers what it read when it did read, and whoever looks
  # the same up again has read it, too: also in the workers of a warmed zygote.
  #
  # One thread compiles; notes of other threads are not taken.
  module Inputs
    # What one lookup read, or one compile: notes, and units of lookups within.
    class Unit
      attr_reader :notes, :units, :serial
      attr_accessor :last # the unit that has it, if it is the newest of those
      attr_accessor :aside # what its kind of lookup keeps

      def initialize(notes, serial)
        @notes = notes
        @units = {}.compare_by_identity # to their serials
        @serial = serial
      end

      def size
        @notes.size + @units.size
      end
    end

    # Kinds of lookups whose names are told apart by case, or are paths. All others find the same by each spelling of a name.
    SPELLED = %i[file module main node feature alias found_file found_template].freeze

    MAX_UNITS = 200_000
    MAX_GATHERED = 200

    @units = Hash.new { |kinds, kind| kinds[kind] = {} }
    @known = {} # notes, taken apart; nil for what others cover
    @gathered = {} # notes of units by kind, by the units' serials
    @notes = {}
    @frame = Unit.new({}, 0)
    @count = 0
    @serial = 0

    class << self
      # What the compile at hand reads of facts, and where files are.
      attr_accessor :facts, :places

      # What is read of facts, nil while nobody notes it. Other threads' reads count, too.
      attr_reader :heard

      # Notes what the block reads as that of a new compile, and returns it by kind.
      def of_compile(facts)
        @thread = Thread.current
        before = @frame
        @frame = frame = Unit.new({}, 0)
        @facts = @heard = facts
        Outside.unseeded
        yield
        again(:main, '')
        @facts = @heard = nil
        flat(frame).tap { |notes| facts&.careless if notes.delete('careless') || Careless.anywhere }
      ensure
        @frame = before
        @facts = @heard = nil
      end

      # The notes of a frame and of all units in it, by kind. A note of both is there twice.
      def flat(frame)
        sorted(frame.notes, gathered(frame.units).transform_values(&:dup))
      end

      def note(text)
        @frame.notes[text] = true if listening?
      end

      def note_list(dirs)
        deaf { dirs.map { |dir| places&.below(dir) } }.compact.each { |dir| note("list:#{dir}") }
      end

      # Whether somebody's reads are noted: not those of threads beside the compile.
      def listening?
        !@deaf && (@thread.nil? || Thread.current.equal?(@thread))
      end

      # Says what holds for lookups of a kind whatever they find: a block that lists
      # notes for a name.
      def kind(kind, &notes)
        @notes[kind] = notes
      end

      # The same for all other kinds: those of Puppet's loaders.
      def loaded(&notes)
        @loaded = notes
      end

      # Looks up something that the process may keep.
      def look(kind, name)
        return yield if noted(kind, name) || !listening?

        frame = @frame
        unit = unit(kind, name)
        unit.last = frame
        return yield if frame.units.key?(unit) || unit.equal?(frame)

        frame.units[unit] = unit.serial
        size = unit.size
        @frame = unit
        begin
          yield
        ensure
          @frame = frame
          @gathered.clear if unit.size != size
        end
      end

      # The unit of a lookup if all that it reads is noted already. Most are: this must
      # be quick.
      def noted(kind, name)
        unit = @units[kind][name]
        unit if unit && unit.last.equal?(@frame)
      end

      # Says that a unit's reads are read again.
      def again(kind, name)
        unit = @units[kind][name]
        @frame.units[unit] = unit.serial if unit && listening?
      end

      # Nothing in the block is noted.
      def deaf
        before = @deaf
        @deaf = true
        @heard = nil
        yield
      ensure
        @deaf = before
        @heard = @facts unless before
      end

      private

      def apart(note)
        @known.clear if @known.size > MAX_UNITS
        @known.fetch(note) do
          kind, text = note.split(':', 2)
          next @known[note] = text.split(':', 2) if kind == 'direct'

          @known[note] = %w[file list names].include?(kind) && Lookups.covered?(text) ? nil : [kind, text]
        end
      end

      def unit(kind, name)
        units = @units[kind]
        units[name] || begin
          forget if (@count += 1) > MAX_UNITS
          usual = SPELLED.include?(kind) ? name : name.to_s.downcase.delete_prefix('::')
          units[name.is_a?(String) ? name.dup.freeze : name] = units[usual] ||= read_by(kind, usual)
        end
      end

      def read_by(kind, name)
        found = deaf { @notes.key?(kind) ? @notes[kind].call(name) : @loaded.call(kind, name) }
        Unit.new(found.to_h { |note| [note, true] }, @serial += 1)
      end

      # Code that makes up names without end: what was read once may have been read
      # by any of them, so nothing can be followed any more.
      def forget
        @units.each_value { |units| units.each_value { |unit| unit.notes['volatile:the code looks up too many names'] = true } }
        @gathered.clear
        @count = 0
      end

      # The notes of units and of all units in them, and these by kind. Compiles of one
      # kind of node look up the same: that is put together once, until any unit reads more.
      def gathered(units)
        serials = units.values.pack('N*')
        @gathered.fetch(serials) do
          @gathered.clear if @gathered.size >= MAX_GATHERED
          @gathered[serials] = gather(units)
        end
      end

      def gather(units)
        found = Lookups.always.to_h { |note| [note, true] }
        flatten(units, found, {}.compare_by_identity)
        sorted(found, {})
      end

      def sorted(notes, kinds)
        notes.each_key do |note|
          kind, text = apart(note)
          (kinds[kind] ||= []) << text if kind
        end
        kinds
      end

      def flatten(units, found, seen)
        units.each_key do |unit|
          next if seen.key?(unit)

          seen[unit] = true
          found.update(unit.notes)
          flatten(unit.units, found, seen)
        end
      end
    end
  end
end
