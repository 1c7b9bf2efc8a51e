# Live resources of this machine through Puppet's own types and providers: an application of Puppet, so that it has Puppet's Ruby and settings.
# It reads one request, JSON, from standard input, and writes one answer to standard output:
#
#   {"do": "find", "type": T, "title": N}                       -> {"results": RESOURCE}
#   {"do": "list", "type": T, "rows": N, "bytes": N}            -> {"results": {"result": [RESOURCE, ...], "total": N, "cut": true|false, "problems": [TEXT, ...]}}
#   {"do": "apply", "type": T, "title": N, "parameters": {...}, "managed": true|false, "allowed": [...]|null, "denied": [...]|null}
#                                                               -> {"results": {"result": TEXT, "changed": true|false}}
#   what could not be done                                      -> {"aborted": TEXT, "results": ...}

require 'json'
require 'set'
require 'puppet'
require 'puppet/application'

class Puppet::Application::Tutti_resource < Puppet::Application
  # What is told to whoever asked.
  class Refusal < StandardError
    attr_reader :results

    def initialize(message, results = nil)
      super(message)
      @results = results
    end
  end

  HIDDEN = '[redacted]'.freeze
  SECRET = /\A(.*_)?(password|passwd|passphrase|secret|token|private_key|credentials?|api_key|password_hash|salt)\z/i.freeze
  MOST = 1000 # characters of a message

  run_mode :agent
  environment_mode :not_required if respond_to?(:environment_mode)

  def summary
    'Live resources for tutti agent'
  end

  # Nothing but warnings and errors of Puppet itself, on standard error.
  def setup
    Puppet::Util::Log.level = :warning
    Puppet::Util::Log.newdestination(:console)
  end

  def main
    out = $stdout.dup # providers may print
    $stdout.reopen($stderr)
    answer =
      begin
        { 'results' => inside_an_environment { act(JSON.parse($stdin.read)) } }
      rescue Refusal => e
        { 'aborted' => e.message[0, MOST], 'results' => e.results }.compact
      rescue StandardError, ScriptError => e
        { 'aborted' => hide(e.message)[0, MOST] }
      end
    out.write(JSON.generate(answer))
    out.flush
  end

  private

  def inside_an_environment(&block)
    name = Puppet[:environment]
    env = Puppet.lookup(:environments).get(name) ||
          Puppet::Node::Environment.create(name.to_sym, Puppet::Node::Environment.split_path(Puppet[:basemodulepath]), Puppet::Node::Environment::NO_MANIFEST)
    Puppet.override({ :current_environment => env, :loaders => Puppet::Pops::Loaders.new(env) }, 'tutti_resource', &block)
  end

  def act(ask)
    @secrets = []
    @type = Puppet::Type.type(ask['type']) or raise Refusal, "Puppet has no type #{ask['type']}"
    tolerate_providers unless ask['do'] == 'apply'
    case ask['do']
    when 'find' then shown(Puppet::Resource.indirection.find("#{@type.name}/#{ask['title']}"))
    when 'list' then list(ask)
    when 'apply' then apply(ask)
    end
  end

  # Puppet asks all providers of a type, and fails if one does: a broken pip would hide the packages of the system.
  def tolerate_providers
    @problems = problems = []
    return unless @type.respond_to?(:providers_by_source)

    @type.providers_by_source.each do |provider|
      provider.singleton_class.prepend(Module.new do
        define_method(:instances) do
          super()
        rescue StandardError => e
          problems << "#{provider.name}: #{e.message}"[0, 300]
          []
        end
      end)
    end
  end

  def list(ask)
    all = Puppet::Resource.indirection.search("#{@type.name}/", {})
    raise Refusal, "no provider of the type #{@type.name} could list its resources: #{@problems.join('; ')}" if all.empty? && @problems.any?

    rows = []
    bytes = 0
    all.each do |resource|
      row = shown(resource)
      bytes += JSON.generate(row).bytesize
      break if rows.size >= ask['rows'] || bytes > ask['bytes']

      rows << row
    end
    { 'result' => rows, 'total' => all.size, 'cut' => rows.size < all.size, 'problems' => @problems }
  end

  # A resource as puppetral shows it: what the provider knows, without what is absent.
  def shown(resource)
    sensitive = resource.sensitive_parameters.map(&:to_s)
    resource.prune_parameters
    parameters = {}
    resource.to_hash.each do |name, value|
      next if name == @type.key_attributes.first && value == resource.title

      parameters[name.to_s] = sensitive.include?(name.to_s) || secret?(name) ? HIDDEN : plain(value)
    end
    {
      'type' => resource.type.to_s, 'title' => plain(resource.title.to_s), 'parameters' => parameters.sort.to_h, 'tags' => resource.tags.to_a.map(&:to_s).sort,
      'exported' => resource.exported ? true : false, 'managed' => managed?(resource.title)
    }
  end

  # JSON of anything that a provider gives.
  def plain(value)
    case value
    when Puppet::Pops::Types::PSensitiveType::Sensitive then HIDDEN
    when Array, Set then value.map { |v| plain(v) }
    when Hash then value.map { |k, v| [plain(k).to_s, plain(v)] }.to_h
    when Integer, true, false, nil then value
    when Float then value.finite? ? value : value.to_s
    when :undef then nil
    else value.to_s.dup.force_encoding(Encoding::UTF_8).scrub
    end
  end

  # Whether the type itself hides the values of a parameter, or its name says that they are secret.
  def secret?(name)
    @secret ||= {}
    @secret.fetch(name) { @secret[name] = SECRET.match?(name.to_s) || hidden_by_type?(name) }
  end

  def hidden_by_type?(name)
    attribute = @type.attrclass(name)
    return false unless attribute && attribute <= Puppet::Property

    attribute.allocate.is_to_s('x').to_s.match?(/redacted/i)
  rescue StandardError
    false
  end

  # Whether Puppet's last catalog had the resource.
  def managed?(title)
    @managed ||= File.exist?(Puppet[:resourcefile]) ? File.readlines(Puppet[:resourcefile], :encoding => 'UTF-8', :chomp => true).to_set : Set.new
    @managed.include?("#{@type.name}[#{title}]".downcase)
  end

  def apply(ask)
    parameters = ask['parameters']
    @secrets = parameters.select { |name, _| secret?(name.to_sym) }.values.flatten.map(&:to_s).reject(&:empty?)
    names = parameters.keys.map(&:to_sym) & (@type.key_attributes + [:name, :title])
    raise Refusal, "the parameter #{names.first} would name the resource a second time; leave it out" unless names.empty?

    resource = Puppet::Resource.new(@type.name.to_s, ask['title'], :parameters => parameters.transform_keys(&:to_sym))
    resource = resource.to_ral
    titles = [ask['title'], resource[:name]].compact.map(&:to_s).uniq
    permit(ask, titles)
    if !ask['managed'] && titles.any? { |title| managed?(title) }
      raise Refusal, "Puppet manages #{resource.ref} on this node: change it in the code of its catalog"
    end

    report = Puppet::Transaction::Report.new
    Puppet::Util::Log.level = :notice
    Puppet::Util::Log.newdestination(report)
    catalog = Puppet::Resource::Catalog.new('tutti', Puppet.lookup(:current_environment))
    catalog.add_resource(resource)
    catalog.apply(:report => report)
    told(resource, report)
  end

  # The owner of the node may allow, or deny, the names of a type: however a name is written, it is the provider's that counts.
  def permit(ask, titles)
    titles.each do |title|
      raise Refusal, "the owner of this node does not allow #{@type.name}[#{title}] to be changed" if ask['denied']&.include?(title) || ask['allowed'] && !ask['allowed'].include?(title)
    end
  end

  def told(resource, report)
    status = report.resource_statuses[resource.ref]
    text = hide(report.logs.map(&:to_s).join("\n"))
    text = 'no output produced' if text.empty?
    results = { 'result' => plain(text)[0, 16 * MOST], 'changed' => status&.changed ? true : false }
    raise Refusal.new("#{resource.ref} could not be applied: #{text}", results) if status.nil? || status.failed || status.failed_to_restart

    results
  end

  # Messages of types repeat the values that they refuse.
  def hide(text)
    (@secrets || []).inject(text.dup.force_encoding(Encoding::UTF_8).scrub) { |t, secret| t.gsub(secret, HIDDEN) }
  end
end
