# frozen_string_literal: true

# Tests of the zygote's parts that need no process of their own; the Go tests
# cover the rest. Run: ruby zygote_test/all.rb
$LOAD_PATH.unshift(File.expand_path('../zygote', __dir__))
require 'minitest/autorun'
require 'socket'
require 'stringio'
require 'tmpdir'
require 'wire'
require 'memory'
require 'compiler'

class WireTest < Minitest::Test
  def read(text, max = 100)
    Tutti::Wire.new(StringIO.new(text), max).read
  end

  def test_reads_messages_until_the_end
    wire = Tutti::Wire.new(StringIO.new(%({"v":1,"op":"a"}\n{"v":1,"op":"b"}\n)), 100)
    assert_equal(%w[a b], [wire.read['op'], wire.read['op']])
    assert_nil wire.read
  end

  def test_refuses_what_is_too_long_cut_or_of_another_version
    assert_raises(Tutti::Wire::Broken) { read(%({"v":1,"op":"#{'x' * 200}"}\n)) }
    assert_raises(Tutti::Wire::Broken) { read('{"v":1}') }
    assert_raises(Tutti::Wire::Broken) { read(%({"v":2}\n)) }
    assert_raises(Tutti::Wire::Broken) { read(%([1]\n)) }
    assert_raises(JSON::ParserError) { read(%({"v":1,\n)) }
  end

  def test_reads_lines_with_a_bound_of_their_own
    wire = Tutti::Wire.new(StringIO.new(%({"v":1,"rows":"#{'x' * 200}"}\n{"v":1}\n)), 100)
    assert_equal(200, wire.parse(wire.line(300))['rows'].size)
    assert_raises(Tutti::Wire::Broken) { wire.line(5) }
    assert_nil Tutti::Wire.new(StringIO.new, 100).line(5)
  end

  def test_writes_documents_after_the_header
    io = StringIO.new
    Tutti::Wire.new(io, 100).write({ 'catalog_bytes' => 2 }, '{}')
    assert_equal(%({"v":1,"catalog_bytes":2}\n{}), io.string)
  end
end

class QuestionsTest < Minitest::Test
  # A wire whose other end gives the same answer to everything.
  class Echo
    attr_reader :asked

    def initialize(answer)
      @answer = answer
      @asked = []
    end

    def write(question)
      @asked << question
    end

    def line(_max_bytes)
      @answer
    end

    def parse(line, **)
      JSON.parse(line)
    end
  end

  def questions(answer)
    @wire = Echo.new(answer)
    Tutti::Questions.new(@wire, 'n.example', 100)
  end

  def test_asks_equal_questions_once
    asking = questions('{"v":1,"rows":[{"title":"x"}]}')
    2.times { assert_equal([{ 'title' => 'x' }], asking.query('nodes{}')) }
    2.times { asking.collect('File', ['=', 'title', 'x']) }
    asking.collect('File', nil)
    assert_equal([{ 'ask' => 'query', 'query' => 'nodes{}', 'node' => 'n.example' },
                  { 'ask' => 'collect', 'type' => 'File', 'filter' => ['=', 'title', 'x'], 'node' => 'n.example' },
                  { 'ask' => 'collect', 'type' => 'File', 'filter' => nil, 'node' => 'n.example' }], @wire.asked)
  end

  def test_rows_of_queries_are_fresh_each_time
    asking = questions('{"v":1,"rows":[{"title":"x"}]}')
    asking.query('nodes{}').first['title'] << 'y'
    assert_equal('x', asking.query('nodes{}').first['title'])
  end

  def test_sends_arrays_as_json
    questions('{"v":1,"rows":[]}').query(['from', 'nodes', ['=', 'certname', 'x']])
    assert_equal('["from","nodes",["=","certname","x"]]', @wire.asked.first['query'])
  end

  def test_refusals_and_the_end_of_the_server
    error = assert_raises(Tutti::Questions::Refused) { questions('{"v":1,"error":"no"}').query('x') }
    assert_equal('no', error.message)
    assert_raises(Tutti::Questions::Refused) { questions('').query('x' * 1_048_577) }
    assert_raises(EOFError) { questions(nil).query('x') }
  end

  def test_only_while_a_catalog_is_compiled
    assert_raises(Tutti::Questions::Refused) { Tutti::Questions.current }
    asking = questions('')
    Tutti::Questions.during(asking) { assert_same(asking, Tutti::Questions.current) }
    assert_raises(Tutti::Questions::Refused) { Tutti::Questions.current }
  end
end

class CollectingTest < Minitest::Test
  def condition(filter)
    Tutti::Collecting.condition(filter)
  end

  def test_words_conditions_as_the_query_language_does
    assert_nil condition(nil)
    assert_equal(['=', 'tag', 'web'], condition(['tag', '==', 'Web']))
    assert_equal(['not', ['=', 'title', 'x']], condition(['title', '!=', 'x']))
    assert_equal(['and', ['=', %w[parameter mode], '0644'], ['or', ['=', 'title', '1'], ['=', %w[parameter n], 1]]],
                 condition([['mode', '==', '0644'], 'and', [['title', '==', 1], 'or', ['n', '==', 1]]]))
    assert_raises(Puppet::Error) { condition(%w[a in b]) }
  end
end

class StoredQueriesTest < Minitest::Test
  Module = Struct.new(:path)
  Environment = Struct.new(:modules)

  def brought?(file)
    Dir.mktmpdir do |root|
      mod = File.join(root, 'modules', 'm')
      FileUtils.mkdir_p(mod)
      if file
        FileUtils.mkdir_p(File.dirname(File.join(root, file)))
        File.write(File.join(root, file), '')
      end
      Tutti::StoredQueries.brought?(Environment.new([Module.new(mod)]), root)
    end
  end

  def test_finds_an_environments_own_function
    %w[functions/puppetdb_query.pp lib/puppet/functions/puppetdb_query.rb lib/puppet/parser/functions/puppetdb_query.rb
       modules/m/lib/puppet/functions/puppetdb_query.rb modules/m/lib/puppet/parser/functions/puppetdb_query.rb].each do |file|
      assert brought?(file), file
    end
    refute brought?(nil)
    refute brought?('modules/m/functions/puppetdb_query.pp') # another function: m::puppetdb_query
    refute brought?('modules/m/lib/puppet/functions/m/puppetdb_query.rb')
  end
end

class PathsTest < Minitest::Test
  def setup
    @paths = Tutti::Paths.new('/s/environments' => '/etc/puppetlabs/code/environments',
                              '/s/environments/prod' => '/etc/puppetlabs/code/environments/prod',
                              '/checkout/1' => '/etc/puppetlabs/code/environments/prod')
  end

  def test_shows_the_longest_match
    assert_equal('at /etc/puppetlabs/code/environments/prod/a.pp and /etc/puppetlabs/code/environments/prod/b.pp',
                 @paths.show('at /s/environments/prod/a.pp and /checkout/1/b.pp'))
  end

  def test_finds_the_file_behind_a_shown_path
    assert_equal('/s/environments/prod/x', @paths.here('/etc/puppetlabs/code/environments/prod/x'))
    assert_equal('/etc/hosts', @paths.here('/etc/hosts'))
  end
end

class LogsTest < Minitest::Test
  Message = Struct.new(:level, :file, :line, :text) do
    def to_s
      text
    end
  end

  def setup
    @logs = Tutti::Logs.new(Tutti::Paths.new('/s/prod' => '/etc/puppetlabs/code/environments/prod'))
  end

  def test_keeps_level_and_place
    @logs << Message.new(:warning, '/s/prod/manifests/a.pp', '7', 'at /s/prod/x')
    assert_equal([{ 'level' => 'warning', 'message' => 'at /etc/puppetlabs/code/environments/prod/x',
                    'file' => 'manifests/a.pp', 'line' => 7 }], @logs.to_a)
  end

  def test_counts_what_is_too_much_and_mends_texts
    502.times { @logs << Message.new(:notice, nil, nil, "\xff#{'x' * 10_000}") }
    assert_equal(501, @logs.to_a.size)
    assert_match(/2 more/, @logs.to_a.last['message'])
    assert_operator(@logs.to_a.first['message'].bytesize, :<=, Tutti::Logs::MAX_BYTES)
    assert_predicate(@logs.to_a.first['message'], :valid_encoding?)
  end
end

class FailureTest < Minitest::Test
  def failure(error)
    Tutti::Failure.new(error, Tutti::Paths.new('/s/prod' => '/etc/puppetlabs/code/environments/prod')).to_h
  end

  def test_finds_the_place_in_the_message
    got = failure(Puppet::Error.new('no (file: /s/prod/manifests/a.pp, line: 3, column: 9) on node x'))
    assert_equal(['code', 'manifests/a.pp', 3, 9], got.values_at('cause', 'file', 'line', 'pos'))
    assert_match(%r{/etc/puppetlabs/code/environments/prod/manifests/a.pp}, got['message'])
  end

  def test_finds_the_place_of_ruby_that_cannot_be_parsed
    got = failure(SyntaxError.new("/s/prod/modules/a/lib/puppet/functions/a.rb:3: syntax error, unexpected ')'\n  def a(*) = b(*)"))
    assert_equal(['code', 'modules/a/lib/puppet/functions/a.rb', 3], got.values_at('cause', 'file', 'line'))
    assert_equal(['', 0], failure(RuntimeError.new('see a.rb:3: it is odd')).values_at('file', 'line'))
  end

  def spent?(error)
    Tutti::Failure.new(error, nil).spent?
  end

  def test_knows_when_a_process_is_spent
    refute spent?(Puppet::Error.new('x'))
    refute spent?(Tutti::Compilation::BadOrder.new('x'))
    [SystemStackError.new('deep'), NoMemoryError.new, SystemExit.new, UncaughtThrowError.allocate].each { |e| assert spent?(e) }
    wrapped = begin
      begin
        raise SystemStackError, 'deep'
      rescue SystemStackError => e
        raise Puppet::Error, "autoload: #{e}"
      end
    rescue Puppet::Error => e
      e
    end
    assert spent?(wrapped)
  end

  def test_tells_causes_apart
    assert_equal('memory', failure(NoMemoryError.new('none'))['cause'])
    assert_equal('input', failure(Tutti::Compilation::BadOrder.new('facts'))['cause'])
    assert_equal(['code', '', 0], failure(RuntimeError.new('x')).values_at('cause', 'file', 'line'))
  end
end

class VersionConfTest < Minitest::Test
  def conf(text, base: [])
    Dir.mktmpdir do |root|
      File.write(File.join(root, 'environment.conf'), text) if text
      base.each { |name| Dir.mkdir(File.join(root, name)) }
      yield Tutti::VersionConf.load(root), root
    end
  end

  def test_modulepath_has_own_directories_then_base_modules_in_order
    base = %w[.base_modules .base_modules/10 .base_modules/2 .base_modules/x]
    conf("modulepath = site:/abs:modules:$basemodulepath\n", base: base) do |conf, root|
      assert_equal(%w[site modules .base_modules/2 .base_modules/10].map { |d| "#{root}/#{d}" }, conf.modulepath.split(':'))
    end
  end

  def test_defaults
    conf(nil) do |conf, root|
      assert_equal("#{root}/modules", conf.modulepath)
      assert_nil conf.config_version
    end
  end

  def test_manifest_stays_inside
    conf("manifest = site/x.pp\n") { |conf, root| assert_equal("#{root}/site/x.pp", conf.manifest) }
    conf("manifest = ../x.pp\n") { |conf, _| assert_raises(Puppet::Error) { conf.manifest } }
  end
end

class TemplatesTest < Minitest::Test
  Erb = Tutti::Templates::Erb

  def variables(text)
    Erb.compile(text, nil)&.variables
  end

  def test_names_the_variables_of_a_template
    assert_equal({ 'a' => :whole, 'b_1' => :whole }, variables('<%= @a %> <% @b_1.each { |x| %><%= x %><% } %> user@example.org'))
    assert_equal({ 'role' => :whole }, variables("<% s = '%%>' + @role.to_s %><%= s %>"))
    assert_equal({ 'in' => :whole }, variables('<%= "#@in" %> <%# @comment %> <%% @text %> #@outside'))
    assert_equal({ 'a' => :whole }, variables("<%- if true -%>\n<%= @a -%>\n<%- end -%>\n% @no\n"))
  end

  def test_tells_members_from_the_whole
    text = '<%= @m["x"] %><%= @m.dig("a", @k) %><%= @m&.fetch(1) %><%= @w["x"] %><%= @w %><%= @e.each { } %><%= scope["a"] %><% @m["y"].each { |y| } %>'
    assert_equal({ 'm' => :members, 'k' => :whole, 'w' => :whole, 'e' => :whole }, variables(text))
  end

  def test_a_variable_may_be_named_like_what_reaches_others
    assert_equal(%w[sendfile evaluate binding_address], variables('<% if @sendfile && @evaluate %><%= @binding_address %><% send_it = 1; send_it %><% end %>').keys)
  end

  # Whoever has self can read any variable of it.
  def test_leaves_templates_that_hand_out_themselves_to_puppet
    ['eval("@a")', 'instance_eval("@a")', 'send(:x)', 'public_send(:x)', '__send__(:x)', 'self.send :x', 'ERB.new(x).result(binding)',
     'get_binding', 'instance_variable_get(name)', 'method(:instance_variable_get)', 'local_variables', '"@#{x}"', 'instance_variables',
     'binding.local_variables', 'helper(self)', 'helper', 'helper 1', 'helper(1)', 'Helper(1)', 'itself', 'tap { |me| X.use(me) }', 'then { |me| X.use(me) }',
     '[self].first', '-> { self }', 'X.use(&method(:scope))', 'inspect', 'string', 'template_source', '__method__', 'yield', 'dup'].each do |code|
      assert_nil variables("<%= #{code} %>"), code
    end
  end

  def test_leaves_odd_templates_to_puppet
    ['CONSTANT = 1', 'def x; @a; end', 'class X; end', 'return', 'x ='].each { |code| assert_nil variables("<% #{code} %>"), code }
  end
end

class InputsTest < Minitest::Test
  Inputs = Tutti::Inputs

  def setup
    Tutti::Lookups.instance_variable_set(:@modules, {})
    Inputs.kind(:test) { |name| ["module:#{name}"] }
  end

  def read(&block)
    Inputs.of_compile(nil, &block).slice('module', 'volatile').transform_values { |texts| texts.uniq.sort }
  end

  def test_whoever_looks_something_up_again_has_read_what_it_read
    read { Inputs.look(:test, 'again') { Inputs.note('volatile:inner') } }
    2.times { assert_equal({ 'module' => ['again'], 'volatile' => ['inner'] }, read { Inputs.look(:test, 'again') {} }) }
  end

  def test_what_was_put_together_before_is_not_what_is_read_later
    2.times { assert_equal({ 'module' => ['grows'] }, read { Inputs.look(:test, 'grows') {} }) }
    more = { 'module' => %w[grows within], 'volatile' => ['more'] }
    assert_equal(more, read { Inputs.look(:test, 'grows') { Inputs.look(:test, 'within') { Inputs.note('volatile:more') } } })
    assert_equal(more, read { Inputs.look(:test, 'grows') {} })
    assert_equal({ 'module' => ['within'], 'volatile' => ['more'] }, read { Inputs.look(:test, 'within') {} })
  end

  def test_a_compiles_own_notes_are_its_own
    assert_equal({ 'module' => ['own'], 'volatile' => ['mine'] }, read { Inputs.look(:test, 'own') {} || Inputs.note('volatile:mine') })
    assert_equal({ 'module' => ['own'] }, read { Inputs.look(:test, 'own') {} })
  end

  def test_nothing_is_noted_by_the_deaf
    assert_equal({}, read { Inputs.deaf { Inputs.look(:test, 'deaf') { Inputs.note('volatile:deaf') } } })
  end
end

class SameFactsTest < Minitest::Test
  # Hiera's, as far as it concerns us.
  class Stock
    attr_reader :looks

    def initialize(all)
      @scope_interpolations = all
      @looks = []
    end

    def scope_interpolations_stable?(invocation)
      @looks << @scope_interpolations.map(&:first)
      @scope_interpolations.all? { |_, root, segments, old| old.eql?(segments.reduce(invocation.scope[root]) { |hash, key| hash[key] }) }
    end
  end
  Stock.prepend(Tutti::Shortcuts::SameFacts)
  Invocation = Struct.new(:scope)

  def stable?(config, facts, role)
    config.scope_interpolations_stable?(Invocation.new({ 'facts' => facts, 'role' => role }))
  end

  def setup
    @facts = { 'os' => { 'family' => 'Debian' } }.freeze
    @all = [['facts.os.family', 'facts', %w[os family], 'Debian'], ['role', 'role', [], 'web']]
  end

  def test_looks_into_the_same_facts_once
    config = Stock.new(@all)
    3.times { assert stable?(config, @facts, 'web') }
    assert_equal([%w[facts.os.family role], ['role'], ['role']], config.looks)
    only = Stock.new(@all.first(1))
    3.times { assert stable?(only, @facts, 'db') }
    assert_equal(1, only.looks.size)
  end

  def test_looks_into_others_and_at_other_variables
    config = Stock.new(@all)
    assert stable?(config, @facts, 'web')
    refute stable?(config, @facts, 'db')
    refute stable?(config, { 'os' => { 'family' => 'RedHat' } }, 'web')
    assert stable?(config, { 'os' => { 'family' => 'Debian' } }, 'web')
    refute stable?(Stock.new(@all), { 'os' => { 'family' => 'RedHat' } }, 'web')
  end
end

class TemplateVariablesTest < Minitest::Test
  Scope = Puppet::Parser::Scope

  def table(parent, values)
    Scope::LocalScope.new(parent).tap { |made| values.each { |name, value| made[name] = value } }
  end

  # Something with the parts of a scope that to_hash looks at.
  def scope(outer, last)
    Object.new.tap do |made|
      made.define_singleton_method(:enclosing_scope) { outer }
      made.define_singleton_method(:inherited_scope) { nil }
      made.instance_variable_set(:@ephemeral, [last])
    end
  end

  def found(scope, *names)
    {}.tap { |all| Tutti::Templates::Variables.collect(scope, names.to_h { |name| [name, true] }, all) }
  end

  def test_an_inner_variable_hides_an_outer_one_and_undef_hides_too
    top = scope(nil, table(nil, 'a' => 1, 'b' => 2, 'c' => 3))
    inner = scope(top, Scope::MatchScope.new(table(table(nil, 'a' => 4), 'b' => nil)))
    assert_equal({ 'a' => 4, 'c' => 3 }, found(inner, 'a', 'b', 'c', 'absent'))
  end

  def test_a_parameter_that_is_being_evaluated_is_no_variable
    parameters = Scope::ParameterScope.new(table(nil, 'a' => 1), 'x', %w[a p])
    assert_equal({ 'a' => 1 }, found(scope(nil, parameters), 'a', 'p'))
  end
end
