# frozen_string_literal: true

require 'rbconfig'

module Tutti
  # Where the environment's files are on this machine, by every name that they have.
  class Places
    ABSOLUTE = File.method(:absolute_path) # as it is before anything is noted

    # root: the environment, link: the name that Puppet knows it by, modules: the
    # directories of its module path, own: directories that belong to the zygote.
    def initialize(root:, link:, modules:, own:)
      @root = root
      @prefixes = [root, link, real(root)].compact.to_h { |dir| [dir, ''] }
      modules.each { |dir| (found = real(dir)) && @prefixes[found] ||= "#{find(dir)}/" }
      modules.each { |dir| links(dir).each { |path, found| @prefixes[found] ||= "#{find(path)}/" } }
      @prefixes = @prefixes.sort_by { |dir, _| -dir.length }
      # What belongs to Puppet, to Ruby and to us does not change under a process.
      @known = ($LOAD_PATH.map(&:to_s) + RbConfig::CONFIG.values_at('rubylibdir', 'sitedir', 'vendordir') + Gem.path + own +
                ['/dev/null', '/usr/share/zoneinfo', '/usr/share/puppet/locale', '/opt/puppetlabs/puppet/lib']).compact.uniq
      @found = {}
    end

    # The path below the environment, nil for one elsewhere.
    def below(path)
      path = path.to_s
      return find(path) unless path.start_with?('/') # the working directory may change
      @found.clear if @found.size > 50_000
      @found.fetch(path) { @found[path.dup.freeze] = find(path) }
    end

    def known?(path)
      @known.any? { |dir| path.start_with?(dir) && (path.length == dir.length || path[dir.length] == '/') }
    end

    def here(path)
      File.join(@root, path)
    end

    # The note of a file that some code has a name of.
    def noted(path, kind = 'file')
      inside = below(path.to_s)
      inside ? ["#{kind}:#{inside}"] : []
    end

    private

    def find(path)
      path = ABSOLUTE.call(path) if path.include?('/.') || path.include?('//') || !path.start_with?('/')
      @prefixes.each do |dir, inside|
        next unless path.start_with?(dir)
        return inside.chomp('/') if path.length == dir.length
        return inside + path[(dir.length + 1)..].chomp('/') if path[dir.length] == '/'
      end
      nil
    end

    # Modules that are links: Ruby tells a file of theirs by where it is.
    def links(dir)
      return {} unless File.directory?(dir)

      Dir.children(dir).map { |name| File.join(dir, name) }.select { |path| File.symlink?(path) }.to_h { |path| [path, real(path)] }.compact
    end

    def real(path)
      File.realpath(path)
    rescue SystemCallError
      nil
    end
  end
end
