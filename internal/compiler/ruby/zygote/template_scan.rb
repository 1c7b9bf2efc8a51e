# frozen_string_literal: true

require 'ripper'

module Tutti
  # Which variables an ERB template reads, found in the Ruby that ERB itself makes of it: no
  # other reading of a template's tags is the same in all cases.
  #
  # An instance variable can be read without its name standing in the template, by whoever gets
  # hold of the template's self. So there is no answer for a template that hands it out, in the
  # open or by calling a method of its own that is not known to be harmless.
  class TemplateScan
    # What templates may call without a receiver: nothing of this looks at the variables of
    # self. The first are a template's own, the others Ruby's.
    HARMLESS = (
      %w[scope has_variable? file classes all_tags tags debug info notice warning err alert emerg crit] +
      %w[format sprintf Integer Float String Array Hash Rational Complex raise fail lambda proc loop catch throw require
         block_given? puts print warn rand srand nil? is_a? kind_of? respond_to? object_id hash frozen? class]
    ).to_h { |name| [name, true] }.freeze
    # What reaches a variable without its name, whatever the receiver is.
    INDIRECT = /\A(?:\w*instance_variable\w*|(?:\w+_)?binding|(?:\w+_)?eval|instance_exec|method|(?:public_|__)?send(?:__)?|local_variables|__method__)\z/.freeze
    # Methods and classes of a template's own would be defined elsewhere; a return leaves another method.
    ELSEWHERE = %i[def defs class sclass module return return0 super zsuper yield yield0 BEGIN END].freeze
    # A variable that is asked for a member.
    MEMBER = %w[dig fetch key? has_key? include?].freeze

    # source: the Ruby of a template. The names of its variables, and whether each is only ever
    # asked for members (:members) or not (:whole); nil when that is not all it could read.
    def self.variables(source)
      tree = Ripper.sexp(source)
      tree && new.read(tree)
    end

    def initialize
      @found = {}
    end

    def read(tree)
      catch(:unknown) do
        walk(tree)
        return @found
      end
      nil
    end

    private

    def walk(node)
      return unless node.is_a?(Array)

      case node[0]
      when :@ivar then @found[node[1].delete_prefix('@')] = :whole
      when :@kw then throw(:unknown) if node[1] == 'self'
      when :@ident, :@const then throw(:unknown) if node[1].match?(INDIRECT)
      when :aref, :call then member(node) || each(node)
      when :vcall, :fcall, :command then own(node) || each(node)
      when *ELSEWHERE then throw(:unknown)
      else each(node)
      end
    end

    def each(node)
      node.each { |inner| walk(inner) }
    end

    # @name[...] and @name.dig(...): a member of the variable is read.
    def member(node)
      kind, receiver, *rest = node
      return unless receiver.is_a?(Array) && receiver[0] == :var_ref && receiver[1][0] == :@ivar
      return unless kind == :aref || (rest.last.is_a?(Array) && MEMBER.include?(rest.last[1]))

      name = receiver[1][1].delete_prefix('@')
      @found[name] ||= :members
      each(rest)
      true
    end

    # A method of self.
    def own(node)
      name = node[1]
      throw(:unknown) unless name.is_a?(Array) && HARMLESS.key?(name[1])
      each(node.drop(2))
      true
    end
  end
end
