# frozen_string_literal: true

require 'puppet/pops'

module Tutti
  # Notes of what Puppet looks up by name and keeps: classes, defined types,
  # functions, data types, native types, templates, modules. Names say where Puppet
  # looks, so the notes hold also for what another compile has loaded before.
  module Lookups
    FUNCTIONS = %w[lib/puppet/functions lib/puppet/parser/functions].freeze
    TYPES = %w[lib/puppet/type lib/puppet/datatypes].freeze
    FEATURES = %w[lib/puppet/feature].freeze
    # Where Puppet's loaders look.
    BY_NAME = %r{\A(?:.*/)?(?:lib/puppet/(?:functions|parser/functions|type|datatypes)|functions|types)(?:/[^/]+\.(?:rb|pp))?\z}.freeze

    class << self
      def install(environment, places)
        @environment = environment
        @places = places
        @owners = Hash.new { |all, path| all[path] = [] }
        modules.each { |name, dir| index(name, dir) }
        { Puppet::Resource::TypeCollection => Manifests, Puppet::Node::Environment => Environments,
          Puppet::Pops::Loader::Loader => Loaded, Puppet::Pops::Types::PTypeAliasType => Aliases,
          Puppet::Pops::Lookup::FunctionProvider => Backends }.each { |there, ours| there.prepend(ours) }
        kinds
        Puppet::Type.singleton_class.prepend(NativeTypes)
        Puppet::Util::Feature.prepend(Features)
        Puppet::Util::Autoload.singleton_class.prepend(Autoloads)
        Puppet::Parser::Functions.singleton_class.prepend(OldFunctions)
      end

      # Whether the names that were looked up say more than a look at this path.
      def covered?(path)
        @dirs ||= modules.values
        @covered ||= Hash.new { |known, one| known[one] = one.match?(BY_NAME) && (!one.include?('/') || one.start_with?('lib/') || @dirs.any? { |dir| one.start_with?("#{dir}/") }) }
        @covered.clear if @covered.size > 50_000
        @covered[path]
      end

      # Whether a path below lib/ is that of a module.
      def of_module?(path)
        at = path.index(%r{(?:\A|/)lib/})
        !at.nil? && at.positive? && (@dirs ||= modules.values).include?(path[0, at])
      end

      # What every compile reads.
      def always
        ['file:environment.conf', 'file:hiera.yaml', 'list:.base_modules', 'tree:.resource_types']
      end

      # The directory of a module, below the environment.
      def dir(name)
        modules[name]
      end

      def of_module(name)
        dir = dir(name)
        ["module:#{name}"] + (dir ? ["file:#{dir}/metadata.json", "file:#{dir}/hiera.yaml"] : [])
      end

      # A class or defined type a::b::c may be in init.pp, b.pp and b/c.pp of module a.
      def of_manifest(name)
        first, *rest = name.to_s.downcase.sub(/\A::/, '').split('::')
        return [] if first.nil?

        dir = dir(first)
        return ["module:#{first}"] unless dir

        files = ['init'] + (1..rest.size).map { |count| rest.first(count).join('/') }
        ["module:#{first}"] + files.map { |file| "file:#{dir}/manifests/#{file}.pp" }
      end

      def of_entity(type, name)
        first, *rest = name.to_s.downcase.sub(/\A::/, '').split('::')
        return [] if first.nil?

        notes = rest.empty? ? of_global(type, first) : []
        notes << 'volatile:generate() runs a program' if type == :function && name == 'generate'
        return notes + ['tree:lib', "tree:#{type == :function ? 'functions' : 'types'}"] if first == 'environment'
        return notes if rest.empty? && type == :function

        notes + of_namespace(type, first)
      end

      # A native type, or the types that are called like it.
      def of_native(name)
        of_global(:type, name.to_s.downcase)
      end

      private

      def kinds
        %i[hostclass definition node].each { |type| Inputs.kind(type) { |name| of_manifest(name) } }
        Inputs.kind(:file) { |path| @places.noted(path) }
        Inputs.kind(:module) { |name| of_module(name) }
        Inputs.kind(:main) { @places.noted(@environment.manifest, 'tree') }
        Inputs.kind(:native) { |name| of_native(name) }
        Inputs.kind(:feature) { |name| of_ruby(FEATURES, name) }
        %i[alias found_file found_template].each { |kind| Inputs.kind(kind) { [] } }
        Inputs.loaded { |type, name| of_entity(type, name) }
      end

      def modules
        @modules ||= Inputs.deaf { @environment.modules.to_h { |mod| [mod.name, @places.below(mod.path)] } }
      end

      # Ruby that any module's code may use by a name without a namespace.
      def index(name, dir)
        (FUNCTIONS + TYPES + FEATURES).each do |kind|
          root = @places.here(dir)
          Dir.glob("#{root}/#{kind}/*.rb").each { |file| @owners["#{kind}/#{File.basename(file)}"] << name }
        end
      end

      def of_global(type, name)
        puppet = type == :function ? "functions/#{name}.pp" : "types/#{name}.pp"
        of_ruby(type == :function ? FUNCTIONS : TYPES, name, puppet)
      end

      # Ruby of any module in one of some directories, and other files of the same use.
      def of_ruby(dirs, name, *others)
        ruby = dirs.map { |dir| "#{dir}/#{name}.rb" }
        owners = ruby.flat_map { |path| @owners.key?(path) ? @owners[path] : [] }
        (ruby + others).flat_map { |path| ["anywhere:#{path}", "file:#{path}"] } + owners.uniq.flat_map { |owner| of_code(owner) }
      end

      def of_namespace(type, name)
        dir = dir(name)
        return ["module:#{name}"] unless dir

        kind = { function: 'functions', plan: 'plans', task: 'tasks' }.fetch(type, 'types')
        ["tree:#{dir}/#{kind}"] + (type == :function || File.directory?("#{@places.here(dir)}/lib/puppet/datatypes") ? of_code(name) : of_module(name))
      end

      def of_code(name)
        of_module(name) + ["tree:#{dir(name)}/lib"]
      end
    end

    # Classes and defined types.
    module Manifests
      def find_or_load(name, type)
        unit = Inputs.noted(type, name)
        found = unit ? super : Inputs.look(type, name) { super }
        return found if found.nil? || (unit && unit.aside.equal?(found)) || !Inputs.listening?

        Inputs.look(:file, found.file) {} if found.file
        Inputs.noted(type, name)&.aside = found # whose file this compile has noted
        found
      end
    end

    # Modules, and the manifest that everything begins with.
    module Environments
      # Whom Puppet asks for all modules wants one by its name; other code may want all.
      def modules
        Inputs.note_list(modulepath) unless Outside.puppet?(caller_locations(1, 1).first.path)
        Inputs.deaf { super }
      end

      def module(name)
        Inputs.noted(:module, name) ? super : Inputs.look(:module, name) { super }
      end

      def perform_initial_import
        Inputs.look(:main, '') { super }
      end
    end

    # Functions and data types.
    module Loaded
      def load(type, name)
        found = Inputs.noted(type, name) ? super : Inputs.look(type, name) { super }
        Inputs.again(:alias, found.name) if found.is_a?(Puppet::Pops::Types::PTypeAliasType)
        found
      end
    end

    # An alias is resolved once; what it names belongs to it.
    module Aliases
      def resolve(loader)
        Inputs.look(:alias, name) { super }
      end
    end

    # Functions that Hiera gets its data from: it keeps them, and finds them in its own way.
    module Backends
      private def function(invocation)
        Inputs.look(:function, @function_name) { super }
      end
    end

    # Types written in Ruby.
    module NativeTypes
      def type(name)
        Inputs.noted(:native, name) ? super : Inputs.look(:native, name) { super }
      end
    end

    # What a machine has, as modules test it: Puppet keeps what it found.
    module Features
      def add(name, *)
        super.tap do
          singleton_class.prepend(Module.new { define_method("#{name}?") { Inputs.look(:feature, name.to_s) { super() } } })
        end
      end

      private

      def method_missing(method, *)
        method.end_with?('?') ? Inputs.look(:feature, method.to_s.chomp('?')) { super } : super
      end
    end

    # Where all modules have Ruby: who loads some has its name noted.
    module Autoloads
      def module_directories(environment)
        Inputs.deaf { super }
      end
    end

    # Functions of the old kind: one that Ruby asks for is the one that manifests call.
    module OldFunctions
      def function(name, *args)
        Inputs.noted(:function, name) ? super : Inputs.look(:function, name) { super }
      end
    end
  end
end
