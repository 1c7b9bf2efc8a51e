# frozen_string_literal: true

module Tutti
  # Replaces directories of this machine by those of a Puppet Server, so that a
  # catalog does not tell where, nor at which version, it was compiled.
  class Paths
    ENVIRONMENTS = '/etc/puppetlabs/code/environments'

    # pairs: directory here => directory shown
    def initialize(pairs)
      @shown = pairs.sort_by { |here, _| -here.length }.to_h
      @here = @shown.keys.uniq { |here| @shown[here] }.to_h { |here| [@shown[here], here] }
      @pattern = Regexp.union(@shown.keys)
    end

    # The same text as it would read on a Puppet Server.
    def show(text)
      text.gsub(@pattern, @shown)
    end

    # The file here that code names by a path of a Puppet Server.
    def here(path)
      @here.each { |shown, here| return path.sub(shown, here) if path.start_with?("#{shown}/") }
      path
    end
  end

  # $settings::confdir and its like show what a Puppet Server shows.
  module ShownSettings
    # values: settings that are another text there, as a whole.
    def self.install(paths, values)
      @paths = paths
      @values = values
      Puppet::Parser::Scope.prepend(Transform)
      Puppet::Parser::Files.singleton_class.prepend(Lookup)
    end

    class << self
      attr_reader :paths, :values
    end

    # Values of the settings class.
    module Transform
      def transform_setting(value)
        value = super
        return value unless value.is_a?(String) && value.start_with?('/')

        ShownSettings.values.fetch(value) { ShownSettings.paths.show(value) }
      end
    end

    # file() and template(): finds each file of a module once, because a version's
    # files never change, and understands a path that was made from $settings.
    module Lookup
      FOUND = {}

      def find_file(file, environment)
        Inputs.look(:found_file, file) { FOUND.fetch([:file, file]) { |key| FOUND[key] = super } }
      end

      def find_template(template, environment)
        Inputs.look(:found_template, template) { FOUND.fetch([:template, template]) { |key| FOUND[key] = super } }
      end

      def find_in_module(reference, environment)
        found = super
        found.equal?(reference) && found ? ShownSettings.paths.here(found) : found
      end
    end
  end
end
