# frozen_string_literal: true

module Tutti
  # The settings of environment.conf, freed from the machine: absolute entries of
  # the module path are found below .base_modules/<n>, and the version's digest
  # stands for config_version.
  class VersionConf < Puppet::Settings::EnvironmentConf
    BASE_MODULES = '.base_modules'

    def self.load(root)
      load_from(root, [])
    end

    def modulepath
      (own_directories + base_directories).join(File::PATH_SEPARATOR)
    end

    # The module path as it would read on a Puppet Server, where modules from outside are not
    # part of the environment; base is what $basemodulepath stands for there.
    def shown_modulepath(base)
      entries.flat_map { |entry| entry == '$basemodulepath' ? base.split(File::PATH_SEPARATOR) : expand_glob(absolute(entry)) }.join(File::PATH_SEPARATOR)
    end

    def manifest
      path = super
      return path if path.nil? || path.start_with?("#{path_to_env}/")

      raise Puppet::Error, "environment.conf: manifest must be a path below the environment, not #{raw_setting(:manifest)}"
    end

    def config_version
      nil
    end

    def environment_timeout
      Float::INFINITY
    end

    private

    def entries
      (raw_setting(:modulepath) || 'modules:$basemodulepath').split(File::PATH_SEPARATOR)
    end

    def own_directories
      relative = entries.reject { |entry| entry.start_with?('/', '$') }
      relative.flat_map { |entry| expand_glob(absolute(entry)) }
    end

    def base_directories
      numbers = Dir.children(File.join(path_to_env, BASE_MODULES)).grep(/\A\d+\z/)
      numbers.sort_by(&:to_i).map { |number| File.join(path_to_env, BASE_MODULES, number) }
    rescue Errno::ENOENT
      []
    end
  end

  # The only environment that a zygote knows.
  class OneEnvironment
    include Puppet::Environments::EnvironmentLoader

    def initialize(name, root)
      @name = name.intern
      @root = root
    end

    def search_paths
      ["file://#{@root}"]
    end

    def list
      [get(@name)]
    end

    def get(name)
      return nil unless name.intern == @name

      @environment ||= create
    end

    def get_conf(name)
      name.intern == @name ? VersionConf.load(@root) : nil
    end

    def clear_all; end

    def guard(name); end

    def unguard(name); end

    private

    def create
      conf = VersionConf.load(@root)
      paths = Puppet::Node::Environment.split_path(conf.modulepath)
      settings = Puppet.settings.values(@name, Puppet.settings.preferred_run_mode)
      Puppet::Node::Environment.create(@name, paths, settings.interpolate(:manifest), nil)
    end
  end
end
