# frozen_string_literal: true

require 'puppet'
require 'puppet/pops'
require 'puppet/util/json'
require 'puppet/util/yaml'
require 'puppet/settings/config_file'
require 'erb'
require 'code'

module Tutti
  # How far a YAML parser got: it says where the block begins in which it stopped.
  class Reached < Psych::Handler
    def self.line(text, error)
      return 0 unless error.context.to_s.start_with?('while parsing')

      reached = new
      begin
        Psych::Parser.new(reached).parse(text)
      rescue Psych::SyntaxError
        return reached.line.to_i
      end
      0
    end

    attr_reader :line

    def event_location(_line, _column, end_line, _end_column)
      @line = end_line + 1
    end
  end

  # Reads each kind of file as Puppet does, and tells what it finds.
  class Files
    # What Ruby says of a template that is fine where Puppet puts it.
    FINE = /Invalid yield/.freeze
    # What environment.conf may say that is not done.
    NOT_DONE = {
      /^\s*config_version\s*=/ => 'config_version is not run: the version that agents see is the digest of the code',
      /^\s*static_catalogs\s*=\s*["']?(?:false|no)\b/i => 'static_catalogs stays on: the content of files is a part of what is previewed and released'
    }.freeze

    def initialize(head)
      Puppet.initialize_settings(%w[confdir vardir codedir logdir rundir].flat_map { |name| ["--#{name}", head['dir']] } +
                                 (head['strict'] ? ['--strict', head['strict']] : []))
      Puppet::Util::Log.level = :crit
      @root = head['root']
      paths = head['modulepath'].map { |path| File.join(@root, path) }
      manifest = head['manifest'].to_s.empty? ? Puppet::Node::Environment::NO_MANIFEST : File.join(@root, head['manifest'])
      @code = Code.new(Puppet::Node::Environment.create(:check, paths, manifest))
    end

    def check(path, kind, bytes)
      text = bytes.dup.force_encoding(Encoding::UTF_8)
      found = send(kind, File.join(@root, path), text)
      last = [text.count("\n") + (text.end_with?("\n") ? 0 : 1), 1].max # Ruby puts the end of a file behind it
      found.each { |finding| yield clean(finding.merge('file' => path, 'line' => [finding['line'], last].min)) }
    rescue NoMemoryError, SystemStackError => e
      yield('level' => 'mistake', 'file' => path, 'line' => 0, 'message' => "it is too large or too deep to be read (#{e.class})")
    rescue StandardError => e # ours, not the author's: nothing is refused for it
      yield clean('level' => 'warning', 'file' => path, 'line' => 0, 'message' => "it could not be checked: #{e.class}: #{e.message}")
    end

    private

    def clean(finding)
      finding['message'] = finding['message'].to_s.encode('UTF-8', invalid: :replace, undef: :replace).scrub.gsub("#{@root}/", '').strip[0, 2000]
      finding
    end

    def mistake(message, line = 0, column = 0)
      [{ 'level' => 'mistake', 'line' => line.to_i, 'column' => column.to_i, 'message' => message }]
    end

    def manifest(path, text)
      @code.manifest(path, text)
    end

    def classes(path, text)
      @code.classes(path, text)
    end

    # Plans have words of their own, which mean nothing in manifests.
    def plan(path, text)
      Puppet[:tasks] = true
      @code.manifest(path, text)
    ensure
      Puppet[:tasks] = false
    end

    def epp(path, text)
      @code.epp(path, text)
    end

    # The source that ERB's own scanner makes of a template, compiled and not run. Its first line is a comment.
    def erb(path, text)
      RubyVM::InstructionSequence.compile(Puppet::Util.create_erb(text).src, path, path, 0)
      []
    rescue SyntaxError => e
      return [] if e.message.match?(FINE)

      first = e.message.lines.find { |line| line.start_with?("#{path}:") } || e.message
      place = first.match(/\A#{Regexp.escape(path)}:(?<line>\d+): (?<text>.*)/m)
      place ? mistake(place[:text].strip, place[:line]) : mistake(first.strip)
    rescue ArgumentError, EncodingError => e
      mistake(e.message)
    end

    def yaml(path, text)
      Puppet::Util::Yaml.safe_load(text.sub(/\A\uFEFF/, ''), [Symbol], path)
      []
    rescue Puppet::Util::Yaml::YamlLoadError, ArgumentError => e
      why = e.respond_to?(:original) && e.original || e.cause
      case why
      when Psych::SyntaxError then mistake([why.problem, why.context].compact.join(' '), [why.line, Reached.line(text, why)].max)
      when Psych::BadAlias then mistake(why.message, alias_line(text, why.message))
      when Psych::DisallowedClass then mistake("#{why.message}: put it in quotes", foreign(text))
      else mistake(e.message)
      end
    end

    def alias_line(text, message)
      Psych.parse_stream(text).each { |part| return part.start_line + 1 if part.is_a?(Psych::Nodes::Alias) && message.end_with?(" #{part.anchor}") }
      0
    end

    # The line of the first value that is no plain one, such as a date.
    def foreign(text)
      scanner = Psych::ScalarScanner.new(Psych::ClassLoader.new)
      node = Psych.parse_stream(text).find do |part|
        next part.tag && part.tag.start_with?('!ruby') if part.respond_to?(:tag) && part.tag

        part.is_a?(Psych::Nodes::Scalar) && !part.quoted && [Date, Time].any? { |kind| scanner.tokenize(part.value).is_a?(kind) }
      end
      node ? node.start_line + 1 : 0
    rescue StandardError
      0
    end

    def json(_path, text)
      Puppet::Util::Json.load(text)
      []
    rescue Puppet::Util::Json::ParseError, ArgumentError, EncodingError => e
      mistake(e.message.sub(/\A\d+: /, '').lines.first.to_s[0, 300], e.message[/at line (\d+)/, 1]) # who asks knows the line better
    end

    def conf(path, text)
      Puppet::Settings::ConfigFile.new(->(value, *) { value }).parse_file(path, text)
      NOT_DONE.filter_map do |setting, message|
        line = text.lines.index { |l| l.match?(setting) }
        { 'level' => 'note', 'line' => line + 1, 'column' => 0, 'message' => message } if line
      end
    rescue Puppet::Error => e
      mistake(e.message.sub(/ \(file: .*/m, ''), e.respond_to?(:line) ? e.line : 0)
    end
  end
end
