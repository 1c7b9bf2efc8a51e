# frozen_string_literal: true

module Tutti
  # Code of the environment in which Ruby may take a whole hash without any function
  # that could be watched: **hash, and text.gsub(pattern, hash), which sets variables
  # of its caller and must not be wrapped. A compile that uses such code reads all of
  # each hash of facts that Ruby code, rather than Puppet, has touched. What only types
  # and providers load is given none.
  module Careless
    REPLACING = %i[sub gsub sub! gsub!].freeze
    TEXTS = %i[to_s join path chomp strip inspect upcase downcase capitalize gsub sub tr format sprintf dirname basename].freeze
    # What puts something on the stack that is no hash of facts.
    HARMLESS = %i[putstring putchilledstring putobject concatstrings opt_str_freeze opt_str_uminus opt_plus opt_mod duphash newhash getconstant
                  opt_setinlinecache opt_getconstant_path].freeze
    MERGES = %i[core#hash_merge_kwd core#hash_merge_ptr].freeze

    @files = {}
    @trees = {}

    class << self
      # Whether there is any such code in this process.
      attr_reader :any

      # Whether some of it has no file that says who uses it.
      attr_reader :anywhere

      # Whether some code keeps what srand returns.
      attr_reader :seeds

      def install
        @splat = sends('f(**h)') & ~sends('f(h)')
        TracePoint.new(:script_compiled) { |point| compiled(point.instruction_sequence, point.eval_script) }.enable
      end

      # A file is used, again perhaps.
      def used(inside)
        return if @files.empty? || !(@files.key?(inside) || @trees.key?(inside[%r{\A.*?/lib(?=/)}])) || for_type?(inside)

        found(inside)
      end

      def careless?(sequence)
        list = sequence.is_a?(Array) ? sequence : sequence.to_a
        instructions = list[13] || []
        before = nil
        instructions.any? do |instruction|
          next unless instruction.is_a?(Array)

          last = before
          before = instruction
          takes?(instruction, last) || instruction.any? { |part| part.is_a?(Array) && part[0] == 'YARVInstructionSequence/SimpleDataFormat' && careless?(part) }
        end || (list[12] || []).any? { |handler| handler.is_a?(Array) && handler[1].is_a?(Array) && careless?(handler[1]) }
      end

      private

      def compiled(sequence, text)
        return unless Inputs.places && Inputs.listening?

        path = sequence.path
        inside = path.start_with?('(e') ? evaluated : Inputs.places.below(path)
        return unless inside

        text ||= Inputs.deaf { File.binread(path) }
        text = text.b
        found(inside) if text.match?(/\*\*|sub/) && careless?(sequence)
        @seeds ||= text.include?('srand') && keeps_seeds?(sequence.to_a)
      rescue SystemCallError
        found(inside)
      end

      # Whether a call of srand is followed by anything else than throwing the old seed away, or
      # srand is called by its name.
      def keeps_seeds?(list)
        return list.each_cons(2).any? { |one, other| seeds?(one) && other != [:pop] } || list.grep(Array).any? { |part| keeps_seeds?(part) } if list.is_a?(Array)

        false
      end

      def seeds?(instruction)
        return false unless instruction.is_a?(Array)

        name, call = instruction
        call.is_a?(Hash) ? call[:mid] == :srand : name == :putobject && call == :srand
      end

      # Text without a file is the environment's if one of its lines evaluates it, or a template.
      def evaluated
        by = caller_locations(2).map(&:path).find { |path| path && !path.start_with?(__dir__, '<internal:', '(eval') }.to_s
        '' if by.match?(/\A\(erb|templatewrapper\.rb\z|erb\.rb\z/) || (by.start_with?('/') && Inputs.places.below(by))
      end

      def found(inside)
        @files[inside] = true unless inside.empty?
        return if for_type?(inside)

        @anywhere = true if inside.empty?
        watch unless @any
        caller_locations.each do |at| # whoever requires it uses it
          using = at.path&.start_with?('/') && Inputs.places.below(at.path)
          @trees[Regexp.last_match(0)] = true if using && using.match(%r{\A.*?/lib(?=/)}) && !using.match?(%r{/lib/puppet/})
        end
        Inputs.note('careless:')
      end

      # Whether Puppet loads a type or a provider, which needs it.
      def for_type?(inside)
        outermost = "/#{inside}"
        caller_locations(2).each do |at|
          path = at.path or next
          return outermost.match?(%r{/lib/puppet/(?:type|provider)/}) if path.match?(Loading::AUTOLOAD)

          outermost = path if path.start_with?('/') && Inputs.places.below(path)
        end
        false
      end

      # From now on it is noticed what Ruby code touches. What it has touched is not known.
      def watch
        @any = true
        Inputs.facts&.everything_touched
        Puppet::Parser::Scope.prepend(InScope)
        Puppet::Pops::Functions::Dispatch.prepend(InDispatch)
      end

      def sends(text)
        RubyVM::InstructionSequence.compile(text).to_a[13].select { |part| part.is_a?(Array) && part[1].is_a?(Hash) && part[1][:mid] == :f }.sum { |part| part[1][:flag] }
      end

      def takes?(instruction, last)
        name, call = instruction
        return true if name == :pushtoarraykwsplat || (name == :putobject && REPLACING.include?(call))
        return false unless call.is_a?(Hash) && call[:flag]
        return true if (call[:flag] & @splat).positive? || MERGES.include?(call[:mid])

        REPLACING.include?(call[:mid]) && call[:orig_argc] == 2 && !text?(last)
      end

      def text?(instruction)
        HARMLESS.include?(instruction[0]) || (instruction[1].is_a?(Hash) && TEXTS.include?(instruction[1][:mid]))
      end
    end

    # Ruby code gets hold of a variable.
    module InScope
      def lookupvar(name, *)
        value = super
        Inputs.heard&.touched_by(value, caller_locations(1, 6)) if value.is_a?(Hash)
        value
      end
    end

    # Ruby code is given what Puppet code got hold of.
    module InDispatch
      def invoke(instance, calling_scope, args, &block)
        args.each { |arg| touch(arg) } if Inputs.heard
        super
      end

      private

      def touch(value)
        case value
        when FactReads::Followed then Inputs.heard.touched(value)
        when Hash then value.each_value { |inner| touch(inner) }
        when Array then value.each { |inner| touch(inner) }
        end
      end
    end
  end
end
