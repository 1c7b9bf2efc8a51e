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
  #   volatile:W  something was used that cannot be followed; W says what
  #
  # Much is read once and kept by the process: classes, functions, types. So each
  # lookup is a unit that remembers what it read when it did read, and whoever looks
  # the same up again has read it, too: also in the workers of a warmed zygote.
  #
  # One thread compiles; notes of other threads are not taken.
  module Inputs
    # What one lookup read: notes, and units of lookups within.
    class Unit
      attr_reader :notes
      attr_accessor :last # the frame that has it, if it is the newest of those

      def initialize(notes)
        @notes = notes
      end
    end

    MAX_UNITS = 200_000

    @units = Hash.new { |kinds, kind| kinds[kind] = {} }
    @known = {} # notes, taken apart; nil for what others cover
    @notes = {}
    @frame = {}
    @count = 0

    class << self
      # What the compile at hand reads of facts, and where files are.
      attr_accessor :facts, :places

      # Notes what the block reads as that of a new compile, and returns it by kind.
      def of_compile(facts)
        @thread = Thread.current
        before = @frame
        @frame = frame = {}
        @facts = facts
        Outside.unseeded
        yield
        again(:main, '')
        @facts = nil
        flat(frame)
      ensure
        @frame = before
        @facts = nil
      end

      # The notes of a frame and of all units in it, by kind.
      def flat(frame)
        found = Lookups.always.to_h { |note| [note, true] }
        flatten(frame, found, {}.compare_by_identity)
        found.each_key.with_object({}) do |note, kinds|
          kind, text = apart(note)
          (kinds[kind] ||= []) << text if kind
        end
      end

      def note(text)
        @frame[text] = true if listening?
      end

      def note_list(dirs)
        deaf { dirs.map { |dir| places&.below(dir) } }.compact.each { |dir| note("list:#{dir}") }
      end

      # What is read of facts, nil while nobody notes it.
      def heard
        @facts if @facts && !@deaf && Thread.current.equal?(@thread)
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
        return yield if noted?(kind, name) || !listening?

        frame = @frame
        unit = unit(kind, name)
        unit.last = frame
        return yield if frame.key?(unit) || unit.notes.equal?(frame)

        frame[unit] = true
        @frame = unit.notes
        begin
          yield
        ensure
          @frame = frame
        end
      end

      # Whether all that a lookup reads is noted already. Most are: this must be quick.
      def noted?(kind, name)
        unit = @units[kind][name]
        unit && unit.last.equal?(@frame)
      end

      # Says that a unit's reads are read again.
      def again(kind, name)
        unit = @units[kind][name]
        @frame[unit] = true if unit && listening?
      end

      # Nothing in the block is noted.
      def deaf
        before = @deaf
        @deaf = true
        yield
      ensure
        @deaf = before
      end

      private

      def apart(note)
        @known.clear if @known.size > MAX_UNITS
        @known.fetch(note) do
          kind, text = note.split(':', 2)
          @known[note] = %w[file list names].include?(kind) && Lookups.covered?(text) ? nil : [kind, text]
        end
      end

      def unit(kind, name)
        units = @units[kind]
        units[name] || begin
          forget if (@count += 1) > MAX_UNITS
          found = deaf { @notes.key?(kind) ? @notes[kind].call(name) : @loaded.call(kind, name) }
          units[name.is_a?(String) ? name.dup.freeze : name] = Unit.new(found.to_h { |note| [note, true] })
        end
      end

      # Code that makes up names without end: what was read once may have been read
      # by any of them, so nothing can be followed any more.
      def forget
        @units.each_value { |units| units.each_value { |unit| unit.notes['volatile:the code looks up too many names'] = true } }
        @count = 0
      end

      def flatten(notes, found, seen)
        return if seen.key?(notes)

        seen[notes] = true
        notes.each_key { |note| note.is_a?(Unit) ? flatten(note.notes, found, seen) : found[note] = true }
      end
    end
  end
end
