# frozen_string_literal: true

require 'own_files'
require 'puppet'
require 'puppet/node'
require 'puppet/parser'
require 'puppet/resource/catalog'
require 'fileutils'

require 'version_environment'
require 'paths'
require 'inputs'
require 'places'
require 'outside'
require 'loading'
require 'native_reads'
require 'fact_hashes'
require 'careless'
require 'fact_reads'
require 'file_reads'
require 'lookups'
require 'template_scan'
require 'templates'
require 'single_thread'
require 'shortcuts'
require 'loads'
require 'logs'
require 'data_places'
require 'failure'
require 'group_data'
require 'questions'
require 'collecting'
require 'stored_queries'
require 'compilation'
require 'hiera_question'

module Tutti
  # Puppet, set up for one version of one environment.
  class Compiler
    attr_reader :environment

    CONFDIR = '/etc/puppetlabs/puppet'
    # What $basemodulepath stands for on a Puppet Server whose administrator did not change it.
    BASE_MODULES = '/etc/puppetlabs/code/modules:/opt/puppetlabs/puppet/modules'

    # name, version, root: the environment, its version's digest, its files.
    # dir: a private directory. limit, answers: the largest catalog and the longest
    # answer to a question, in bytes. settings: Puppet's settings that an operator may
    # choose (certname, strict, strict_variables, hiera_config), by name.
    def initialize(name:, version:, root:, dir:, limit:, answers:, settings: {})
      @name = name
      @version = version
      @dir = dir
      @limit = limit
      @answers = answers
      @settings = settings
      @link = link(root)
      @paths = Paths.new(shown(root))
      settle
      @environment = Puppet.lookup(:environments).get(@name)
      observe(root)
    end

    # Parses what every compile needs, in the context in which a compile would: functions and
    # data types of the main manifest need the environment's loaders. After a mistake in the
    # code nothing of it is kept (see Loads::Main), so each compile makes the mistake again,
    # in Puppet's own words: it is none here.
    def load
      Puppet::Util::Log.with_destination(Logs.new(@paths)) do
        %i[file package service user group exec notify].each { |type| Puppet::Type.type(type) }
        loaders = Puppet::Pops::Loaders.new(@environment)
        Puppet.override({ current_environment: @environment, loaders: loaders }, 'tutti') do
          @environment.known_resource_types
          loaders.pre_load
        end
      end
    rescue StandardError, ScriptError, SystemStackError => e
      warn("load #{@name}: #{e.class}")
    end

    # A header and documents, as the protocol has them. What the code asks meanwhile
    # goes over wire.
    def compile(order, wire)
      logs = Logs.new(@paths)
      Puppet.clear_deprecation_warnings # they are said once in a process, and this one compiles for many nodes
      Questions.during(Questions.new(wire, order['node'], @answers)) do
        Puppet::Util::Log.with_destination(logs) { answer(order, logs) }
      end
    end

    # The answer to a question to Hiera. The process may have changed by it, and is of no use for catalogs.
    def lookup(order, question, wire)
      logs = Logs.new(@paths)
      Puppet.clear_deprecation_warnings
      result = Questions.during(Questions.new(wire, order['node'], @answers)) do
        Puppet::Util::Log.with_destination(logs) { looked_up(order, question, logs) }
      end
      result[:header]['spent'] = true
      result
    end

    # How many classes and defined types were loaded so far.
    def known_types
      types = Loads.kept(@environment)
      types ? types.hostclasses.size + types.definitions.size : 0
    end

    private

    # A stray throw or exit in a module's Ruby ends the compile, not us.
    def answer(order, logs)
      documents, inputs = compiled(order)
      return too_large(documents, logs) if documents.sum(&:bytesize) > @limit

      header = { 'catalog_bytes' => documents[0].bytesize, 'exported_bytes' => documents[1].bytesize, 'logs' => logs.to_a, 'inputs' => inputs, 'spent' => Loads.broken? }
      { header: header, documents: documents }
    rescue StandardError, ScriptError, SystemExit, NoMemoryError, SystemStackError, UncaughtThrowError => e
      failure = Failure.new(e, @paths)
      { header: { 'error' => failure.to_h, 'logs' => logs.to_a, 'spent' => failure.spent? || Loads.broken? }, documents: [] }
    end

    def looked_up(order, question, logs)
      answer = nil
      DataPlaces.current = DataPlaces.new
      Inputs.of_compile(FactReads.new(order)) { answer = HieraQuestion.new(order, question, @environment, @version, @paths).run }
      texts = [answer.key?('value') ? JSON.generate(answer['value']) : '', answer.fetch('explanation', '').scrub]
      documents = texts.map { |text| @paths.show(text) }
      return too_large(documents, logs, 'the answer') if documents.sum(&:bytesize) > @limit

      header = { 'found' => answer['found'], 'hidden' => answer['hidden'], 'problem' => @paths.show(Logs.clean(answer['problem'].to_s)),
                 'value_bytes' => documents[0].bytesize, 'explanation_bytes' => documents[1].bytesize, 'logs' => logs.to_a }
      { header: header, documents: documents }
    rescue StandardError, ScriptError, SystemExit, NoMemoryError, SystemStackError, UncaughtThrowError => e
      { header: { 'error' => Failure.new(e, @paths).to_h, 'logs' => logs.to_a }, documents: [] }
    end

    # The documents, and what was read for them.
    def compiled(order)
      facts = FactReads.new(order)
      documents = nil
      DataPlaces.current = DataPlaces.new
      notes = Inputs.of_compile(facts) do
        documents = Compilation.new(order, @environment, @version, @paths).run.map { |document| @paths.show(JSON.generate(document)) }
      end
      [documents, Logs.clean_all(notes.merge(facts.to_h))]
    end

    def too_large(documents, logs, what = 'the catalog')
      message = "#{what} has #{documents.sum(&:bytesize)} bytes, at most #{@limit} are allowed"
      { header: { 'error' => { 'cause' => 'code', 'message' => message }, 'logs' => logs.to_a }, documents: [] }
    end

    # The environment's directory must carry its name.
    def link(root)
      environments = File.join(@dir, 'environments')
      FileUtils.mkdir_p([environments, File.join(@dir, 'conf'), File.join(@dir, 'var')], mode: 0o700)
      File.join(environments, @name).tap { |path| File.symlink(root, path) }
    end

    def shown(root)
      {
        @link => "#{Paths::ENVIRONMENTS}/#{@name}",
        root => "#{Paths::ENVIRONMENTS}/#{@name}",
        File.join(@dir, 'environments') => Paths::ENVIRONMENTS,
        File.join(@dir, 'conf') => CONFDIR,
        File.join(@dir, 'var') => '/opt/puppetlabs/server/data/puppetserver'
      }
    end

    def settle
      Puppet.initialize_settings(arguments, false)
      Puppet.settings.preferred_run_mode = :server
      Puppet.push_context_global({ environments: OneEnvironment.new(@name, @link) }, 'tutti')
      Puppet::Util::Log.level = :notice
      LogDestination.install
      Templates.install
      SingleThread.install
      Shortcuts.install
      Loads.install
      StoredQueries.install
      Collecting.install
      ShownSettings.install(@paths, shown_values)
    end

    # From here on all that is read is noted.
    def observe(root)
      places = Places.new(root: root, link: @link, modules: @environment.modulepath, own: [@dir])
      Lookups.install(@environment, places)
      DataPlaces.install
      FactReads.install
      FileReads.install
      Outside.install
      NativeReads.install
      FactHashes.install
      Careless.install
      Inputs.places = places
    end

    def arguments
      { 'confdir' => 'conf', 'vardir' => 'var', 'codedir' => 'conf', 'environmentpath' => 'environments',
        'logdir' => 'var', 'rundir' => 'var' }
        .merge('ssldir' => 'conf/ssl').flat_map { |setting, name| ["--#{setting}", File.join(@dir, name)] } +
        ['--config', '/dev/null', '--basemodulepath', BASE_MODULES, '--environment', @name, '--environment_timeout', 'unlimited', *chosen, *Collecting::SETTINGS]
    end

    # What an operator may choose, or what Puppet takes when nobody does.
    def chosen
      strict = @settings['strict']
      variables = { true => ['--strict_variables'], false => ['--no-strict_variables'] }.fetch(@settings['strict_variables'], [])
      ['--certname', @settings.fetch('certname', 'puppet'), '--hiera_config', @settings.fetch('hiera_config', File.join(@dir, 'conf', 'hiera.yaml')),
       *(strict ? ['--strict', strict] : []), *variables]
    end

    # Settings whose values code sees as on a Puppet Server: here => there.
    def shown_values
      conf = Puppet.lookup(:environments).get_conf(@name)
      { conf.modulepath => @paths.show(conf.shown_modulepath(BASE_MODULES)) }
    end
  end
end
